package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// What changes round a mount, and what differs from what was asked for, is told.

func TestStatusTellsThatTheDirectoryHasMoved(t *testing.T) {
	w := mountNotes(t)
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
	w := mountNotes(t)
	if o := w.run(notes, "mnt", "--if-not-mounted", "--read-only"); o.code != exit.Done || !strings.Contains(o.errOut, "mounted read-write already") {
		t.Errorf("got %+v", o)
	}
	if o := w.run(notes, "mnt", "--if-not-mounted"); strings.Contains(o.errOut, "already") {
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
	w := mountNotes(t)
	f := w.follow()
	f.listens()
	assert.OK(t, syscall.Kill(w.status().PID, syscall.SIGKILL))
	if err := f.wait(); err == nil || !strings.Contains(f.errOut.String(), "has ended without unmounting") {
		t.Errorf("got %v: %s", err, f.errOut.String())
	}
}
