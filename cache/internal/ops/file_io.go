package ops

import (
	"context"
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/fs"
)

// Read implements fs.File.
func (f *file) Read(op *fs.Op, buf []byte, off int64) (fs.Data, error) {
	c := f.oi.Content()
	var n int
	read := func(ctx context.Context) (err error) {
		n, err = c.ReadAt(ctx, buf, off)
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	var err error
	if c.Whole() || c.Present(off, int64(len(buf))) {
		err = read(context.Background())
	} else {
		err = f.v.o.Remote.Reach(op, read)
	}
	if err != nil && n == 0 {
		return fs.Data{}, err
	}
	return fs.Data{Bytes: buf[:n]}, nil // a failure further on is for the next call
}

// Write implements fs.File. For O_APPEND the offset is the end of the file at that time, not
// the one that the kernel believed.
func (f *file) Write(op *fs.Op, data []byte, off int64) (n int, err error) {
	c := f.oi.Content()
	err = f.change(op, op.KillPriv, func(ctx context.Context) (err error) {
		if f.flags&syscall.O_APPEND != 0 {
			_, n, err = c.Append(ctx, data)
		} else {
			n, err = c.WriteAt(ctx, data, off)
		}
		return err
	})
	if n > 0 {
		return n, nil // a short write; the next one returns the error
	}
	return n, err
}

// truncate sets the size.
func (f *file) truncate(op *fs.Op, size int64) error {
	err := f.change(op, op.KillPriv, func(ctx context.Context) error {
		return f.oi.Content().Truncate(ctx, size)
	})
	if err == nil && size == 0 {
		err = f.v.trusted(f.oi)
	}
	return err
}

// trusted clears the suspect mark of content, which a loss of power had set: all of it is about
// to be written anew.
func (v *Operations) trusted(oi *files.OpenInode) error {
	locked := v.lock()
	n := locked.Inode(oi.Ino)
	suspect := n != nil && n.Suspect
	locked.unlock()
	if !suspect {
		return nil
	}
	return v.update(nil, func(v *tx) error {
		if n := v.Edit(oi.Ino); n != nil {
			n.Suspect = false
		}
		return nil
	})
}

// Allocate implements fs.File.
func (f *file) Allocate(op *fs.Op, off, size int64, mode uint32) error {
	return f.change(op, losesRights(op), func(ctx context.Context) error {
		return f.oi.Content().Allocate(ctx, off, size, mode)
	})
}

// change runs do, which changes the content, and notes the time. kill: the change clears set-id
// bits; capabilities it always clears.
func (f *file) change(op *fs.Op, kill bool, do func(ctx context.Context) error) (err error) {
	f.wrote.Store(true)
	v, oi := f.v, f.oi
	if err := v.killRights(oi, kill); err != nil {
		return err
	}
	err = v.o.Opener.Change(oi, func() error {
		if oi.Content().Whole() {
			return do(context.Background())
		}
		return v.o.Remote.Reach(op, do)
	})
	if errors.Is(err, files.ErrNoInode) {
		err = errno.Translate(err)
	}
	return err
}

// killRights clears capabilities, and if kill set-id bits, of a file about to be changed.
func (v *Operations) killRights(oi *files.OpenInode, kill bool) error {
	locked := v.lock()
	n := locked.Inode(oi.Ino)
	has := n != nil && (kill && privileged(n) || n.Xattrs[capXattr] != nil)
	locked.unlock()
	if !has {
		return nil
	}
	return v.update(nil, func(v *tx) error {
		n := v.Edit(oi.Ino)
		if n == nil {
			return fs.ErrStale
		}
		if kill {
			dropPrivileges(n)
		}
		attrs.Set(n, capXattr, nil)
		v.AttrChanged(oi.Ino)
		return nil
	})
}

// Seek implements fs.File.
func (f *file) Seek(_ *fs.Op, off int64, whence uint32) (int64, error) {
	if whence != unix.SEEK_DATA && whence != unix.SEEK_HOLE {
		return 0, syscall.EINVAL
	}
	return f.oi.Content().Seek(off, int(whence))
}

// CopyRange implements fs.File.
func (f *file) CopyRange(op *fs.Op, off int64, dst fs.File, dstOff int64, n int64) (copied int64, err error) {
	to, ok := dst.(*file)
	if !ok || to.v != f.v {
		return 0, syscall.EXDEV
	}
	err = to.change(op, losesRights(op), func(ctx context.Context) (err error) {
		if !f.oi.Content().Whole() {
			return f.v.o.Remote.Reach(op, func(ctx context.Context) (err error) {
				copied, err = f.oi.Content().CopyRange(ctx, off, to.oi.Content(), dstOff, n)
				return err
			})
		}
		copied, err = f.oi.Content().CopyRange(ctx, off, to.oi.Content(), dstOff, n)
		return err
	})
	if copied > 0 {
		return copied, nil
	}
	return copied, err
}
