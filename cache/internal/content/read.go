package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"
)

// ReadAt reads len(p) bytes at off, and fetches the missing ones. It reads less only at the
// end of the file, with io.EOF, or with the error of the source, of ctx or of the disk.
func (f *File) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, unix.EINVAL
	}
	if !f.whole.Load() {
		if off >= f.Size() {
			return 0, io.EOF // nothing is fetched for it, and the file may have nothing on the disk
		}
		err := f.readNeed(ctx, off, int64(len(p)))
		if errors.Is(err, unix.ENOSPC) {
			return f.readThrough(ctx, p, off)
		}
		if err != nil {
			return 0, err
		}
	}
	fd, err := f.reader()
	if err != nil {
		return 0, err
	}
	return pread(fd, p, off)
}

// readThrough reads without keeping the fetched bytes, for a disk that is full.
func (f *File) readThrough(ctx context.Context, p []byte, off int64) (int, error) {
	end := min(off+int64(len(p)), f.Size())
	for at := off; at < end; {
		gap, to, src := f.gap(at, end)
		var err error
		if gap {
			err = through(ctx, src, p[at-off:to-off], at)
		} else {
			var fd int
			if fd, err = f.reader(); err == nil {
				_, err = pread(fd, p[at-off:to-off], at)
			}
		}
		if err != nil {
			return int(at - off), err
		}
		at = to
	}
	if n := max(end-off, 0); n < int64(len(p)) {
		return int(n), io.EOF
	}
	return len(p), nil
}

// gap says whether the byte at off is missing, how far that is so, and the file's source.
func (f *File) gap(off, end int64) (missing bool, to int64, src Source) {
	l := f.lock()
	defer l.unlock()
	b := l.blocks
	if b == nil || off >= b.remote {
		return false, end, nil
	}
	missing = !l.presentAt(off)
	for to = off; to < min(end, b.remote) && l.presentAt(to) != missing; {
		to = b.end(int(to / b.size))
	}
	return missing, min(to, end), l.src
}

// Extent reports whether the byte at off is local, and the end of the
// range from off on for which that answer holds.
func (f *File) Extent(off int64) (here bool, end int64) {
	missing, end, _ := f.gap(off, f.Size())
	return !missing, end
}

// through reads from a source into memory.
func through(ctx context.Context, src Source, p []byte, off int64) error {
	m := &memory{p: p, off: off}
	err := src(ctx, off, int64(len(p)), m)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p = nil // is the caller's again
	if err != nil {
		return err
	}
	if at, ok := m.got.gap(off, off+int64(len(p))); ok {
		return fmt.Errorf("content: the source brought nothing at %d: %w", at, io.ErrUnexpectedEOF)
	}
	return nil
}

// memory takes the bytes that a source delivers, at an offset.
type memory struct {
	off int64

	mu  sync.Mutex // guards the rest
	p   []byte
	got ranges
}

// WriteAt implements [io.WriterAt].
func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if off < m.off || off+int64(len(p)) > m.off+int64(len(m.p)) {
		return 0, fmt.Errorf("%w: the source brought bytes at %d that were not asked for", ErrCorrupt, off)
	}
	copy(m.p[off-m.off:], p)
	m.got.add(off, off+int64(len(p)))
	return len(p), nil
}

// Present reports that all of [off, off+n) is local, as far as the file goes, so that it
// can be answered from [File.Fd].
func (f *File) Present(off, n int64) bool {
	if f.whole.Load() {
		return true
	}
	l := f.lock()
	defer l.unlock()
	if l.blocks == nil {
		return true
	}
	lo, hi := l.blocks.span(off, n)
	return l.blocks.firstMissing(lo, hi) == hi
}

// Seek finds data or a hole at or after off, as lseek does with [unix.SEEK_DATA] and
// [unix.SEEK_HOLE]. Missing blocks are data. The error is ENXIO when there is no data, or off
// is not inside the file.
func (f *File) Seek(off int64, whence int) (int64, error) {
	if whence != unix.SEEK_DATA && whence != unix.SEEK_HOLE {
		return 0, unix.EINVAL
	}
	l := f.lock()
	defer l.unlock()
	end := f.size.Load()
	switch {
	case off < 0 || off >= end:
		return 0, unix.ENXIO
	case l.blank && whence == unix.SEEK_DATA: // all of it is missing
		return off, nil
	case l.blank:
		return end, nil
	}
	fd, err := l.reader()
	if err != nil {
		return 0, err
	}
	if whence == unix.SEEK_DATA {
		return l.seekData(fd, off)
	}
	return l.seekHole(fd, off)
}

func (f *lockedFile) seekData(fd int, off int64) (int64, error) {
	at, err := unix.Seek(fd, off, unix.SEEK_DATA)
	if f.blocks == nil || err != nil && err != unix.ENXIO {
		return at, err
	}
	b := f.blocks
	i := b.firstMissing(int(min(off/b.size, int64(len(b.state)))), len(b.state))
	for i < len(b.state) && b.end(i) <= off {
		i = b.firstMissing(i+1, len(b.state))
	}
	switch {
	case i == len(b.state):
		return at, err
	case err != nil: // there is no data but missing blocks
		at = f.size.Load()
	}
	return min(at, max(off, b.start(i))), nil
}

func (f *lockedFile) seekHole(fd int, off int64) (int64, error) {
	for {
		if b := f.blocks; b != nil {
			for i := off / b.size; i < int64(len(b.state)) && !b.has(int(i)) && off < b.end(int(i)); i++ {
				off = b.end(int(i))
			}
		}
		if off >= f.size.Load() {
			return f.size.Load(), nil
		}
		at, err := unix.Seek(fd, off, unix.SEEK_HOLE)
		if err != nil || f.blocks == nil || f.presentAt(at) {
			return at, err
		}
		off = at
	}
}

// presentAt reports that the byte at off is not missing.
func (f *lockedFile) presentAt(off int64) bool {
	b := f.blocks
	i := off / b.size
	return off >= b.remote || i >= int64(len(b.state)) || b.has(int(i))
}
