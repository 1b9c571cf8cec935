package content

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Snapshot is the content of a file at one moment, for as long as it is open. Its methods
// may be called at once, but not after Close.
//
// It reads the file in place. A change through the File first puts aside the bytes that it
// is about to replace, piece by piece; where the disk can share blocks between files, all
// at once. A change of more than 16 MiB at a time, which no writer should wait for, ends
// the snapshot instead: then its reads are [ErrChanged].
type Snapshot struct {
	f    *File
	fd   int
	size int64

	delta *delta // a copy of the file's; nil: not known
	since spans  // changes since; see lockedFile

	broken atomic.Bool
	aside  atomic.Pointer[aside]

	mu     sync.Mutex // guards digest
	digest string
}

// aside is the bytes that were put aside for a snapshot.
type aside struct {
	fd    int
	all   bool          // it is a clone of the whole
	piece []atomic.Bool // which pieces it has
}

const (
	pieceSize  = 256 << 10
	mostAtOnce = 16 << 20 // that a writer waits for
)

// Snapshot takes the file as it is, after its missing blocks were fetched.
func (f *File) Snapshot(ctx context.Context) (*Snapshot, error) {
	l := f.lock()
	defer l.unlock()
	for !f.whole.Load() {
		if err := l.need(ctx, 0, len(l.blocks.state), len(l.blocks.state)); err != nil {
			return nil, err
		}
	}
	fd, err := l.reader()
	if err != nil {
		return nil, err
	}
	st, err := l.stat()
	if err != nil {
		return nil, err
	}
	v := &Snapshot{f: f, fd: fd, size: st.Size, delta: l.account()}
	f.s.inodes.share(f) // so that an open of the inode gets this File, and its writes are seen
	l.views = append(l.views, v)
	return v, nil
}

// Close ends the snapshot.
func (v *Snapshot) Close() {
	if v.leave() {
		v.f.Release()
	}
}

// leave takes the snapshot off the list of its file, and reports whether it
// was there.
func (v *Snapshot) leave() bool {
	f := v.f
	l := f.lock()
	defer l.unlock()
	i := slices.Index(l.views, v)
	if i < 0 {
		return false
	}
	l.views = slices.Delete(l.views, i, i+1)
	if a := v.aside.Load(); a != nil {
		unix.Close(a.fd)
	}
	return true
}

// Size is how long the content is.
func (v *Snapshot) Size() int64 { return v.size }

func (v *Snapshot) piece() int64 { return v.f.s.o.piece }

// Reader reads the snapshot from its beginning. Any number may be in use, for
// parts and for attempts that are repeated.
func (v *Snapshot) Reader() *io.SectionReader { return io.NewSectionReader(v, 0, v.size) }

// ReadAt implements [io.ReaderAt].
func (v *Snapshot) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, unix.EINVAL
	}
	end := min(off+int64(len(p)), v.size)
	done := 0
	for at := off; at < end; at = off + int64(done) {
		to := min(end, (at/v.piece()+1)*v.piece())
		if !v.touched() {
			to = end // in one piece, and checked again after
		}
		n, err := v.readPiece(p[done:][:to-at], at)
		done += n
		if err != nil {
			return done, err
		}
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// touched reports that pieces may have been put aside.
func (v *Snapshot) touched() bool { return v.aside.Load() != nil || v.broken.Load() }

// readPiece reads from where the bytes are: aside, or in place if they were not put aside
// by the time that they were read.
func (v *Snapshot) readPiece(p []byte, off int64) (int, error) {
	for {
		if v.broken.Load() {
			return 0, ErrChanged
		}
		fd, moved := v.fd, v.moved(off, int64(len(p)))
		if moved {
			fd = v.aside.Load().fd
		}
		if rest := v.piece() - off%v.piece(); moved && int64(len(p)) > rest && !v.aside.Load().all {
			p = p[:rest] // the rest may be elsewhere
			continue
		}
		n, err := v.f.s.o.read(fd, p, off)
		if !moved && (v.moved(off, int64(len(p))) || v.broken.Load()) {
			continue
		}
		if err == io.EOF { // cut by a program that does not go through the File
			err = ErrChanged
		}
		return n, err
	}
}

// moved reports that some of [off, off+n) was put aside.
func (v *Snapshot) moved(off, n int64) bool {
	a := v.aside.Load()
	if a == nil || n <= 0 {
		return false
	}
	if a.all {
		return true
	}
	for i := off / v.piece(); i <= (off+n-1)/v.piece(); i++ {
		if a.piece[i].Load() {
			return true
		}
	}
	return false
}

// Digest is "sha256:" and the hash of the content in hex. It is computed once,
// when it is asked for.
func (v *Snapshot) Digest(ctx context.Context) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.digest != "" {
		return v.digest, nil
	}
	sum, err := hashOf(ctx, v.Reader(), sha256.New())
	if err != nil {
		return "", fmt.Errorf("content: hash %d: %w", v.f.ino, err)
	}
	v.digest = "sha256:" + sum
	return v.digest, nil
}

// preserve puts aside the bytes of [off, off+n), which is about to change, for the
// snapshots of the file.
func (f *lockedFile) preserve(off, n int64) {
	for _, v := range f.views {
		if err := v.preserve(off, n); err != nil {
			v.broken.Store(true)
			f.s.o.Log.Warn("content: a snapshot ends", "ino", f.ino, "error", err)
		}
	}
}

func (v *Snapshot) preserve(off, n int64) error {
	n = min(n, v.size-off)
	if n <= 0 || v.broken.Load() {
		return nil
	}
	a := v.aside.Load()
	if a == nil {
		fd, err := v.f.s.dirs.temp()
		if err != nil {
			return err
		}
		a = &aside{fd: fd, piece: make([]atomic.Bool, (v.size+v.piece()-1)/v.piece())}
		a.all = unix.IoctlFileClone(fd, v.fd) == nil
		v.aside.Store(a)
	}
	if a.all {
		return nil
	}
	return v.putAside(a, off/v.piece(), (off+n-1)/v.piece())
}

// putAside copies the pieces from first to last that are not aside yet.
func (v *Snapshot) putAside(a *aside, first, last int64) error {
	left := int64(0)
	for i := first; i <= last; i++ {
		if !a.piece[i].Load() {
			left += v.piece()
		}
	}
	if left > v.f.s.o.most {
		return ErrChanged
	}
	for i := first; i <= last; i++ {
		if a.piece[i].Load() {
			continue
		}
		at := i * v.piece()
		if _, err := copyRange(v.fd, at, a.fd, at, min(v.piece(), v.size-at)); err != nil {
			return err
		}
		a.piece[i].Store(true)
	}
	return nil
}
