package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// An impatient Ctrl-C, at any moment of a start: either the mount is there, and
// the program said so, or nothing is left.
func TestInterruptWhileStarting(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	addr := w.workspace("notes")
	type moment struct {
		name string
		is   func() bool
	}
	moments := []moment{
		{"its beginning", func() bool { return true }},
		{"its state directory", func() bool { found, _ := filepath.Glob(w.path("state/*/*/*")); return len(found) > 0 }},
		{"its mount", func() bool { return isMounted(w.path("mnt")) }},
	}
	for pause := time.Duration(0); tier.Soak && pause < 80*time.Millisecond; pause += 2 * time.Millisecond {
		moments = append(moments, moment{pause.String(), func() bool { time.Sleep(pause); return true }})
	}
	for _, m := range moments {
		cmd := w.command(addr, w.path("mnt"))
		assert.OK(t, cmd.Start())
		eventually(t, m.name, m.is)
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Exited() && status.ExitStatus() == 0 {
			w.ok("umount", "mnt")
			continue
		}
		eventually(t, "the mount to go after an interrupt at "+m.name, func() bool { return !isMounted(w.path("mnt")) })
	}
}

// An interrupt ends a start that waits for a store which never answers.
func TestInterruptOfAStartThatHangs(t *testing.T) {
	tier.RequireFUSE(t)
	for _, flags := range [][]string{nil, {"--foreground"}} {
		w, r := newWorld(t), serve(t, false)
		addr := w.remoteWorkspace("ops", r, perTurn, "")
		r.cut(t)
		cmd := w.command(append([]string{"mount", addr, w.path("mnt")}, flags...)...)
		var text strings.Builder
		cmd.Stderr = &text
		assert.OK(t, cmd.Start())
		eventually(t, "a state directory, which is there before the store is asked", func() bool {
			found, _ := filepath.Glob(w.path("state/*/*/*"))
			return len(found) > 0
		})
		cmd.Process.Signal(os.Interrupt)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			assert.True(t, err != nil && strings.Contains(text.String(), "interrupted, and stopped again"), flags, text.String(), err)
		case <-time.After(hangs):
			cmd.Process.Kill()
			t.Errorf("%v: it goes on", flags)
		}
	}
}

// Another user's mount cannot be taken away, and it is said to be there.
func TestUmountOfAnotherUsersMount(t *testing.T) {
	tier.RequireFUSE(t)
	tier.RequireRoot(t)
	w := newWorld(t)
	w.openToOthers()
	w.mount(w.workspace("notes"), "mnt")
	theirs := *w
	theirs.cred = nobody
	theirs.env = append(slices.Clone(w.env), "WSMOUNT_STATE_DIR="+w.path("none"))
	theirs.refused(exit.Denied, "by another user", "umount", w.path("mnt"))
}
