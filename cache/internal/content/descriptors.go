package content

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Fd is a read-only descriptor of the content file, -1 when it cannot be
// opened. It is valid until the caller's Release, and must not be closed.
// Blocks that are missing read as zeros from it: see [File.Present].
func (f *File) Fd() int {
	fd, err := f.reader()
	if err != nil {
		f.s.o.Log.Error("content: reopen", "ino", f.ino, "error", err)
		return -1
	}
	return fd
}

// stat asks the disk.
func (f *lockedFile) stat() (st unix.Stat_t, err error) {
	fd := f.wr
	if fd < 0 {
		fd = int(f.rd.Load())
	}
	return st, unix.Fstat(fd, &st)
}

// shut closes the descriptors, unless a goroutine still uses them.
func (f *lockedFile) shut() {
	if f.pins > 0 {
		return
	}
	f.shutFiles()
	f.s.released.gone()
}

// shutFiles closes the descriptors, and removes a content file without a name.
func (f *lockedFile) shutFiles() {
	f.shutWriter()
	if fd := f.rd.Swap(-1); fd >= 0 {
		unix.Close(int(fd))
	}
	if f.blocks != nil {
		f.blocks.close()
	}
	if f.part != "" {
		os.Remove(f.part)
		f.part = ""
	}
}

// shutWriter closes the descriptor for changes; the next one opens another.
func (f *lockedFile) shutWriter() {
	if f.wr >= 0 {
		unix.Close(f.wr)
		f.wr = -1
	}
}

// unpin ends one use of the descriptors by a goroutine.
func (f *lockedFile) unpin() {
	if f.pins--; f.pins == 0 && f.closing {
		f.s.released.leave(-1)
		f.shut()
	}
}

// reader is the descriptor for reading.
func (f *File) reader() (int, error) {
	if fd := f.rd.Load(); fd >= 0 {
		return int(fd), nil
	}
	l := f.lock()
	defer l.unlock()
	return l.reader()
}

func (f *lockedFile) reader() (int, error) {
	if fd := f.rd.Load(); fd >= 0 {
		return int(fd), nil
	}
	if f.wr < 0 {
		return -1, ErrClosed
	}
	fd, err := reopen(f.wr, unix.O_RDONLY)
	if err != nil {
		return -1, err
	}
	f.rd.Store(int32(fd))
	return fd, nil
}

// writer is the descriptor for changes.
func (f *lockedFile) writer() (int, error) {
	if f.wr >= 0 {
		return f.wr, nil
	}
	if f.blank && !f.closing {
		err := f.layOut()
		return f.wr, err
	}
	rd := int(f.rd.Load())
	if rd < 0 {
		return -1, ErrClosed
	}
	fd, err := reopen(rd, unix.O_RDWR)
	if err != nil {
		return -1, err
	}
	f.wr = fd
	return fd, nil
}

// layOut makes the files of a blank one, all of them holes: without names when the inode
// has other content by now.
func (f *lockedFile) layOut() (err error) {
	n := f.s.dirs.lock(f.ino)
	defer n.unlock()
	named := f.s.inodes.named(n, f.file)
	switch {
	case f.blocks.single(): // gets its name when it is whole
		f.part, f.wr, err = f.s.dirs.part()
	case named:
		f.wr, err = f.blocks.create(n)
	default:
		f.wr, err = f.s.dirs.temp()
	}
	if err != nil {
		return err
	}
	if err = retry(func() error { return unix.Ftruncate(f.wr, f.size.Load()) }); err == nil {
		f.blank = false
		return nil
	}
	f.shutFiles()
	if named {
		err = errors.Join(err, n.unlink())
	}
	return err
}
