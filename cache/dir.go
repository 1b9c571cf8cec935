package cache

import (
	"syscall"

	"github.com/wsmount/wsmount/fs"
)

// Cookies of the two entries that every directory has; memDir goes on after
// them.
const (
	cookieSelf   = 1
	cookieParent = 2
)

// dirStream reads a directory as it is at each step. Cookies are entry
// numbers, so a name that stays is given once, whatever comes and goes.
type dirStream struct {
	v   *Volume
	ino fs.Ino
	pos uint64
}

var _ fs.Dir = (*dirStream)(nil)

// OpenDir implements fs.Volume.
func (v *Volume) OpenDir(_ *fs.Op, ino fs.Ino) (fs.Dir, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch n := v.table.node(ino); {
	case n == nil:
		return nil, fs.ErrStale
	case !n.isDir():
		return nil, syscall.ENOTDIR
	}
	return &dirStream{v: v, ino: ino}, nil
}

// Seek implements fs.Dir.
func (d *dirStream) Seek(cookie uint64) error {
	d.pos = cookie
	return nil
}

// Next implements fs.Dir.
func (d *dirStream) Next(op *fs.Op) (fs.DirEntry, bool, error) {
	if err := d.v.load(op, d.ino); err != nil {
		return fs.DirEntry{}, false, err
	}
	defer d.v.mu.Unlock()
	e, ok := d.next()
	if ok {
		d.pos = e.Cookie
	}
	return e, ok, nil
}

// next is the entry behind pos. v.mu is held.
func (d *dirStream) next() (fs.DirEntry, bool) {
	n := d.v.table.node(d.ino)
	switch {
	case len(n.links) == 0 && d.ino != fs.RootIno:
		return fs.DirEntry{}, false // removed
	case d.pos < cookieSelf:
		return fs.DirEntry{Name: ".", Ino: d.ino, Mode: syscall.S_IFDIR, Cookie: cookieSelf}, true
	case d.pos < cookieParent:
		up := fs.RootIno
		if d.ino != fs.RootIno {
			up = n.links[0].dir
		}
		return fs.DirEntry{Name: "..", Ino: up, Mode: syscall.S_IFDIR, Cookie: cookieParent}, true
	}
	e, ok := d.v.table.next(d.ino, d.pos)
	if !ok {
		return fs.DirEntry{}, false
	}
	return fs.DirEntry{Name: e.name, Ino: e.ino, Mode: d.v.table.node(e.ino).kind(), Cookie: e.cookie}, true
}

// Fsync implements fs.Dir: the backend has every change of names before.
func (d *dirStream) Fsync(op *fs.Op, _ bool) error { return d.v.settled(op) }

// Release implements fs.Dir.
func (d *dirStream) Release() {}

// Statfs implements fs.Volume: the disk that content lies on.
func (v *Volume) Statfs(_ *fs.Op, _ fs.Ino) (fs.Statfs, error) { return v.store.statfs() }
