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

func TestStatusTellsOfTheDirectory(t *testing.T) {
	tier.RequireFUSE(t)
	w := newWorld(t)
	addr := w.workspace("notes")
	w.write("notes/.wsmount/own", "x")
	w.mount(addr, "mnt")
	s := w.status()
	assert.Contains(t, strings.Join(s.Notes, "\n"), ".wsmount of its own", "status notes")
	assert.Equal(t, s.Parts[0].Moved, "", "moved to, before it was")
	assert.OK(t, os.Rename(w.path("notes"), w.path("away")))
	assert.Equal(t, w.status().Parts[0].Moved, w.path("away"), "moved to")
	assert.Contains(t, w.shown("mnt"), "not at its path", "status")
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
