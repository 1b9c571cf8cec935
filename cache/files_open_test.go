package cache

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// firstFetch is how much of a file comes before its open returns.
const firstFetch = 1 << 20

// settable is a time that a test sets.
type settable struct{ now atomic.Int64 }

func (c *settable) option(_ *world, o *Options) {
	c.now.Store(time.Now().UnixNano())
	o.Now = func() time.Time { return time.Unix(0, c.now.Load()) }
}

func (c *settable) add(d time.Duration) { c.now.Add(int64(d)) }

// The intent to change is on record when an open for writing returns, and ends
// with the last writer.
func TestDirtyIntent(t *testing.T) {
	for _, c := range []struct {
		name       string
		flags      uint32
		want, then bool // at once; and when what was changed has been taken
	}{
		{"reader", syscall.O_RDONLY, false, false},
		{"writer", syscall.O_WRONLY, true, true},
		{"both", syscall.O_RDWR, true, true},
		{"cut by a reader", syscall.O_RDONLY | syscall.O_TRUNC, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, unwaited, holding("f", "hello"))
			ino := w.walk("f")
			o := w.open("f", c.flags)
			assert.Equal(t, w.inode(ino).Writing, c.want, "intent")
			second := w.open("f", c.flags)
			w.ok(w.shut(o))
			assert.Equal(t, w.inode(ino).Writing, c.then, "the intent with one writer left")
			w.ok(w.shut(second))
			assert.False(t, w.inode(ino).Writing, "the intent outlives the last writer")
		})
	}
}

// stat of an open file is what was written, at the time of the write; a time
// that a program sets is not moved by a close.
func TestStatOfAnOpenFile(t *testing.T) {
	var c settable
	w := newWorld(t, unwaited, c.option, holding("f", "hello"))
	ino := w.walk("f")
	o := w.open("f", syscall.O_RDWR)
	stat := func(what string, size uint64, mtime time.Time) {
		t.Helper()
		for _, f := range []fs.File{nil, o.File} {
			a := assert.Of(w.v.Attr(me, ino, f)).OK(w)
			assert.True(t, a.Size == size && a.Mtime.Equal(mtime), what, a.Size, "bytes of", a.Mtime, "want", size, "of", mtime)
		}
	}
	c.add(time.Hour)
	w.write(o, " world", 5)
	wrote := time.Unix(0, c.now.Load())
	c.add(time.Hour)
	stat("written", 11, wrote)
	w.ok(o.File.Flush(me))
	stat("flushed", 11, wrote)
	assert.Equal(t, w.inode(ino).Ctime, table.TimeOf(wrote), "a close moves the time of the change that stat has shown")
	c.add(time.Hour)
	w.write(o, "!", 11)
	past := time.Unix(1_000_000_000, 5)
	w.ok(assert.ErrOf(w.v.SetAttr(me, ino, o.File, &fs.SetAttr{Mtime: &past})))
	stat("set", 12, past)
	c.add(time.Hour)
	w.ok(w.shut(o))
	n := w.inode(ino)
	assert.True(t, n.Size == 12 && n.Mtime == table.TimeOf(past) && n.Ctime == table.Stamp(c.now.Load()-int64(time.Hour)), "closed", n)
	c.add(time.Hour)
	size := uint64(12)
	w.ok(assert.ErrOf(w.v.SetAttr(me, ino, nil, &fs.SetAttr{Size: &size})))
	assert.Equal(t, w.inode(ino).Mtime, table.Stamp(c.now.Load()), "a truncation to the same size does not move the time")
}

// An open that cuts a file to nothing fetches nothing; nor does truncate(2), or
// an open only to write.
func TestWhatFetchesNothing(t *testing.T) {
	var c calls
	none := uint64(0)
	for _, row := range []struct {
		name string
		do   func(w *world)
		want string
	}{
		{"open", func(w *world) {
			o := w.open("f", syscall.O_WRONLY|syscall.O_TRUNC)
			w.writeLast(o, "x", 0)
		}, "x"},
		{"truncate", func(w *world) {
			w.setAttr("f", &fs.SetAttr{Size: &none})
		}, ""},
		{"write all", func(w *world) { o := w.open("f", syscall.O_WRONLY); w.write(o, "other", 0); w.ok(w.shut(o)) }, "other"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, unwaited, recording(&c), holding("f", "hello"))
			row.do(w)
			assert.Equal(t, c.of(providers.MethodRead), 0, "reads")
			assert.Equal(t, w.get("f"), row.want)
		})
	}
}

// A small file is here in whole when its open returns, and stays.
func TestOpenFetches(t *testing.T) {
	var c calls
	w := newWorld(t, unwaited, recording(&c), holding("f", "hello"))
	o := w.open("f", syscall.O_RDONLY)
	assert.Equal(t, c.of(providers.MethodRead), 1, "reads at the open")
	assert.Equal(t, w.read(o), "hello")
	o.File.Release()
	n := w.inode(w.walk("f"))
	assert.True(t, n.State == table.Whole && n.Origin.Version != (providers.Version{}), "content is", n.State, "of", n.Origin.Version)
	w.again()
	got := w.get("f")
	assert.True(t, got == "hello" && c.of(providers.MethodRead) == 0, "got", got, "after another fetch")
}

// What the kernel may do with an open file.
func TestOpened(t *testing.T) {
	w := newWorld(t, holding("f", "hello"))
	type may struct{ keep, pass, noFlush bool }
	is := func(what string, o fs.Opened, want may) {
		t.Helper()
		assert.True(t, (may{o.KeepCache, o.PassRead, o.NoFlush}) == want && !o.PassWrite && !o.Direct, what, o, "want", want)
	}
	first := w.open("f", syscall.O_RDONLY)
	is("first", first, may{false, true, true})
	again := w.open("f", syscall.O_RDONLY)
	is("second", again, may{true, true, true})
	assert.True(t, again.Backing == first.Backing && first.Backing > 0, "backing files", first.Backing, "and", again.Backing)
	again.File.Release()
	first.File.Release()

	writer := w.open("f", syscall.O_RDWR)
	is("writer", writer, may{true, false, false})
	w.write(writer, "j", 0)
	dirty := w.open("f", syscall.O_RDONLY)
	is("reader of unsaved content", dirty, may{true, false, true}) // the kernel's pages have what was written
	w.ok(writer.File.Flush(me))
	beside := w.open("f", syscall.O_RDONLY)
	is("reader beside a writer", beside, may{true, false, true})
	w.ok(w.shut(writer))
	clean := w.open("f", syscall.O_RDONLY)
	is("after the close", clean, may{true, true, true})
	assert.Equal(t, w.read(clean), "jello")
	for _, o := range []fs.Opened{dirty, beside, clean} {
		o.File.Release()
	}
}

// Content is passed through before the backend has it, too; not what is not all
// here.
func TestPassedThrough(t *testing.T) {
	big := strings.Repeat("x", 9<<20)
	w := newWorld(t, unwaited, holding("f", "hello", "far", big))
	w.ok(w.put("f", "other"))
	assert.True(t, w.open("f", syscall.O_RDONLY).PassRead, "content that the backend lacks is not passed through")
	assert.False(t, w.open("far", syscall.O_RDONLY).PassRead, "content that did not come yet is passed through")
}

// Set-user-id bits and capabilities end with a change by who may not keep them.
func TestKillPriv(t *testing.T) {
	w := newWorld(t, unwaited)
	op := &fs.Op{UID: 7, GID: 8, KillPriv: true}
	o := w.create("f")
	ino := w.walk("f")
	size := uint64(1)
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"write", func() error { _, err := o.File.Write(op, []byte("x"), 0); return err }},
		{"truncate", func() error { _, err := w.v.SetAttr(op, ino, o.File, &fs.SetAttr{Size: &size}); return err }},
		{"allocate", func() error { return o.File.Allocate(op, 0, 10, 0) }},
		{"open", func() error {
			o, err := w.v.Open(op, ino, syscall.O_WRONLY|syscall.O_TRUNC)
			o.File.Release()
			return err
		}},
	} {
		mode := uint32(0o6755)
		w.ok(assert.ErrOf(w.v.SetAttr(me, ino, nil, &fs.SetAttr{Mode: &mode})))
		w.ok(w.v.SetXattr(me, ino, "security.capability", []byte("c"), 0))
		w.ok(c.do())
		if n := w.inode(ino); n.Mode&0o7777 != 0o755 || len(n.Xattrs) != 0 {
			t.Errorf("%s: mode %o, attributes %v", c.name, n.Mode, n.Xattrs)
		}
	}
	w.ok(w.shut(o))
}

// A file that takes another's name before it is closed takes what was written.
func TestRenameAbsorbs(t *testing.T) {
	w := newWorld(t, unwaited, holding("f", "old"))
	o := w.create("f.tmp")
	w.write(o, "newer", 0)
	w.ok(w.rename("f.tmp", "f"))
	assert.Equal(t, w.inode(w.walk("f")).Size, 5, "size")
	w.ok(w.shut(o))
}

// The content files carry where they belong, for the time when there is no
// table.
func TestContentKnowsItsPath(t *testing.T) {
	w := newWorld(t, unwaited)
	w.do("mkdir d", "put d/f x", "mv d/f d/g")
	w.stop()
	found := map[string]bool{}
	w.ok(w.v.store.Each(func(_ uint64, path string, _ int64, _ bool) { found[path] = true }))
	assert.True(t, found["d/g"], "content of", found)
}

// So do those of a run that was killed, once there was another.
func TestContentOfTheKilledKnowsItsPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, unwaited, holding("clean", "x"))
		w.get("clean")
		w.do("mkdir d", "put d/f x")
		w.killed()
		synctest.Wait() // for the sweep
		w.stop()
		var found []string
		w.ok(w.v.store.Each(func(_ uint64, path string, _ int64, _ bool) { found = append(found, path) }))
		slices.Sort(found)
		assert.Slice(t, found, []string{"", "d/f"}, "content of")
	})
}

// A file that was opened to be changed keeps its version: what another writes
// between the open and the first write is a conflict of the close, not an error of
// the write.
func TestAppendKeepsItsVersion(t *testing.T) {
	for _, flags := range []uint32{syscall.O_WRONLY | syscall.O_APPEND, syscall.O_RDWR | syscall.O_APPEND, syscall.O_RDWR} {
		t.Run(fmt.Sprintf("flags %#x", flags), func(t *testing.T) {
			w := newWorld(t, holding("f", "1234"))
			o := w.open("f", flags)
			w.tamper("f", "other")
			w.writeLast(o, "more", 4)
			w.backend("f: other", "f.conflict-"+short("1234more")+": 1234more")
		})
	}
}

// Of a large file an append needs nothing, but the rest is sent with it: that its
// version is gone is found out before anybody appends to it.
func TestAppendToLargeFile(t *testing.T) {
	w := newWorld(t, unwaited, holding("f", strings.Repeat("1", firstFetch+5)))
	x := w.walk("f")
	w.tamper("f", "other")
	o := w.openIno(x, syscall.O_WRONLY|syscall.O_APPEND)
	w.writeLast(o, "more", firstFetch+5)
	w.upload()
	w.backend("f: othermore")
}

// Whoever opens a file to append to it when the version that was listed is gone
// gets the one that there is, as a reader does: nobody has seen or changed a byte.
func TestAppendToWhatOthersReplaced(t *testing.T) {
	for _, flags := range []uint32{syscall.O_WRONLY | syscall.O_APPEND, syscall.O_RDWR | syscall.O_APPEND} {
		t.Run(fmt.Sprintf("flags %#x", flags), func(t *testing.T) {
			w := newWorld(t, onlyAsked, holding("f", "1"))
			ino := w.walk("f")
			w.tamper("f", "22")
			o := w.openIno(ino, flags)
			w.writeLast(o, "a", 2)
			w.upload()
			w.backend("f: 22a")
			w.same()
		})
	}
}
