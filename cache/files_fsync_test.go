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

// An fsync of a file or a directory brings every change of names before it to the disk.
func TestFsyncOfNames(t *testing.T) {
	for what, sync := range map[string]func(w *world, o fs.Opened) error{
		"file": func(w *world, o fs.Opened) error {
			w.write(o, "2", 0)
			return o.File.Fsync(me, false)
		},
		"directory": func(w *world, _ fs.Opened) error { return w.syncRoot() },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, onlyAsked, onOneDisk)
				o := w.create("f")
				w.write(o, "1", 0)
				w.ok(o.File.Fsync(me, false))
				mode := uint32(0o600)
				for _, change := range []func() error{
					func() error { return w.put("new", "") },
					func() error { return w.rename("new", "renamed") },
					func() error { w.mkdir("dir"); return nil },
					func() error { _, err := w.v.SetAttr(me, w.walk("dir"), nil, &fs.SetAttr{Mode: &mode}); return err },
					func() error { return w.v.SetXattr(me, w.walk("dir"), "user.x", []byte("y"), 0) },
				} {
					w.ok(change())
					w.ok(sync(w, o))
					assert.True(t, w.v.tableSync.HasNames(), "the disk does not have all names")
				}
				w.powerLostBetween()
				n := w.record("dir")
				assert.True(t, n.Mode&0o777 == 0o600 && string(n.Xattrs["user.x"]) == "y", "the directory is", n)
				w.record("renamed")
			})
		})
	}
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
