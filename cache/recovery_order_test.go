package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
)

// onOneDisk has a table that can lose what was not synced, which content beside
// it does not.
func onOneDisk(w *world, o *Options) {
	disk := vfs.NewCrashableMem()
	w.makeDir(disk, o.StateDir)
	o.names = disk
	o.pause = newManual().pause // nothing comes by itself
}

// makeDir makes a directory that a loss of power leaves.
func (w *world) makeDir(disk *vfs.MemFS, path string) {
	w.Helper()
	w.ok(disk.MkdirAll(path, 0o700))
	for dir := path; ; dir = filepath.Dir(dir) {
		d := assert.Of(disk.OpenDir(dir)).OK(w)
		w.ok(d.Sync())
		w.ok(d.Close())
		if dir == "/" {
			return
		}
	}
}

// powerLostBetween goes on with content as it is now and the table as of its
// last sync: a journal may have brought everything else to the disk. It is called in a
// bubble.
func (w *world) powerLostBetween() {
	w.Helper()
	synctest.Wait() // for what goes on in the background
	from := w.o.StateDir
	w.powerLost(func(dir string) { // content first: what goes after that has not reached the disk
		disk := w.o.names.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})
		w.ok(disk.MkdirAll(dir, 0o700))
		w.ok(disk.Rename(filepath.Join(from, "names"), filepath.Join(dir, "names")))
		w.o.names = disk
	})
}

func (w *world) putSynced(path, content string) {
	w.Helper()
	dir, name := w.dirOf(path)
	_, o, err := w.v.Create(me, dir, name, syscall.O_RDWR, 0o666)
	w.ok(err)
	w.write(o, content, 0)
	w.ok(o.File.Fsync(me, false))
	w.ok(w.shut(o))
}

// A name that comes back because its end did not reach the disk comes back with
// what was synced.
func TestRecoverContentOfNamesThatComeBack(t *testing.T) {
	ends := map[string]func(w *world) error{
		"unlink": func(w *world) error { return w.unlink("f") },
		"rename": func(w *world) error { return w.rename("new", "f") },
		"empty":  func(w *world) error { return w.rename("touched", "f") },
	}
	for what, end := range ends {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, onlyAsked, onOneDisk)
				w.do("put touched ", "put new new")
				w.putSynced("f", "precious")
				ino := w.walk("f")
				locked := w.v.lock()
				refs := locked.References(table.Ino(ino))
				locked.unlock()
				w.v.Forget(ino, refs)
				w.ok(end(w))
				w.powerLostBetween()
				if got := w.get("f"); got != "precious" {
					t.Errorf("got %q, problems %v", got, w.v.Status().Problems)
				}
			})
		})
	}
}

// What was removed for good is not rescued, though it is still there.
func TestRecoverLetsGoOfContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, onlyAsked, onOneDisk)
		o := w.create("f")
		ino := w.walk("f")
		w.write(o, "temporary", 0)
		w.ok(w.unlink("f"))
		w.v.Forget(ino, 100)
		w.write(o, "TEMPORARY", 0) // the history does not want it
		w.ok(w.shut(o))
		w.putSynced("g", "g") // and the table with it
		assert.OK(t, assert.ErrOf(os.Stat(dataFile(t, w.o.StateDir, ino))))
		w.powerLostBetween()
		synctest.Wait() // for the sweep
		w.noProblems()
		left, _ := filepath.Glob(filepath.Join(w.o.StateDir, "data", "*", fmt.Sprint(ino)))
		assert.True(t, len(left) == 0, "left over:", left)
		assert.Equal(t, w.get("g"), "g")
	})
}

// Content that was synced, sent and evicted is fetched again, though the table
// may not have come to the disk since it was sent.
func TestRecoverFetchesWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, onlyAsked, onOneDisk, func(_ *world, o *Options) { o.CacheSize = 1 })
		w.putSynced("f", "precious")
		w.v.Forget(w.walk("f"), 100)
		w.ok(w.sendAll())
		ino := w.walk("f")
		w.until(func() bool { return w.inode(ino).State == table.None })
		w.powerLostBetween()
		if got := w.get("f"); got != "precious" {
			t.Errorf("got %q, %+v", got, w.v.Status())
		}
	})
}
