package ops

import (
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
)

// Create implements fs.Volume. The new name is a change like any other; the
// content follows when the file is closed.
func (v *Operations) Create(op *fs.Op, dir fs.Ino, name string, flags, mode uint32) (fs.Entry, fs.Opened, error) {
	e, f, err := v.create(op, table.Ino(dir), name, flags, mode)
	if err != nil {
		return fs.Entry{}, fs.Opened{}, err
	}
	if f != nil {
		return e, v.opened(f), nil
	}
	o, err := v.Open(op, e.Ino, flags)
	if err != nil {
		v.Forget(e.Ino, 1)
		return fs.Entry{}, fs.Opened{}, err
	}
	if flags&syscall.O_TRUNC != 0 {
		e.Attr, err = v.Attr(op, e.Ino, o.File) // after the open
	}
	return e, o, err
}

// create makes a file and opens it. When the name exists already, the file is nil, and the
// entry is the existing one.
func (v *Operations) create(op *fs.Op, dir table.Ino, name string, flags, mode uint32) (fs.Entry, *file, error) {
	if err := tree.CheckName(name); err != nil {
		return fs.Entry{}, nil, err
	}
	if err := v.changesIn(op, fs.Ino(dir)); err != nil {
		return fs.Entry{}, nil, err
	}
	oi, err := v.born() // the kernel only creates a name that it believes free
	if err != nil {
		return fs.Entry{}, nil, err
	}
	var e fs.Entry
	made := false
	err = v.change(op, func(v *tx) error {
		parent, err := v.parent(dir)
		if err != nil {
			return err
		}
		if rec, _ := v.Name(dir, name); rec.Ino != 0 {
			e, err = v.found(dir, rec.Ino, flags)
			return err
		}
		n := NewInode(op, parent, syscall.S_IFREG|mode&^syscall.S_IFMT, v.Now())
		if err := v.mayName(table.Link{Dir: dir, Name: name}, n); err != nil {
			return err
		}
		n.State = table.Whole
		files.SetDirtyIntent(v.Tx.Tx, oi.Ino, n, true)
		v.Enter(table.Link{Dir: dir, Name: name}, oi.Ino, n)
		v.o.Opener.Enter(v.Tx.Tx, oi, writes(flags), v.by)
		e, made = v.refer(dir, oi.Ino), true
		return nil
	})
	if err != nil || !made {
		v.o.Opener.Discard(oi)
		e, err = v.unrefer(e, err)
		return e, nil, err
	}
	return e, &file{v: v, oi: oi, flags: flags, made: true}, nil
}

// found is the entry of an existing inode where a file was to be created.
func (v view) found(dir, ino table.Ino, flags uint32) (fs.Entry, error) {
	switch {
	case flags&syscall.O_EXCL != 0:
		return fs.Entry{}, syscall.EEXIST
	case v.Inode(ino).IsSymlink():
		return fs.Entry{}, fs.ErrStale // the kernel looks it up again and follows it
	}
	return v.refer(dir, ino), nil
}

// Tmpfile implements fs.Volume. A file without a name is not sent.
func (v *Operations) Tmpfile(op *fs.Op, dir fs.Ino, flags, mode uint32) (fs.Entry, fs.Opened, error) {
	oi, err := v.born()
	if err != nil {
		return fs.Entry{}, fs.Opened{}, err
	}
	var e fs.Entry
	err = v.update(nil, func(v *tx) error {
		parent, err := v.inode(dir)
		if err != nil {
			return err
		}
		if !parent.IsDir() {
			return syscall.ENOTDIR
		}
		n := NewInode(op, parent, syscall.S_IFREG|mode&^syscall.S_IFMT, v.Now())
		n.State = table.Whole
		v.Put(oi.Ino, n)
		files.SetDirtyIntent(v.Tx.Tx, oi.Ino, n, true)
		v.SetOrphan(oi.Ino, true)
		v.o.Opener.Enter(v.Tx.Tx, oi, writes(flags), v.by)
		e = v.refer(table.Ino(dir), oi.Ino)
		return nil
	})
	if err != nil {
		v.o.Opener.Discard(oi)
		e, err = v.unrefer(e, err)
		return e, fs.Opened{}, err
	}
	return e, v.opened(&file{v: v, oi: oi, flags: flags, made: true}), nil
}

// born is a new inode number with open content, for a file that is about to be made.
func (v *Operations) born() (*files.OpenInode, error) {
	locked := v.lock()
	ino := locked.Alloc()
	locked.unlock()
	return v.o.Opener.Make(ino)
}

// NewInode is an inode that a program makes in parent.
func NewInode(op *fs.Op, parent *table.Inode, mode uint32, at time.Time) *table.Inode {
	now := table.TimeOf(at)
	n := &table.Inode{Mode: mode, UID: op.UID, GID: op.GID, ContentVersion: 1, AttrGen: 1,
		Atime: now, Mtime: now, Ctime: now, Birth: at.UnixNano()}
	if parent.Mode&syscall.S_ISGID != 0 {
		n.GID = parent.GID
		if n.IsDir() {
			n.Mode |= syscall.S_ISGID
		}
	}
	if !n.IsSymlink() {
		attrs.Inherit(n, parent, op.Umask&0o777)
	}
	return n
}
