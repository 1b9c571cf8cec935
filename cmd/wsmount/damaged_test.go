package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
)

// loseDatabase removes the database of the working copy.
func (w *world) loseDatabase() (db string) {
	w.t.Helper()
	found := assert.Of(filepath.Glob(w.path("state/acme/ops/*/copy/names/db"))).OK(w.t)
	assert.Equal(w.t, len(found), 1, "databases", found)
	assert.OK(w.t, os.RemoveAll(found[0]))
	return found[0]
}

// A working copy whose database is gone, or has lost its files, is damaged, and no
// empty one: mount and recover say what rebuilds it, and that does.
func TestDatabaseIsGone(t *testing.T) {
	for _, empty := range []bool{false, true} {
		t.Run(fmt.Sprint("empty=", empty), func(t *testing.T) {
			w, _ := mountFiles(t, "mode: pull-push, commit: {on: manual}")
			w.write("mnt/f", "unsent")
			w.ok("umount", "mnt")
			db := w.loseDatabase()
			if empty {
				assert.OK(t, os.Mkdir(db, 0o700))
			}
			dir := filepath.Join(db, "../../..")
			scan := "`wsmount recover --scan " + dir
			for _, args := range [][]string{{"mount", ops, "mnt"}, {"recover", "export", ops, "out"}, {"recover", "accept", ops}} {
				w.refused(exit.Failed, scan, args...)
			}
			o := w.run("doctor", ops)
			assert.True(t, o.code == exit.Failed && strings.Contains(flat(o.out), scan), "doctor", o)
			o = w.run("recover")
			assert.Equal(t, o.code, exit.Unsafe, "of what it may hold nothing is known")
			for _, want := range []string{"damaged", scan} {
				assert.Contains(t, o.out, want, "recover")
			}
			text := w.ok("recover", "--scan", dir)
			for _, want := range []string{"1 file has its name again", "was not sent of these is lost", "symbolic links", "empty directories", "renames, deletions"} {
				assert.Contains(t, text, want, "recover --scan")
			}
			w.mount(ops, "mnt")
			assert.Equal(t, w.read("mnt/f"), "unsent", "after the scan")
			w.event(exit.Done, "commit", "mnt")
		})
	}
}

// Nobody can say that all is safe of a working copy whose daemon has left no last word,
// and that cannot be read.
func TestUmountOfWhatCannotBeRead(t *testing.T) {
	w, _ := mountFiles(t, "mode: pull-push, commit: {on: manual}")
	w.write("mnt/f", "unsent")
	w.killed()
	w.loseDatabase()
	w.refused(exit.Unsafe, "cannot be read", "umount", "mnt")
	assert.False(t, isMounted(w.path("mnt")), "it is mounted still")
}
