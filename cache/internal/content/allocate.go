package content

import (
	"context"

	"golang.org/x/sys/unix"
)

// Allocate is fallocate(2) with its modes; those that the disk does not have are EOPNOTSUPP. It
// fetches blocks that are changed in part, and to shift ranges, all missing blocks.
func (f *File) Allocate(ctx context.Context, off, n int64, mode uint32) error {
	if off < 0 || n <= 0 || off+n < 0 {
		return unix.EINVAL
	}
	if mode&(unix.FALLOC_FL_COLLAPSE_RANGE|unix.FALLOC_FL_INSERT_RANGE) != 0 {
		return f.allocate(ctx, off, n, mode) // not repeated: it may have shifted a part
	}
	return f.s.room.whileFull(n, func() error { return f.allocate(ctx, off, n, mode) })
}

func (f *File) allocate(ctx context.Context, off, n int64, mode uint32) error {
	var room error
	if mode&^unix.FALLOC_FL_KEEP_SIZE == 0 {
		room = f.s.roomFor(ctx, n)
	}
	l := f.lock()
	defer l.unlock()
	if room != nil && !l.allocated(off, n) {
		return room
	}
	if err := l.allocateNeed(ctx, off, n, mode); err != nil {
		return err
	}
	end := off + n
	if mode&(unix.FALLOC_FL_COLLAPSE_RANGE|unix.FALLOC_FL_INSERT_RANGE) != 0 {
		end = toEnd
	}
	fd, err := l.change(off, end)
	if err != nil {
		return err
	}
	if mode&(unix.FALLOC_FL_COLLAPSE_RANGE|unix.FALLOC_FL_INSERT_RANGE) != 0 {
		l.preserve(off, f.size.Load()-off)
	} else if mode&^unix.FALLOC_FL_KEEP_SIZE != 0 {
		l.preserve(off, n)
	}
	if err := l.pinBlocks(mode); err != nil {
		return err
	}
	err = retry(func() error { return unix.Fallocate(fd, mode, off, n) })
	if err != nil {
		return err
	}
	return l.allocatedTo(off, n, mode)
}

// allocateNeed fetches the blocks that must be local for a change of mode. It waits without
// the lock.
func (f *lockedFile) allocateNeed(ctx context.Context, off, n int64, mode uint32) error {
	switch {
	case f.blocks == nil:
		return nil
	case mode&(unix.FALLOC_FL_COLLAPSE_RANGE|unix.FALLOC_FL_INSERT_RANGE|unix.FALLOC_FL_UNSHARE_RANGE) != 0,
		f.blocks.single():
		return f.need(ctx, 0, len(f.blocks.state), len(f.blocks.state))
	case mode&(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_ZERO_RANGE) != 0:
		return f.edges(ctx, off, n)
	}
	return nil // changes no byte that is missing
}

// pinBlocks marks the blocks of a file whose bytes will move, so that none of them is ever
// fetched again.
func (f *lockedFile) pinBlocks(mode uint32) error {
	if f.blocks == nil || mode&(unix.FALLOC_FL_COLLAPSE_RANGE|unix.FALLOC_FL_INSERT_RANGE) == 0 {
		return nil
	}
	return f.blocks.mark(0, len(f.blocks.state), present|written)
}

// allocatedTo records an allocation.
func (f *lockedFile) allocatedTo(off, n int64, mode uint32) error {
	st, err := f.stat()
	if err != nil {
		return err
	}
	f.size.Store(st.Size)
	if mode&(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_ZERO_RANGE) != 0 {
		n = min(n, max(st.Size-off, 0)) // with the size kept
		_, err = f.came(off, n)
	}
	return err
}

// copyPiece is how many bytes are copied while writers wait.
const copyPiece = 4 << 20

// CopyRange copies n bytes from off to dst at dstOff, inside the disk if that
// can. It returns how many it copied: fewer when this file ends. Ranges of one
// file that overlap are EINVAL.
func (f *File) CopyRange(ctx context.Context, off int64, dst *File, dstOff, n int64) (int64, error) {
	if off < 0 || dstOff < 0 || n < 0 || f == dst && off < dstOff+n && dstOff < off+n && n > 0 {
		return 0, unix.EINVAL
	}
	n = max(min(n, f.Size()-off), 0) // the size now: copying may let the file grow
	done := int64(0)
	for done < n {
		piece := min(n-done, copyPiece)
		c, err := f.copyPiece(ctx, off+done, dst, dstOff+done, piece)
		done += c
		if done == 0 {
			return 0, err
		}
		if c < piece {
			break // the next call returns the reason
		}
	}
	return done, nil
}

func (f *File) copyPiece(ctx context.Context, off int64, dst *File, dstOff, n int64) (done int64, err error) {
	err = dst.s.room.whileFull(n, func() error {
		more, err := f.copyOnce(ctx, off+done, dst, dstOff+done, n-done)
		done += more
		return err
	})
	return done, err
}

func (f *File) copyOnce(ctx context.Context, off int64, dst *File, dstOff, n int64) (int64, error) {
	if err := f.Fetch(ctx, off, n); err != nil {
		return 0, err
	}
	from, err := f.reader()
	if err != nil {
		return 0, err
	}
	room := f.s.roomFor(ctx, n)
	l := dst.lock()
	defer l.unlock()
	if room != nil && !l.allocated(dstOff, n) {
		return 0, room
	}
	if err := l.edges(ctx, dstOff, n); err != nil {
		return 0, err
	}
	to, err := l.change(dstOff, dstOff+n)
	if err != nil {
		return 0, err
	}
	l.preserve(dstOff, n)
	c, err := copyRange(from, off, to, dstOff, n)
	c, merr := l.came(dstOff, c)
	if merr != nil {
		return 0, merr
	}
	return c, err
}
