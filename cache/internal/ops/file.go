package ops

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/fs"
)

// file is an open file.
type file struct {
	v     *Operations
	oi    *files.OpenInode
	flags uint32

	made  bool        // this open created the inode
	wrote atomic.Bool // this open may have changed content
}

var _ fs.File = (*file)(nil)

// firstFetch is how much of a file is fetched before its open returns.
const firstFetch = 1 << 20

// begin fetches what a version that goes must not take with it: the beginning
// of a file that is opened to be read, and a small file in whole if it is opened
// to be changed too; of a large one that is appended to, its end. So
// it is found out that the version has gone while the kernel can still look the
// name up again, and not when the program writes. An open only to write fetches
// nothing: all may be about to be overwritten. On a full disk a reader goes without:
// nothing of what it reads is kept.
func (f *file) begin(op *fs.Op) error {
	c := f.oi.Content()
	off, n := f.firstBytes(c.Size())
	if n == 0 || c.Present(off, n) {
		return nil
	}
	err := f.v.o.Remote.Reach(op, func(ctx context.Context) error { return c.Fetch(ctx, off, n) })
	if errors.Is(err, syscall.ENOSPC) && !writes(f.flags) {
		return nil
	}
	return err
}

// firstBytes is what of a file of that size is here before its open returns.
func (f *file) firstBytes(size int64) (off, n int64) {
	mode, appends := f.flags&syscall.O_ACCMODE, f.flags&syscall.O_APPEND != 0
	switch {
	case mode == syscall.O_RDONLY:
		return 0, min(size, firstFetch)
	case size <= firstFetch && (appends || mode == syscall.O_RDWR):
		return 0, size
	case appends:
		return size - 1, 1
	}
	return 0, 0
}

// changes reports whether this open can have something to send.
func (f *file) changes() bool { return writes(f.flags) || f.made || f.wrote.Load() }

// Flush implements fs.File: a close(2). What this descriptor wrote is safe when
// it returns, as Policy has it.
func (f *file) Flush(op *fs.Op) error {
	if !f.changes() || f.emptied() {
		return nil
	}
	if err := f.v.o.Opener.FlushIfOpen(f.oi.Ino); err != nil {
		return err
	}
	if !f.unsent() || f.bare() {
		return nil // what else has changed is on its way, and no close waits for it
	}
	return f.v.o.Uploads.WaitForContent(op, f.oi.Ino) // which does not wait with Policy.NoWait
}

// emptied reports whether this open has emptied the file, and nothing has come
// since. A shell that redirects duplicates the descriptor and closes the first
// one so: no one is to see an empty file between two versions. If it stays empty,
// it is taken when the last descriptor is closed.
func (f *file) emptied() bool { return f.flags&syscall.O_TRUNC != 0 && f.oi.Content().Size() == 0 }

// bare reports whether the file is a new name without content, as touch leaves
// it: that is a change of names, which no close waits for.
func (f *file) bare() bool {
	locked := f.v.lock()
	defer locked.unlock()
	n := locked.Inode(f.oi.Ino)
	return n != nil && n.Size == 0 && len(n.RemoteLinks) == 0
}

// unsent reports whether the remote lacks content of the file.
func (f *file) unsent() bool {
	locked := f.v.lock()
	defer locked.unlock()
	return f.v.o.Uploads.IsUnsaved(locked.View, f.oi.Ino)
}

// staysHere reports whether the file has no name that the remote gets.
func (f *file) staysHere() bool {
	locked := f.v.lock()
	defer locked.unlock()
	n := locked.Inode(f.oi.Ino)
	return n == nil || len(n.Links) == 0 || locked.StaysLocal(n)
}

// Fsync implements fs.File. What stays here goes to the disk, else the remote
// has it, with every change of names and attributes before.
func (f *file) Fsync(op *fs.Op, _ bool) error {
	v := f.v
	stays := f.staysHere()
	if !stays && !v.o.NoWait {
		if err := v.o.Opener.FlushIfOpen(f.oi.Ino); err != nil {
			return err
		}
		return v.o.Uploads.WaitForContent(op, f.oi.Ino)
	}
	if err := v.o.Opener.Flush(f.oi, true); err != nil {
		return err
	}
	if !stays {
		if err := v.o.Uploads.WaitForContent(op, f.oi.Ino); err != nil {
			return err
		}
	}
	return v.o.Opener.Sync(f.oi)
}

// Release implements fs.File. Bytes that came after the last close, from a
// mapping, are taken too, without anybody waiting.
func (f *file) Release() {
	if err := f.v.o.Opener.Close(f.oi, writes(f.flags)); err != nil {
		f.v.o.Side.Log.Error("what was written last is not in the table", "ino", f.oi.Ino, "err", err)
	}
}
