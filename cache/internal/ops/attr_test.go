package ops

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/memory"
)

// acl gives another user, 9, something too: u::7 u:9:6 g::5 m::7 o::0.
var acl = []byte{2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 6, 0, 9, 0, 0, 0,
	4, 0, 5, 0, 255, 255, 255, 255, 16, 0, 7, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255}

// A directory that lost its name shows to who is still in it the size that ext4 shows: none
// after rmdir, what it was after a rename over it.
func TestSizeOfADirectoryWithoutAName(t *testing.T) {
	for want, take := range map[uint64]func(w *world) error{
		dirSize: func(w *world) error { return w.Rename(me, fs.RootIno, "other", fs.RootIno, "d", 0) },
		0:       func(w *world) error { return w.Rmdir(me, fs.RootIno, "d") },
	} {
		w := newWorld(t)
		w.mkdir("other")
		d := w.mkdir("d")
		assert.OK(t, take(w))
		a := assert.Of(w.Attr(me, d, nil)).OK(t)
		assert.True(t, a.Nlink == 0 && a.Size == want && a.Mode&syscall.S_IFMT == syscall.S_IFDIR, a.Nlink, "links, size", a.Size, "want", want, a)
	}
}

// stat of an open file is what was written, at the time of the write; a time that a program
// sets is not moved by a close.
func TestStatOfAnOpenFile(t *testing.T) {
	w := newWorld(t)
	ino := w.put("f", "hello")
	o := w.open(ino, syscall.O_RDWR)
	stat := func(what string, size uint64, mtime time.Time) {
		t.Helper()
		for _, f := range []fs.File{nil, o.File} {
			a := assert.Of(w.Attr(me, ino, f)).OK(t)
			assert.True(t, a.Size == size && a.Mtime.Equal(mtime), what, a.Size, "bytes of", a.Mtime, "want", size, "of", mtime)
		}
	}
	later := func() time.Time { w.now = w.now.Add(time.Hour); return w.now }
	wrote := later()
	w.write(o, " world", 5)
	later()
	stat("written", 11, wrote)
	assert.OK(t, o.File.Flush(me))
	stat("flushed", 11, wrote)
	assert.Equal(t, w.inode(ino).Ctime, table.TimeOf(wrote), "a close moves the time of the change that stat has shown")
	later()
	w.write(o, "!", 11)
	past := time.Unix(1_000, 5)
	assert.OK(t, assert.ErrOf(w.SetAttr(me, ino, o.File, &fs.SetAttr{Mtime: &past})))
	stat("set", 12, past)
	set := table.TimeOf(w.now)
	later()
	w.shut(o)
	n := w.inode(ino)
	assert.True(t, n.Size == 12 && n.Mtime == table.TimeOf(past) && n.Ctime == set, "closed", n)
	size := uint64(12)
	later()
	assert.OK(t, assert.ErrOf(w.SetAttr(me, ino, nil, &fs.SetAttr{Size: &size})))
	assert.Equal(t, w.inode(ino).Mtime, table.TimeOf(w.now), "a truncation to the same size does not move the time")
}

// Reading does not change when a file was read last; what a program says of that goes
// nowhere. A time beyond what is kept becomes the nearest that is, and the answer says so.
func TestTimes(t *testing.T) {
	w := newWorld(t)
	ino := w.put("f", "1")
	was := w.inode(ino)
	w.now = w.now.Add(time.Hour)
	w.shut(w.open(ino, syscall.O_RDONLY))
	assert.Equal(t, w.inode(ino).Atime, was.Atime, "after a read")
	assert.OK(t, assert.ErrOf(w.SetAttr(me, ino, nil, &fs.SetAttr{AtimeNow: true})))
	n := w.inode(ino)
	assert.True(t, n.Atime == table.TimeOf(w.now) && n.Ctime == n.Atime && n.AttrGen == was.AttrGen, "set", n, "before", was)
	for year, want := range map[int]int{12_000: 9999, -100: 0} {
		far := time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)
		set := assert.Of(w.SetAttr(me, ino, nil, &fs.SetAttr{Mtime: &far})).OK(t)
		stat := assert.Of(w.Attr(me, ino, nil)).OK(t)
		assert.Equal(t, set.Mtime.UTC().Year(), want, "of the year", year)
		assert.True(t, stat.Mtime.Equal(set.Mtime), "the call says", set.Mtime, "and then stat", stat.Mtime)
	}
	assert.True(t, w.inode(ino).AttrGen > was.AttrGen, "the remote is not to have a time that was set")
}

// Set-user-id bits and capabilities end with a change by who may not keep them.
func TestKillPriv(t *testing.T) {
	w := newWorld(t)
	op := &fs.Op{UID: 7, GID: 8, KillPriv: true}
	ino, other, size, mode := w.put("f", ""), w.put("other", "text"), uint64(1), uint32(0o6755)
	from, o := w.open(other, syscall.O_RDONLY), w.open(ino, syscall.O_RDWR)
	for what, do := range map[string]func() error{
		"write":    func() error { return assert.ErrOf(o.File.Write(op, []byte("x"), 0)) },
		"truncate": func() error { return assert.ErrOf(w.SetAttr(op, ino, o.File, &fs.SetAttr{Size: &size})) },
		"allocate": func() error { return o.File.Allocate(op, 0, 10, 0) },
		"copy":     func() error { return assert.ErrOf(from.File.CopyRange(op, 0, o.File, 0, 4)) },
		"chown":    func() error { return assert.ErrOf(w.SetAttr(op, ino, nil, &fs.SetAttr{UID: &op.UID})) },
		"open": func() error {
			o, err := w.Open(op, ino, syscall.O_WRONLY|syscall.O_TRUNC)
			o.File.Release()
			return err
		},
	} {
		assert.OK(t, assert.ErrOf(w.SetAttr(me, ino, nil, &fs.SetAttr{Mode: &mode})))
		assert.OK(t, w.SetXattr(me, ino, capXattr, []byte("c"), 0))
		assert.OK(t, do(), what)
		n := w.inode(ino)
		assert.True(t, n.Mode&0o7777 == 0o755 && len(n.Xattrs) == 0, what, fmt.Sprintf("leaves %o", n.Mode), n.Xattrs)
	}
	w.shut(o)
	w.shut(from)
}

// Who sets an ACL and is not in the group of the file loses its set-group-id bit, as by chmod.
func TestACLOfAnotherGroup(t *testing.T) {
	w := newWorld(t)
	ino, mode := w.put("f", "text"), uint32(0o2755)
	for kill, want := range map[bool]uint32{false: 0o2770, true: 0o770} {
		assert.OK(t, assert.ErrOf(w.SetAttr(me, ino, nil, &fs.SetAttr{Mode: &mode})))
		assert.OK(t, w.SetXattr(&fs.Op{KillPriv: kill}, ino, attrs.AccessACL, acl, 0))
		assert.Equal(t, w.inode(ino).Mode, syscall.S_IFREG|want, "mode")
	}
	assert.Is(t, w.SetXattr(me, ino, attrs.DefaultACL, acl, 0), syscall.EACCES, "of a file")
}

// What the remote cannot have is refused at once, says why, and leaves what was there; what
// never goes there can have it.
func TestXattrsWithoutRoom(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Provider = memory.New(memory.Options{MaxXattrs: 100}) })
	d, f, stays := w.mkdir("d"), w.put("f", "text"), w.put("out", "text")
	large := []byte(strings.Repeat("v", 90))
	assert.OK(t, w.SetXattr(me, f, "user.x", []byte("y"), 0))
	err := w.SetXattr(me, f, "user.large", large, 0)
	assert.Is(t, err, syscall.ENOSPC)
	assert.Contains(t, fmt.Sprint(err), "107 bytes of extended attributes, 100 fit")
	assert.Is(t, w.SetXattr(me, d, attrs.DefaultACL, acl, 0), syscall.ENOSPC, "what is made in d would have it twice")
	assert.OK(t, w.SetXattr(me, f, "trusted.large", large, 0))
	assert.OK(t, w.SetXattr(me, stays, "user.large", append(large, large...), 0))
	assert.OK(t, w.SetXattr(me, f, "user.x", large, 0), "in place of what was there")
}

// The remote is not asked for extended attributes of files that have none, nor for those that
// it does not keep; and one that does not answer has not told that there are none.
func TestXattrsAreAskedForWhenUnknown(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		untold uint32
		asked  bool // for those that are there; who changes one asks for all
	}{{0, false}, {1, true}} {
		ino := w.put(fmt.Sprint("f", c.untold), "text")
		w.update(func(tx *tree.Tx) {
			n := tx.Edit(table.Ino(ino))
			n.AttrsUnknown, n.Untold = true, c.untold
		})
		for what, do := range map[string]struct {
			err   error
			asked bool
		}{
			"list":             {assert.ErrOf(w.ListXattr(me, ino)), c.asked},
			"get":              {assert.ErrOf(w.GetXattr(me, ino, "user.x")), c.asked},
			"get a capability": {assert.ErrOf(w.GetXattr(me, ino, capXattr)), false}, // which the kernel wants for each write
			"set":              {w.SetXattr(me, ino, "user.x", nil, 0), true},
			"remove":           {w.RemoveXattr(me, ino, "user.x"), true},
		} {
			assert.Equal(t, errors.Is(do.err, fs.ErrUnavailable), do.asked, what, "with", c.untold, "untold", do.err)
		}
	}
	assert.Equal(t, strings.Count(strings.Join(w.asked, "\n"), "attributes true"), 6, "times that the remote was asked")
}
