package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// gives is a Room.
type gives func() bool

func (g gives) MakeRoom(int64) bool { return g() }

func (gives) Usage() string { return "the content takes 12 KiB" }

// What a mount writes beside its files gets the room of the ballast on a full disk, and
// of what the mount can give up; when there is no more of that, the error says what to
// do.
func TestFullDisk(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	if err := errors.Join(os.Mkdir(root, 0o700), unix.Mount("none", root, "tmpfs", 0, "size=256k,mode=700")); err != nil {
		tier.RequireRoot(t) // to mount a disk
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	put := func(name string, size int) {
		t.Helper()
		err := os.WriteFile(name, make([]byte, size), 0o600)
		assert.Must(t, err == nil || errors.Is(err, unix.ENOSPC), err)
	}
	fill := func(name string) { put(filepath.Join(root, name), 512<<10) }
	d := open(t, root)
	assert.OK(t, os.Mkdir(Shared(root), 0o700))
	clean := filepath.Join(root, "clean")
	put(Ballast(root), 16<<10)
	put(clean, 16<<10)
	fill("other")
	status := make([]byte, 10<<10)
	assert.OK(t, d.SaveStatus(status), "with a ballast")
	fill("more")
	d.room = gives(func() bool { return os.Remove(clean) == nil })
	assert.OK(t, d.SaveStatus(status), "with something to give up")
	fill("yet more")
	err := d.SaveStatus(status)
	e := exit.From(err)
	assert.True(t, IsFull(err) && strings.Contains(e.Advice, "cache clear"), "with nothing left", e.Advice, err)
	for _, want := range []string{root, "KiB of 0 MiB are free", gives(nil).Usage()} {
		assert.Contains(t, fmt.Sprint(err), want, err, "does not say")
	}
	b, _, err := (&Record{Dir: d.Path()}).Status()
	assert.True(t, err == nil && len(b) == len(status), "the status before has", len(b), "bytes", err)
}

// However often something can be given up, trying ends.
func TestFullDiskEnds(t *testing.T) {
	tries := 0
	err := WhileFull(t.TempDir(), gives(func() bool { return true }), func() error { tries++; return unix.EDQUOT })
	assert.True(t, IsFull(err) && tries == fullTries, tries, "tries", err)
}
