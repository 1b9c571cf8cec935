package ops

import (
	"errors"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Cookies of the two entries that every directory has; those of names begin
// after them.
const (
	cookieSelf   = 1
	cookieParent = 2
)

// dirStream reads a directory as it is at each step. Cookies are entry numbers, so a name that
// stays is given once, whatever names are added or removed.
type dirStream struct {
	v   *Operations
	ino table.Ino
	pos uint64
}

var _ fs.Dir = (*dirStream)(nil)

// OpenDir implements fs.Volume.
func (v *Operations) OpenDir(_ *fs.Op, ino fs.Ino) (fs.Dir, error) {
	err := v.view(func(v view) error {
		n, err := v.inode(ino)
		if err == nil && !n.IsDir() {
			err = syscall.ENOTDIR
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &dirStream{v: v, ino: table.Ino(ino)}, nil
}

// Seek implements fs.Dir.
func (d *dirStream) Seek(cookie uint64) error {
	d.pos = cookie
	return nil
}

// Next implements fs.Dir.
func (d *dirStream) Next(op *fs.Op) (e fs.DirEntry, ok bool, err error) {
	if d.pos < cookieParent || !d.isKnown() {
		if d.pos == 0 {
			d.v.o.Ahead.SawRead(d.ino)
		}
		if err := d.load(op); err != nil {
			return fs.DirEntry{}, false, err
		}
	}
	err = d.v.view(func(v view) error {
		e, ok = d.next(v)
		return nil
	})
	if err == nil && ok {
		d.pos = e.Cookie
	}
	return e, ok && err == nil, err
}

// load lists the directory. The kernel does not look up the name again for an open stream: the
// stream of a directory that was removed at the remote ends, as on a disk, and a directory that
// moved is listed at its new place.
func (d *dirStream) load(op *fs.Op) error {
	err := d.v.o.Remote.Load(op, d.ino)
	if errors.Is(err, fs.ErrStale) && !d.v.isGone(d.ino) {
		err = d.v.o.Remote.Load(op, d.ino)
	}
	if errors.Is(err, fs.ErrStale) && d.v.isGone(d.ino) {
		return nil
	}
	return err
}

// isKnown reports whether all names are known: in the middle of a stream they need not be
// fresh.
func (d *dirStream) isKnown() bool {
	locked := d.v.lock()
	defer locked.unlock()
	n := locked.Inode(d.ino)
	return n == nil || n.Loaded
}

// next is the entry after pos.
func (d *dirStream) next(v view) (fs.DirEntry, bool) {
	n := v.Inode(d.ino)
	switch {
	case n == nil || len(n.Links) == 0 && d.ino != table.Root:
		return fs.DirEntry{}, false // removed
	case d.pos < cookieSelf:
		return fs.DirEntry{Name: ".", Ino: fs.Ino(d.ino), Mode: syscall.S_IFDIR, Cookie: cookieSelf}, true
	case d.pos < cookieParent:
		up := table.Root
		if d.ino != table.Root {
			up = n.Links[0].Dir
		}
		return fs.DirEntry{Name: "..", Ino: fs.Ino(up), Mode: syscall.S_IFDIR, Cookie: cookieParent}, true
	}
	e, ok := v.Next(d.ino, d.pos)
	if !ok {
		return fs.DirEntry{}, false
	}
	child := v.Inode(e.Ino)
	if child == nil {
		return fs.DirEntry{}, false // the table has failed, which the View reports
	}
	return fs.DirEntry{Name: e.Name, Ino: fs.Ino(e.Ino), Mode: child.Kind(), Cookie: e.Cookie}, true
}

// Fsync implements fs.Dir: every earlier change of names is safe, at the place that Policy
// demands.
func (d *dirStream) Fsync(op *fs.Op, _ bool) error {
	if d.v.o.NoWait {
		return d.v.o.Syncs.SyncNames()
	}
	return d.v.o.Uploads.WaitForNames(op)
}

// Release implements fs.Dir.
func (d *dirStream) Release() {}

// Statfs implements fs.Volume: the disk that has the content; available is the space that
// programs may write.
func (v *Operations) Statfs(_ *fs.Op, _ fs.Ino) (fs.Statfs, error) {
	st, err := v.o.Store.Statfs()
	if err != nil {
		return fs.Statfs{}, err
	}
	return fs.Statfs{Blocks: st.Blocks, Bfree: st.Bfree, Bavail: st.Bavail, Files: st.Files, Ffree: st.Ffree,
		Bsize: uint32(st.Bsize), Frsize: uint32(st.Frsize), NameLen: providers.MaxName}, nil
}
