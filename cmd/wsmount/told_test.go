package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// What changes round a mount, and what differs from what was asked for, is told.

func TestStatusTellsThatTheDirectoryHasMoved(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	w.mount(w.workspace("notes"), "mnt")
	if got := w.status().Parts[0].Moved; got != "" {
		t.Fatalf("moved to %s before it was", got)
	}
	assert.OK(t, os.Rename(w.path("notes"), w.path("away")))
	if got := w.status().Parts[0].Moved; got != w.path("away") {
		t.Errorf("got %q, want the new path", got)
	}
	assert.Contains(t, w.ok("status", "mnt"), "not at its path", "status")
}

func TestStatusTellsOfAHiddenControlDirectory(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	addr := w.workspace("notes")
	w.write("notes/.wsmount/own", "x")
	w.mount(addr, "mnt")
	assert.Contains(t, strings.Join(w.status().Notes, "\n"), ".wsmount of its own", "status notes")
}

func TestIfNotMountedTellsOfAnotherAccess(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	addr := w.workspace("notes")
	w.mount(addr, "mnt")
	if o := w.run(addr, "mnt", "--if-not-mounted", "--read-only"); o.code != exit.Done || !strings.Contains(o.errOut, "mounted read-write already") {
		t.Errorf("got %+v", o)
	}
	if o := w.run(addr, "mnt", "--if-not-mounted"); strings.Contains(o.errOut, "already") {
		t.Errorf("the same access is told of: %+v", o)
	}
}

func TestStateDirectoryThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.write("file", "")
	w.refused(exit.Failed, "state directory", "--state-dir", w.path("file"), "status")
}

// Who follows must not take a killed daemon for the end of the mount.
func TestFollowTellsOfAKilledDaemon(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	w.mount(w.workspace("notes"), "mnt")
	pid := w.status().PID
	follow := w.command("event", "mnt", "--follow")
	var said bytes.Buffer
	follow.Stderr = &said
	out, err := follow.StdoutPipe()
	assert.OK(t, err)
	assert.OK(t, follow.Start())
	eventually(t, "an event to follow", func() bool { // the first ones may come before it listens
		w.ok("event", "mnt", "turn-end")
		out.(*os.File).SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		n, _ := out.Read(make([]byte, 4096))
		return n > 0
	})
	assert.OK(t, syscall.Kill(pid, syscall.SIGKILL))
	var exited *exec.ExitError
	if err := follow.Wait(); !errors.As(err, &exited) || !strings.Contains(said.String(), "has ended without unmounting") {
		t.Errorf("got %v: %s", err, said.String())
	}
}
