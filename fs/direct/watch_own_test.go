package direct

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/direct/internal/inotify"
	"github.com/wsmount/wsmount/integration/assert"
	"golang.org/x/sys/unix"
)

// The announcement of an own change is good for one report: what others do to the
// same name right after is seen.
func TestOthersAfterOwn(t *testing.T) {
	for _, c := range []struct {
		name   string
		own    func(v *Volume) error
		others func(path string) error
		want   note
	}{
		{"made after our removal",
			func(v *Volume) error {
				if _, err := v.Mknod(op(), wsfs.RootIno, "f", unix.S_IFREG|0o644, 0); err != nil {
					return err
				}
				return v.Unlink(op(), wsfs.RootIno, "f")
			},
			func(path string) error { return os.WriteFile(path, []byte("x"), 0o644) },
			note{"entry", wsfs.RootIno, "f"}},
		{"removed after our making",
			func(v *Volume) error {
				_, err := v.Mknod(op(), wsfs.RootIno, "f", unix.S_IFREG|0o644, 0)
				return err
			},
			os.Remove,
			note{"entry", wsfs.RootIno, "f"}},
		{"made anew after our making",
			func(v *Volume) error {
				_, err := v.Mknod(op(), wsfs.RootIno, "f", unix.S_IFREG|0o644, 0)
				return err
			},
			func(path string) error {
				if err := os.Remove(path); err != nil {
					return err
				}
				return os.Symlink("x", path)
			},
			note{"entry", wsfs.RootIno, "f"}},
	} {
		for _, wait := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				v, dir, r := serveWatched(t, tuning{})
				ok(t, c.own(v))
				if wait { // in a later batch
					flush(t, v, dir, r)
				}
				ok(t, c.others(filepath.Join(dir, "f")))
				r.wait(t, c.want)
			})
		}
	}
}

// Two reports, one after the other, of a name that we made once.
func TestOthersTwiceAfterOwn(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	path := filepath.Join(dir, "f")
	entry := note{"entry", wsfs.RootIno, "f"}
	must[wsfs.Entry](t)(v.Mknod(op(), wsfs.RootIno, "f", unix.S_IFREG|0o644, 0))
	flush(t, v, dir, r)
	ok(t, os.Remove(path))
	r.wait(t, entry)
	lookupNone(t, v, wsfs.RootIno, "f")
	before := r.count(entry)
	ok(t, os.Symlink("x", path))
	waitFor(t, "the new name to be told", func() bool { return r.count(entry) > before })
}

// Reports come behind what we do: those of a change that is not our last are
// explained by the last.
func TestReportsBehindOwn(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	mknod := func(name string) {
		must[wsfs.Entry](t)(v.Mknod(op(), wsfs.RootIno, name, unix.S_IFREG|0o644, 0))
	}
	for _, c := range []struct {
		name    string
		own     func()
		reports []uint32 // in batches of their own
	}{
		{"made, removed", func() { mknod("f"); ok(t, v.Unlink(op(), wsfs.RootIno, "f")) },
			[]uint32{unix.IN_CREATE, unix.IN_DELETE}},
		{"made, moved", func() { mknod("f"); ok(t, v.Rename(op(), wsfs.RootIno, "f", wsfs.RootIno, "g", 0)) },
			[]uint32{unix.IN_CREATE, unix.IN_MOVED_FROM}},
		{"moved over, removed", func() {
			mknod("f")
			mknod("h")
			ok(t, v.Rename(op(), wsfs.RootIno, "h", wsfs.RootIno, "f", 0))
			ok(t, v.Unlink(op(), wsfs.RootIno, "f"))
		}, []uint32{unix.IN_CREATE | unix.IN_MOVED_TO, unix.IN_DELETE}},
		{"made again and again", func() {
			for range 2 {
				mknod("f")
				ok(t, v.Unlink(op(), wsfs.RootIno, "f"))
			}
		}, []uint32{unix.IN_CREATE | unix.IN_DELETE, unix.IN_CREATE | unix.IN_DELETE}},
	} {
		w, k := v.watch, key{Dir: wsfs.RootIno, Name: "f"}
		j := w.judge() // what comes by itself comes last
		c.own()
		first := w.own.Know(k, 0).Batch
		for i, mask := range c.reports {
			j.report(inotify.Report{Key: k, Mask: mask}, first+uint64(i))
		}
		j.done()
		flush(t, v, dir, r)
		n := r.count(note{"entry", wsfs.RootIno, "f"})
		assert.Must(t, n == 0, c.name, "told the kernel", n, "times")
	}
	// What comes later is not ours.
	w, k := v.watch, key{Dir: wsfs.RootIno, Name: "f"}
	mknod("f")
	ok(t, v.Unlink(op(), wsfs.RootIno, "f"))
	j := w.judge()
	late := w.own.Know(k, 0).Batch + 2
	j.report(inotify.Report{Key: k, Mask: unix.IN_DELETE}, late)
	j.done()
	assert.Equal(t, r.count(note{"entry", wsfs.RootIno, "f"}), 1, "of others: told the kernel ... times")
}

// What a request saw of others after our removal is told when it is gone.
func TestOthersComeAndGoAfterOwn(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	must[wsfs.Entry](t)(v.Mknod(op(), wsfs.RootIno, "f", unix.S_IFREG|0o644, 0))
	flush(t, v, dir, r)
	j := v.watch.judge() // no report now
	ok(t, v.Unlink(op(), wsfs.RootIno, "f"))
	writeFile(t, "x", dir, "f")
	lookup(t, v, wsfs.RootIno, "f")
	ok(t, os.Remove(filepath.Join(dir, "f")))
	j.done()
	r.wait(t, note{"entry", wsfs.RootIno, "f"})
}

// What a request changes after a report was looked into, and before what was seen is
// entered, is not undone: an inode keeps a name or a descriptor that leads to it.
func TestOwnChangeAfterALook(t *testing.T) {
	root := wsfs.RootIno
	// An attempt that fails ends what is known of a name.
	attempt := func(t *testing.T, v *Volume, name string) {
		wantErr(t, v.Rmdir(op(), root, name), syscall.ENOTDIR)
	}
	for _, c := range []struct {
		name    string
		others  func(dir string) error // is reported
		own     func(t *testing.T, v *Volume, f wsfs.Ino)
		reports string // the name whose report is looked into
	}{
		{"unlink of a link",
			func(dir string) error { return os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "g")) },
			func(t *testing.T, v *Volume, _ wsfs.Ino) { ok(t, v.Unlink(op(), root, "g")) }, "g"},
		{"rename of a link",
			func(dir string) error { return os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "g")) },
			func(t *testing.T, v *Volume, _ wsfs.Ino) { ok(t, v.Rename(op(), root, "g", root, "h", 0)) }, "g"},
		{"unlink of a link after an attempt",
			func(dir string) error { return os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "g")) },
			func(t *testing.T, v *Volume, _ wsfs.Ino) {
				attempt(t, v, "g")
				ok(t, v.Unlink(op(), root, "g"))
			}, "g"},
		{"rename to a name that was free",
			func(dir string) error {
				g := filepath.Join(dir, "g")
				if err := os.Mkdir(g, 0o755); err != nil {
					return err
				}
				return os.Remove(g)
			},
			func(t *testing.T, v *Volume, _ wsfs.Ino) { ok(t, v.Rename(op(), root, "f", root, "g", 0)) }, "g"},
		{"rename to a name that was free, and an attempt",
			func(dir string) error {
				g := filepath.Join(dir, "g")
				if err := os.Mkdir(g, 0o755); err != nil {
					return err
				}
				return os.Remove(g)
			},
			func(t *testing.T, v *Volume, _ wsfs.Ino) {
				ok(t, v.Rename(op(), root, "f", root, "g", 0))
				attempt(t, v, "g")
			}, "g"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var then atomic.Pointer[func()]
			v, dir, r := serveWatched(t, tuning{looked: func(k key) {
				if k.Name == c.reports {
					if f := then.Swap(nil); f != nil {
						(*f)()
					}
				}
			}})
			f := create(t, v, root, "f", "x")
			flush(t, v, dir, r)
			var done atomic.Bool
			own := func() { c.own(t, v, f.Ino); done.Store(true) }
			then.Store(&own)
			j := v.watch.judge() // no report before others are done
			ok(t, c.others(dir))
			j.done()
			waitFor(t, "the report to be looked into", done.Load)
			attr(t, v, f.Ino)
			flush(t, v, dir, r)
			attr(t, v, f.Ino)
		})
	}
}

// A write of ours after a file was looked at is not taken for others' doing: not by a
// report that was being looked into, and not by a request.
func TestOwnWriteAfterALook(t *testing.T) {
	root := wsfs.RootIno
	var then atomic.Pointer[func()]
	v, dir, r := serveWatched(t, tuning{looked: func(k key) {
		if k.Name == "f" {
			if f := then.Swap(nil); f != nil {
				(*f)()
			}
		}
	}})
	f := create(t, v, root, "f", "x")
	o := must[wsfs.Opened](t)(v.Open(op(), f.Ino, unix.O_WRONLY))
	o.File.(wsfs.Unpassed).Unpassed() // the kernel sends the writes, also to root
	flush(t, v, dir, r)
	before := r.all()
	write := func() { must[int](t)(o.File.Write(op(), []byte("y"), int64(attr(t, v, f.Ino).Size))) }
	silent := func(what string) {
		t.Helper()
		flush(t, v, dir, r)
		for _, n := range []note{{kind: "content", ino: f.Ino}, {kind: "attr", ino: f.Ino}, {kind: "wrote", name: "f"}} {
			assert.Equal(t, r.count(n), before[n], what, n)
		}
	}
	var done atomic.Bool
	own := func() { write(); done.Store(true) }
	then.Store(&own)
	write()
	waitFor(t, "the report to be looked into", done.Load)
	silent("a report")

	h := must[*handle](t)(v.res.hold(f.Ino))
	defer h.drop()
	for what, enter := range map[string]func(st *stat){
		"attributes": func(st *stat) { v.told(f.Ino, st, true, false) },
		"a lookup": func(st *stat) {
			must[wsfs.Entry](t)(v.enterName(v.root, v.disk.identOf(h.fd, "", st), root, "f", st, true, false))
		},
	} {
		var st stat
		ok(t, statAt(h.fd, "", &st))
		write()
		enter(&st)
		silent(what)
	}
	o.File.Release()
}
