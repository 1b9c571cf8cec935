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

// firstFetch bounds the bytes of a file that are fetched before its open returns.
const firstFetch = 1 << 20

// begin fetches the bytes that an open needs at once: the beginning of a file opened for
// reading, all of a small file opened for changing it too, and the end of a large one opened
// for appending. So a version that the remote no longer has is found out while the kernel can
// still look the name up again, and not when the program writes. An open only for writing
// fetches nothing: all may be about to be overwritten. On a full disk a reader goes without:
// bytes that it reads are not kept.
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

// firstBytes is the range of a file of that size that is local before its open returns.
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

// Flush implements fs.File: a close(2). Bytes written by this descriptor are safe when it
// returns, as Policy defines safe.
func (f *file) Flush(op *fs.Op) error {
	if !f.changes() || f.emptied() {
		return nil
	}
	if err := f.v.o.Opener.FlushIfOpen(f.oi.Ino); err != nil {
		return err
	}
	if !f.unsent() || f.bare() {
		return nil // only names or attributes are unsent: no close waits for those
	}
	return f.v.o.Uploads.WaitForContent(op, f.oi.Ino) // which does not wait with Policy.NoWait
}

// emptied reports whether this open has emptied the file, and nothing has come since. A shell's
// redirection duplicates the descriptor and closes the first one in that state: remote readers
// must not see an empty file between two versions. If it stays empty, that is flushed when the
// last descriptor is closed.
func (f *file) emptied() bool { return f.flags&syscall.O_TRUNC != 0 && f.oi.Content().Size() == 0 }

// bare reports whether the file is a new name without content, as touch leaves it: that is a
// change of names, for which no close waits.
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

// staysHere reports whether the file has no name that is sent to the remote.
func (f *file) staysHere() bool {
	locked := f.v.lock()
	defer locked.unlock()
	n := locked.Inode(f.oi.Ino)
	return n == nil || len(n.Links) == 0 || locked.StaysLocal(n)
}

// Fsync implements fs.File. A file that stays local, or any with NoWait, is on the disk when it
// returns; any other is at the remote, with every earlier change of names and attributes.
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

// Release implements fs.File. Bytes written after the last close, through a mapping, are
// flushed too, and no caller waits.
func (f *file) Release() {
	if err := f.v.o.Opener.Close(f.oi, writes(f.flags)); err != nil {
		f.v.o.Side.Log.Error("what was written last is not in the table", "ino", f.oi.Ino, "err", err)
	}
}
