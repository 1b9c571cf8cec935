package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/screen"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// Names may be longer than a terminal is wide: each stays whole, so that it can be copied, and
// everything else fits.
func TestLongNames(t *testing.T) {
	s := control.Status{Workspace: "@" + strings.Repeat("o", 60) + "/s", Mountpoint: "/" + strings.Repeat("mnt/", 40), Notes: []string{strings.Repeat("a note ", 40)},
		OpenFiles: []control.OpenFile{{Path: strings.Repeat("d/", 50) + "f"}}}
	for _, width := range []int{0, 40, 80} {
		var out bytes.Buffer
		w := screen.Screen{Writer: &out, Width: width}
		printStatus(w, s, time.Now())
		printList(w, statusList{Mounts: []control.Status{s}})
		for _, name := range []string{s.Workspace, s.Mountpoint, s.OpenFiles[0].Path} {
			assert.Contains(t, out.String(), name, width)
		}
		for line := range strings.Lines(out.String()) {
			long := slices.ContainsFunc(strings.Fields(line), func(word string) bool { return len(word) > 40 })
			assert.True(t, width == 0 || long || len(strings.TrimRight(line, "\n")) <= width, width, line)
		}
	}
}

// A workspace inside another stands below it, and each says where its bytes lie and when its
// store last gave and took something.
func TestStatusOfParts(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := control.Status{Parts: []control.Part{{At: "/"}, {At: "/lib", Copy: &control.Copy{LastPull: now.Add(-time.Minute)},
		Store: &control.Store{Endpoint: "http://s3.acme.test", Bucket: "notes", Prefix: "team/a"}}, {At: "/other"},
		{At: "/lib/ops", Copy: &control.Copy{Branch: "wsmount/c/1"}, Store: &control.Store{Endpoint: "https://git.acme.test", Repository: "acme/ops", Branch: "main"}}}}
	printStatus(&out, s, now)
	said := out.String()
	for _, part := range []string{"\n  /  ", "\n    /lib  ", "\n      /lib/ops  ", "\n    /other  "} {
		_, after, found := strings.Cut(said, part)
		assert.True(t, found, part, "does not follow in", said)
		said = after
	}
	for _, row := range []string{"bucket      notes, prefix team/a, at http://s3.acme.test\n", "last pull   1m ago, at 2026-11-20", "last push   none since it was mounted\n",
		"repository  https://git.acme.test/acme/ops\n", "branch      wsmount/c/1 (it began at main)\n"} {
		assert.Contains(t, out.String(), row)
	}
}

// What a program is refused without a word must be seen here.
func TestStatusTellsOfOtherMounts(t *testing.T) {
	var out bytes.Buffer
	printStatus(&out, control.Status{Parts: []control.Part{{At: "/", OtherMounts: []string{"notes/bind"}, NotEntered: 3}}}, time.Now())
	assert.Contains(t, strings.Join(strings.Fields(out.String()), " "), "mounted at notes/bind; 3 lookups refused")
}

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
	if os.Geteuid() != 0 {
		return
	}
	assert.OK(t, os.Mkdir(w.path("closed"), 0o700))
	w.openToOthers()
	w.cred = nobody // what another user has there is not nothing
	w.refused(exit.Denied, "permission denied", "--state-dir", w.path("closed"), "recover")
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
