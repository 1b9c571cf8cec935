package ops

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// The dirty intent is on record when an open for writing returns, and ends with the last
// writer.
func TestDirtyIntent(t *testing.T) {
	for _, c := range []struct {
		flags      uint32
		want, then bool // at once; and when what was changed has been taken
	}{
		{syscall.O_RDONLY, false, false}, {syscall.O_WRONLY, true, true}, {syscall.O_RDWR, true, true}, {syscall.O_RDONLY | syscall.O_TRUNC, true, false},
	} {
		w := newWorld(t)
		ino := w.there("f", "hello")
		o := w.open(ino, c.flags)
		assert.Equal(t, w.inode(ino).Writing, c.want, "flags", c.flags, "intent")
		second := w.open(ino, c.flags)
		w.shut(o)
		assert.Equal(t, w.inode(ino).Writing, c.then, "flags", c.flags, "intent with one writer left")
		w.shut(second)
		assert.False(t, w.inode(ino).Writing, "flags", c.flags, "intent after the last writer")
	}
}

// An open fetches what it may need of a version that goes: a small file in whole when it is
// read, nothing when all may be overwritten. It asks for what it does not have.
func TestWhatAnOpenFetches(t *testing.T) {
	none, hello := uint64(0), "read f"
	for what, c := range map[string]struct {
		do   func(w *world, ino fs.Ino)
		want string // what was asked
		text string
	}{
		"read":       {func(w *world, ino fs.Ino) { w.shut(w.open(ino, syscall.O_RDONLY)) }, hello, "hello"},
		"read write": {func(w *world, ino fs.Ino) { w.shut(w.open(ino, syscall.O_RDWR)) }, "attributes false " + hello, "hello"},
		"append": {func(w *world, ino fs.Ino) {
			o := w.open(ino, syscall.O_WRONLY|syscall.O_APPEND)
			w.write(o, "!", 0)
			w.shut(o)
		}, "attributes false " + hello + " wait", "hello!"},
		"write": {func(w *world, ino fs.Ino) {
			o := w.open(ino, syscall.O_WRONLY)
			w.write(o, "other", 0)
			w.shut(o)
		}, "attributes false wait", "other"},
		"empty": {func(w *world, ino fs.Ino) {
			o := w.open(ino, syscall.O_WRONLY|syscall.O_TRUNC)
			w.write(o, "x", 0)
			w.shut(o)
		}, "attributes false wait", "x"},
		"truncate": {func(w *world, ino fs.Ino) {
			assert.OK(w, assert.ErrOf(w.SetAttr(me, ino, nil, &fs.SetAttr{Size: &none})))
		}, "attributes false", ""},
	} {
		w := newWorld(t)
		ino := w.there("f", "hello")
		c.do(w, ino)
		assert.Equal(t, strings.Join(w.asked, " "), c.want, what)
		w.asked = nil
		o := w.open(ino, syscall.O_RDONLY)
		assert.Equal(t, w.read(o), c.text, what)
		w.shut(o)
		assert.Slice(t, w.asked, nil, what, "what is whole is asked for again")
	}
}

// What the kernel may do with an open file: keep its pages, read past us, not tell of a close.
func TestOpened(t *testing.T) {
	w := newWorld(t)
	ino := w.there("f", "hello")
	type may struct{ keep, pass, noFlush bool }
	open := func(what string, flags uint32, want may) fs.Opened {
		t.Helper()
		o := w.open(ino, flags)
		assert.True(t, (may{o.KeepCache, o.PassRead, o.NoFlush}) == want && !o.PassWrite && !o.Direct, what, o, "want", want)
		return o
	}
	first := open("first", syscall.O_RDONLY, may{false, true, true})
	again := open("second", syscall.O_RDONLY, may{true, true, true})
	assert.True(t, again.Backing == first.Backing && first.Backing > 0, "backing files", first.Backing, "and", again.Backing)
	again.File.Release()
	first.File.Release()
	writer := open("writer", syscall.O_RDWR, may{true, false, false})
	w.write(writer, "j", 0)
	dirty := open("reader of unsaved content", syscall.O_RDONLY, may{true, false, true}) // the kernel's pages have what was written
	assert.OK(t, writer.File.Flush(me))
	beside := open("reader beside a writer", syscall.O_RDONLY, may{true, false, true})
	w.shut(writer)
	clean := open("after the close", syscall.O_RDONLY, may{true, true, true}) // though the remote lacks it
	assert.Equal(t, w.read(clean), "jello")
	for _, o := range []fs.Opened{dirty, beside, clean} {
		o.File.Release()
	}
	ino = w.there("held", "hello") // by a program of the mount before, which goes on writing it
	w.update(func(tx *tree.Tx) { tx.Edit(table.Ino(ino)).Writing = true })
	held := w.open(ino, syscall.O_RDONLY)
	assert.False(t, held.PassRead, "content that another may be writing is passed through")
	held.File.Release()
	far := w.open(w.there("far", strings.Repeat("x", firstFetch+1)), syscall.O_RDONLY)
	assert.False(t, far.PassRead, "content that did not come yet is passed through")
	far.File.Release()
}

// A close and an fsync wait for the remote where that is the policy, unless nothing of the
// file goes there: it is only local, a new name without content, or empty for a moment.
func TestWhoWaitsForTheRemote(t *testing.T) {
	const noWait, waits = true, false
	flush := func(o fs.Opened) error { return o.File.Flush(me) }
	fsync := func(o fs.Opened) error { return o.File.Fsync(me, false) }
	for _, c := range []struct {
		what, name, text string
		noWait           bool
		do               func(fs.Opened) error
		want             string
		synced           bool // on this disk
	}{
		{"close", "f", "x", waits, flush, "wait", false}, {"close", "f", "", waits, flush, "", false}, {"fsync", "f", "x", waits, fsync, "wait", false},
		{"fsync", "f", "x", noWait, fsync, "wait", true}, {"fsync", "f.o", "x", waits, fsync, "", true},
	} {
		w := newWorld(t, func(o *Options) { o.NoWait = c.noWait })
		e, o, err := w.Create(me, fs.RootIno, c.name, syscall.O_RDWR, 0o644)
		assert.OK(t, err)
		if c.text != "" {
			w.write(o, c.text, 0)
		}
		w.asked = nil
		assert.OK(t, c.do(o), c.what, c.name)
		assert.Equal(t, strings.Join(w.asked, " "), c.want, c.what, c)
		assert.Equal(t, w.o.Syncs.HasNames(), c.synced, c.what, c, "the disk has its name")
		n := w.inode(e.Ino)
		assert.Equal(t, n.Size, int64(len(c.text)), "bytes in the table")
		o.File.Release()
	}
	for wait, want := range map[bool]string{waits: "wait for names", noWait: ""} {
		w := newWorld(t, func(o *Options) { o.NoWait = wait })
		w.mkdir("d")
		d := assert.Of(w.OpenDir(me, fs.RootIno)).OK(t)
		assert.OK(t, d.Fsync(me, false))
		assert.Equal(t, strings.Join(w.asked, " "), want, "of a directory, no wait", wait)
		assert.Equal(t, w.o.Syncs.HasNames(), wait, "the disk has its names")
	}
}

// An fsync of a file or a directory brings every change of names before it to the disk.
func TestFsyncOfNames(t *testing.T) {
	for _, ofDir := range []bool{true, false} {
		w := newWorld(t)
		w.put("f", "1")
		f, root := w.open(w.walk("f"), syscall.O_RDWR), assert.Of(w.OpenDir(me, fs.RootIno)).OK(t)
		for _, change := range []func() error{
			func() error { w.put("new", ""); return nil },
			func() error { return w.Rename(me, fs.RootIno, "new", fs.RootIno, "renamed", 0) },
			func() error { w.mkdir("dir"); return nil },
			func() error {
				return assert.ErrOf(w.SetAttr(me, w.walk("dir"), nil, &fs.SetAttr{Mode: new(uint32(0o700))}))
			},
			func() error { return w.SetXattr(me, w.walk("dir"), "user.x", []byte("y"), 0) },
		} {
			assert.OK(t, change())
			if ofDir {
				assert.OK(t, root.Fsync(me, false))
			} else {
				w.write(f, "2", 0)
				assert.OK(t, f.File.Fsync(me, false))
			}
			assert.True(t, w.o.Syncs.HasNames(), "the disk does not have all names")
		}
		f.File.Release()
		w.crash(true)
		n := w.inode(w.walk("dir"))
		assert.True(t, n.Mode&0o777 == 0o700 && string(n.Xattrs["user.x"]) == "y" && w.walk("renamed") != 0, "of a directory", ofDir, "leaves", n)
	}
}

// An open that shows nothing of what is there asks as little as a look at names does.
func TestStrictOpens(t *testing.T) {
	for flags, want := range map[uint32]bool{
		syscall.O_RDONLY: true, syscall.O_RDWR: true, syscall.O_WRONLY | syscall.O_APPEND: true,
		syscall.O_WRONLY: false, syscall.O_WRONLY | syscall.O_TRUNC: false, syscall.O_RDWR | syscall.O_TRUNC: false,
	} {
		strict := !want
		w := newWorld(t, func(o *Options) {
			o.Remote.Freshen = func(_ *fs.Op, _ table.Ino, is bool) error { strict = is; return nil }
		})
		w.shut(w.open(w.put("f", "1"), flags))
		assert.Equal(t, strict, want, "flags", flags, "strict")
	}
}

// A file that takes another's name before it is closed takes what was written along, and its
// content carries where it belongs.
func TestRenameOfAnOpenFile(t *testing.T) {
	w := newWorld(t)
	w.mkdir("d")
	w.put("d/f", "old")
	_, o, err := w.Create(me, fs.RootIno, "new", syscall.O_WRONLY, 0o644)
	assert.OK(t, err)
	w.write(o, "newer", 0)
	assert.OK(t, w.Rename(me, fs.RootIno, "new", w.walk("d"), "f", 0))
	ino := w.walk("d/f")
	assert.Equal(t, w.inode(ino).Size, 5, "size")
	w.shut(o)
	assert.OK(t, w.o.Store.Each(func(of uint64, path string, _ int64, _ bool) {
		assert.True(t, of != uint64(ino) || path == "d/f", "the content says that it belongs to", path)
	}))
}

// What replaces another file is on its way to the disk before it has the name: of a program
// that saves so, and asks for no sync, a loss of power later on takes neither.
func TestRenameOverBeginsToWrite(t *testing.T) {
	w := newWorld(t)
	w.put("f", "old")
	var path string
	tier.Dirty(t, func() string {
		if ino := w.walk("new"); ino != 0 {
			assert.OK(t, w.Unlink(me, fs.RootIno, "new"))
		}
		path = filepath.Join(w.dir, "data/00", strconv.FormatUint(uint64(w.put("new", strings.Repeat("x", 64<<10))), 10))
		return path
	})
	assert.OK(t, w.Rename(me, fs.RootIno, "new", fs.RootIno, "f", 0))
	assert.Equal(t, tier.DirtyPages(t, path), 0, "pages that nothing writes to the disk")
}

// A file without a name is local, and would be freed after a crash, until a link gives it one.
func TestTmpfile(t *testing.T) {
	w := newWorld(t)
	e, o, err := w.Tmpfile(me, fs.RootIno, syscall.O_RDWR, 0o666)
	assert.OK(t, err)
	w.write(o, "hidden", 0)
	assert.OK(t, o.File.Flush(me))
	isOrphan := func() bool {
		v := w.o.Tree.Lock()
		defer w.o.Tree.Unlock()
		return v.IsOrphan(table.Ino(e.Ino))
	}
	assert.True(t, isOrphan(), "after a crash nothing would free it")
	assert.OK(t, assert.ErrOf(w.Link(me, e.Ino, fs.RootIno, "f")))
	assert.False(t, isOrphan(), "after a crash it would be freed, with a name")
	w.shut(o)
	v := w.o.Tree.Lock()
	defer w.o.Tree.Unlock()
	assert.True(t, v.Record(table.Link{Dir: table.Root, Name: "f"}).Seq != 0, "its name is not to be sent")
}
