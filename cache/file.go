package cache

import (
	"sync/atomic"
	"syscall"

	"github.com/wsmount/wsmount/fs"
)

// file is an open file.
type file struct {
	v     *Volume
	c     *content
	flags uint32

	made  bool        // this open created the inode
	wrote atomic.Bool // this open may have changed content
}

var _ fs.File = (*file)(nil)

// Open implements fs.Volume.
func (v *Volume) Open(op *fs.Op, ino fs.Ino, flags uint32) (fs.Opened, error) {
	truncate := flags&syscall.O_TRUNC != 0
	c, err := v.acquire(op, ino, truncate)
	if err != nil {
		return fs.Opened{}, err
	}
	f := &file{v: v, c: c, flags: flags}
	if truncate {
		if err := f.truncate(op, 0); err != nil {
			v.release(c)
			return fs.Opened{}, err
		}
	}
	return v.opened(f), nil
}

// opened says what the kernel may do with an open file.
func (v *Volume) opened(f *file) fs.Opened {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(f.c.ino)
	readOnly := !f.changes()
	o := fs.Opened{File: f, KeepCache: n.shown == n.gen, NoFlush: readOnly}
	n.shown = n.gen
	v.table.save(f.c.ino, n)
	if readOnly && n.gen == n.sent {
		o.Backing, o.PassRead = int(f.c.f.Fd()), true
		if !f.c.passed {
			f.c.passed = true
			f.c.look()
		}
	}
	return o
}

func (f *file) writable() bool { return f.flags&syscall.O_ACCMODE != syscall.O_RDONLY }

// Flush implements fs.File: what this descriptor wrote is at the backend when
// it returns.
func (f *file) Flush(op *fs.Op) error {
	if !f.changes() {
		return nil
	}
	f.v.noticeMapped(f.c)
	if !f.v.isDirty(f.c.ino) {
		return nil
	}
	return f.v.commit(op, f.c.ino)
}

// changes reports whether this open can have something to send.
func (f *file) changes() bool { return f.writable() || f.made || f.wrote.Load() }

func (v *Volume) isDirty(ino fs.Ino) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	return n != nil && n.dirty()
}

// Fsync implements fs.File. The backend has the content, and every change of
// names and attributes before, when it returns.
func (f *file) Fsync(op *fs.Op, _ bool) error {
	f.v.noticeMapped(f.c)
	return f.v.commit(op, f.c.ino)
}

// Release implements fs.File. Bytes that came after the last close, from a
// mapping, are sent without anybody waiting.
func (f *file) Release() {
	if f.changes() {
		f.v.noticeMapped(f.c)
	}
	f.v.mu.Lock()
	if n := f.v.table.node(f.c.ino); n != nil && n.dirty() && f.changes() {
		f.v.enqueueSend(f.c.ino, n)
	}
	f.v.mu.Unlock()
	f.v.release(f.c)
}
