package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
)

func TestHelperWords(t *testing.T) {
	tests := []struct {
		name, in, want string
		fake           bool
	}{
		{"plain", "@a/b /mnt", "mount @a/b /mnt", false},
		{"as mount(8) calls", "@a/b /mnt -s -v -N /proc/1/ns/mnt -o rw,noexec -t wsmount", "mount @a/b /mnt -o=rw,noexec", false},
		{"fake", "@a/b /mnt -f -n -o ro", "mount @a/b /mnt -o=ro", true},
		{"options without a value", "@a/b /mnt -o", "mount @a/b /mnt", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, fake := helperWords(strings.Fields(tt.in))
			if !slices.Equal(got, strings.Fields(tt.want)) || fake != tt.fake {
				t.Errorf("got %q, %v", got, fake)
			}
		})
	}
	for name, want := range map[string]bool{"/sbin/mount.wsmount": true, "mount.wsmount": true, "/bin/wsmount": false} {
		if got := calledAsHelper(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	for c, want := range map[exit.Code]int{exit.Done: 0, exit.Usage: 1, exit.Failed: 32, exit.Denied: 32} {
		if got := helperExit(c); got != want {
			t.Errorf("%s: got %d, want %d", c, got, want)
		}
	}
}

// mount(8) runs us by another name; the daemon in the background must still be
// told its options.
func TestMountHelper(t *testing.T) {
	needFUSE(t)
	w := newWorld(t)
	addr := w.workspace("notes")
	helper := w.path("mount.wsmount")
	if err := os.Symlink(binary, helper); err != nil {
		t.Fatal(err)
	}
	cmd := w.command(addr, w.path("mnt"), "-s", "-o", "ro,noexec,nofail,x-systemd.automount,log-level=debug", "-t", "wsmount")
	cmd.Path = helper
	cmd.Args[0] = helper
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Mkdir(w.path("mnt/x"), 0o755); !errors.Is(err, syscall.EROFS) {
		t.Errorf("ro: got %v", err)
	}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil || !strings.Contains(string(mounts), w.path("mnt")+" fuse.wsmount ro,nosuid,nodev,noexec") {
		t.Errorf("the kernel's options are not there: %v", err)
	}
	w.ok("umount", "mnt")
	bad := w.command(addr, w.path("nowhere"))
	bad.Path, bad.Args[0] = helper, helper
	bad.Run()
	if got := bad.ProcessState.ExitCode(); got != 1 {
		t.Errorf("a wrong call: exit %d, want 1", got)
	}
}

func TestUnknownOption(t *testing.T) {
	w := newWorld(t)
	w.refused(exit.Usage, "unknown option -o alow_other", w.workspace("notes"), "mnt", "-o", "ro,alow_other")
	w.refused(exit.Usage, "soon", "@acme/notes", "mnt", "-o", "stop-timeout=soon")
	w.refused(exit.Usage, "unknown option -o ro=1", "@acme/notes", "mnt", "-o", "ro=1")
}
