package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// A working copy whose database is gone, or has lost its files, is damaged, and no
// empty one: mount and recover say what rebuilds it, and that does.
func TestDatabaseIsGone(t *testing.T) {
	tier.RequireFUSE(t)
	for name, lose := range map[string]func(t *testing.T, db string){
		"gone": func(*testing.T, string) {},
		"empty": func(t *testing.T, db string) {
			assert.OK(t, os.Mkdir(db, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := newWorld(t), serve(t, false)
			addr := w.remoteWorkspace("ops", r, "mode: pull-push, commit: {on: manual}", "")
			w.mount(addr, "mnt")
			w.write("mnt/f", "unsent")
			w.ok("umount", "mnt")
			found, err := filepath.Glob(w.path("state/acme/ops/*/copy/names/db"))
			if err != nil || len(found) != 1 {
				t.Fatalf("the database: %q, %v", found, err)
			}
			assert.OK(t, os.RemoveAll(found[0]))
			lose(t, found[0])
			dir := filepath.Join(found[0], "../../..")
			scan := "`wsmount recover --scan " + dir
			w.refused(exit.Failed, scan, "mount", addr, "mnt")
			w.refused(exit.Failed, scan, "recover", "export", addr, "out")
			w.refused(exit.Failed, scan, "recover", "accept", addr)
			if out := strings.Join(strings.Fields(w.ok("recover")), ""); !strings.Contains(out, "damaged") || !strings.Contains(out, strings.ReplaceAll(scan, " ", "")) {
				t.Errorf("recover: got %s", out)
			}
			text := w.ok("recover", "--scan", dir)
			for line := range strings.Lines(text) {
				if line = strings.TrimRight(line, "\n"); len(line) > width && !strings.HasPrefix(line, "the old state is kept") {
					t.Errorf("%d columns: %s", len(line), line)
				}
			}
			out := strings.Join(strings.Fields(text), " ")
			for _, want := range []string{"1 file has its name again", "was not sent of these is lost", "symbolic links", "empty directories", "renames, deletions"} {
				assert.Contains(t, out, want, "recover --scan")
			}
			w.mount(addr, "mnt")
			if got, err := os.ReadFile(w.path("mnt/f")); err != nil || string(got) != "unsent" {
				t.Errorf("after the scan: got %q, %v", got, err)
			}
			w.event(exit.Done, "commit", "mnt")
		})
	}
}

// Nobody can say that all is safe of a working copy whose daemon has left no last word,
// and that cannot be read.
func TestUmountOfWhatCannotBeRead(t *testing.T) {
	tier.RequireFUSE(t)
	w, r := newWorld(t), serve(t, false)
	addr := w.remoteWorkspace("ops", r, "mode: pull-push, commit: {on: manual}", "")
	w.mount(addr, "mnt")
	w.write("mnt/f", "unsent")
	assert.OK(t, syscall.Kill(w.status().PID, syscall.SIGKILL))
	found, err := filepath.Glob(w.path("state/acme/ops/*/copy/names/db"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the database: %q, %v", found, err)
	}
	assert.OK(t, os.RemoveAll(found[0]))
	w.refused(exit.Unsafe, "cannot be read", "umount", "mnt")
	assert.False(t, isMounted(w.path("mnt")), "it is mounted still")
}
