package cache

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
)

// Read implements fs.File.
func (f *file) Read(_ *fs.Op, buf []byte, off int64) (fs.Data, error) {
	n, err := f.c.f.ReadAt(buf, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return fs.Data{}, err
	}
	return fs.Data{Bytes: buf[:n]}, nil
}

// Write implements fs.File. The end of the file, for O_APPEND, is where the
// file ends by then, not where the kernel believed it did.
func (f *file) Write(op *fs.Op, data []byte, off int64) (n int, err error) {
	err = f.v.change(f.c, op.KillPriv, func() error {
		f.wrote.Store(true)
		if f.flags&syscall.O_APPEND != 0 {
			end, err := f.c.f.Seek(0, io.SeekEnd)
			if err != nil {
				return err
			}
			off = end
		}
		n, err = f.c.f.WriteAt(data, off)
		return err
	})
	if n > 0 {
		return n, nil // a short write; the next one tells why
	}
	return n, err
}

// truncate sets the size.
func (f *file) truncate(op *fs.Op, size int64) error {
	f.wrote.Store(true)
	return f.v.change(f.c, op.KillPriv, func() error { return f.c.f.Truncate(size) })
}

// Allocate implements fs.File.
func (f *file) Allocate(op *fs.Op, off, size int64, mode uint32) error {
	return f.v.change(f.c, losesRights(op), func() error {
		f.wrote.Store(true)
		return ignoringEINTR(func() error { return unix.Fallocate(int(f.c.f.Fd()), mode, off, size) })
	})
}

// losesRights is op.KillPriv for the calls with which the kernel does not say
// it: who is not root has no right to keep set-user-id bits.
func losesRights(op *fs.Op) bool { return op.KillPriv || op.UID != 0 }

// Seek implements fs.File.
func (f *file) Seek(_ *fs.Op, off int64, whence uint32) (int64, error) {
	if whence != unix.SEEK_DATA && whence != unix.SEEK_HOLE {
		return 0, syscall.EINVAL
	}
	// Only one at a time: the descriptor has one position, which nothing
	// else uses.
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return unix.Seek(int(f.c.f.Fd()), off, int(whence))
}

// CopyRange implements fs.File.
func (f *file) CopyRange(op *fs.Op, off int64, dst fs.File, dstOff int64, n int64) (int64, error) {
	to, ok := dst.(*file)
	if !ok || to.v != f.v {
		return 0, syscall.EXDEV
	}
	var copied int
	err := f.v.change(to.c, losesRights(op), func() error {
		to.wrote.Store(true)
		return ignoringEINTR(func() (err error) {
			copied, err = unix.CopyFileRange(int(f.c.f.Fd()), &off, int(to.c.f.Fd()), &dstOff, int(n), 0)
			return err
		})
	})
	return int64(max(copied, 0)), err
}

func ignoringEINTR(do func() error) error {
	for {
		if err := do(); err != syscall.EINTR {
			return err
		}
	}
}
