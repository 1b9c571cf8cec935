package cache

import (
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// What was synced is there after a loss of power, and is known to differ from
// what the backend has, though the table was not synced again for it.
func TestFsyncOfContentAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, onlyAsked, onOneDisk, holding("f", "theirs"))
		w.get("f")
		o := w.open("f", syscall.O_RDWR)
		w.write(o, "1", 0)
		w.ok(o.File.Fsync(me, false))
		known := w.record("f").ContentVersion
		for range 3 {
			w.write(o, "two", 0)
			w.ok(o.File.Fsync(me, false))
		}
		w.powerLostBetween()
		assert.Equal(t, w.get("f"), "twoirs")
		n := w.record("f")
		assert.True(t, n.Suspect, "nobody knows whether it was synced")
		assert.Equal(t, n.ContentVersion, known+1, "the state, where the table on the disk had more than", known)
		w.backend("f: theirs")
	})
}

// syncRoot is fsync(2) of the root.
func (w *world) syncRoot() error {
	w.Helper()
	d := assert.Of(w.v.OpenDir(me, fs.RootIno)).OK(w)
	defer d.Release()
	return d.Fsync(me, false)
}

// Where closes wait for the backend, an fsync of a directory does for its names.
func TestFsyncOfADirectoryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, open := w.gate(providers.MethodMkdir)
		w.mkdir("d")
		synced := async(func() { assert.Is(t, w.syncRoot(), nil) })
		synctest.Wait()
		assert.False(t, hasEnded(synced), "it did not wait for the backend")
		open()
		<-synced
		w.backend("d/")
	})
}

// An fsync of what was written and closed before, by whoever has opened it since, brings
// its name to the disk and leaves nothing suspect.
func TestFsyncOfAClosedFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, onlyAsked, onOneDisk)
		w.ok(w.put("f", "x"))
		o := w.open("f", syscall.O_RDONLY)
		assert.False(t, w.record("f").Writing, "its content is changing")
		w.ok(o.File.Fsync(me, false))
		w.ok(w.shut(o))
		w.powerLostBetween()
		assert.Equal(t, w.get("f"), "x")
		assert.False(t, w.record("f").Suspect, "it is suspect")
	})
}
