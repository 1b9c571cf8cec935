package content

import (
	"context"

	"golang.org/x/sys/unix"
)

// WriteAt writes p at off. It fetches only blocks that p covers in part and that are
// missing. Like a disk it may write less than all of p, with an error: ENOSPC is an error
// of WriteAt and not of a later close.
func (f *File) WriteAt(ctx context.Context, p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, unix.EINVAL
	}
	if len(p) == 0 {
		return 0, nil
	}
	err = f.s.room.whileFull(int64(len(p)), func() error {
		more, err := f.writeAt(ctx, p[n:], off+int64(n))
		n += more
		return err
	})
	return n, err
}

func (f *File) writeAt(ctx context.Context, p []byte, off int64) (int, error) {
	room := f.s.roomFor(ctx, int64(len(p)))
	l := f.lock()
	defer l.unlock()
	if room != nil && !l.allocated(off, int64(len(p))) {
		return 0, room
	}
	if err := l.edges(ctx, off, int64(len(p))); err != nil {
		return 0, err
	}
	return l.write(p, off)
}

// Append writes p at the end of the file, wherever that is by then, and gives the offset.
func (f *File) Append(ctx context.Context, p []byte) (off int64, n int, err error) {
	if len(p) == 0 {
		return f.Size(), 0, nil
	}
	_ = f.s.room.whileFull(int64(len(p)), func() error {
		if off, n, err = f.append(ctx, p); n > 0 {
			return nil // p has its place, and others may append after it
		}
		return err
	})
	return off, n, err
}

func (f *File) append(ctx context.Context, p []byte) (off int64, n int, err error) {
	room := f.s.roomFor(ctx, int64(len(p)))
	l := f.lock()
	defer l.unlock()
	if room != nil {
		return f.size.Load(), 0, room
	}
	for {
		off = f.size.Load()
		if err := l.edges(ctx, off, int64(len(p))); err != nil {
			return off, 0, err
		}
		if off == f.size.Load() { // there was no wait, or no write meanwhile
			n, err = l.write(p, off)
			return off, n, err
		}
	}
}

// write writes p, for which no block has to be fetched first.
func (f *lockedFile) write(p []byte, off int64) (int, error) {
	fd, err := f.change(off, off+int64(len(p)))
	if err != nil {
		return 0, err
	}
	f.preserve(off, int64(len(p)))
	n, err := f.s.o.write(fd, p, off)
	done, merr := f.came(off, int64(n))
	if merr != nil {
		return 0, merr
	}
	return int(done), err
}

// change prepares a change of the bytes from off to end: it moves the count, and
// gives the descriptor to use.
func (f *lockedFile) change(off, end int64) (int, error) {
	fd, err := f.writer()
	if err != nil {
		return -1, err
	}
	f.writes.Add(1)
	f.changed = true
	f.note(off, end)
	if f.blocks != nil {
		err = f.blocks.touch()
	}
	return fd, err
}

// came records a program's write, and says how much of it counts. When less was written
// than the program wanted, that may end inside a block that is missing: a fetch would
// overwrite the written bytes in that block.
func (f *lockedFile) came(off, n int64) (int64, error) {
	if n <= 0 {
		return 0, nil
	}
	f.size.Store(max(f.size.Load(), off+n))
	b := f.blocks
	if b == nil {
		return n, nil
	}
	lo, hi := b.span(off, n)
	for lo < hi && !b.has(lo) && off > b.start(lo) {
		lo++ // the write begins in it, past the bytes of the source
	}
	for hi > lo && !b.has(hi-1) && off+n < b.end(hi-1) {
		hi--
		n = max(0, b.start(hi)-off)
	}
	if err := b.mark(lo, hi, present|written); err != nil {
		return 0, err
	}
	return n, f.complete()
}

// edges fetches the missing blocks that a change of [off, off+n) touches in part. It waits
// without the lock; then everything may have changed.
func (f *lockedFile) edges(ctx context.Context, off, n int64) error {
	for {
		i, ok := f.edge(off, n)
		if !ok {
			return nil
		}
		if err := f.need(ctx, i, i+1, i+1); err != nil {
			return err
		}
	}
}

// edge is a missing block that has to be local before a change of [off, off+n).
func (f *lockedFile) edge(off, n int64) (int, bool) {
	b := f.blocks
	if b == nil || b.missing == 0 {
		return 0, false
	}
	from, to := b.inside(off, n)
	if b.single() {
		return 0, from >= to // has no name yet, so that no change of it would last
	}
	if off >= b.remote {
		return 0, false // past the bytes of the source
	}
	lo, hi := b.span(off, n)
	for _, i := range []int{lo, hi - 1} {
		if hi > lo && !b.has(i) && (i < from || i >= to) {
			return i, true
		}
	}
	return 0, false
}

// Truncate sets the size. Growing adds zeros, which are present. Shrinking fetches nothing:
// the rest of a block in which the file then ends comes when it is needed. Only a file of
// one block that is not local is fetched first, unless the size is 0.
func (f *File) Truncate(ctx context.Context, size int64) error {
	if size < 0 {
		return unix.EINVAL
	}
	return f.s.room.whileFull(0, func() error { return f.truncate(ctx, size) })
}

func (f *File) truncate(ctx context.Context, size int64) error {
	l := f.lock()
	defer l.unlock()
	for size > 0 && l.blocks != nil && l.blocks.missing > 0 && l.blocks.single() {
		if err := l.need(ctx, 0, 1, 1); err != nil {
			return err
		}
	}
	old := f.size.Load()
	fd, err := l.change(min(old, size), max(old, size))
	if err != nil {
		return err
	}
	l.preserve(size, max(old-size, 0))
	if err := retry(func() error { return unix.Ftruncate(fd, size) }); err != nil {
		return err
	}
	f.size.Store(size)
	return l.cut(size)
}

// cut notes that no bytes of the source beyond size are wanted any more.
func (f *lockedFile) cut(size int64) error {
	if f.blocks == nil {
		return nil
	}
	if err := f.blocks.cut(size); err != nil {
		return err
	}
	return f.complete()
}
