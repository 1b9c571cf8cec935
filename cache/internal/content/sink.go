package content

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
)

// sink takes the bytes that a source delivers.
type sink struct {
	fl     *flight
	closed atomic.Bool
	got    ranges // see lockedFile
}

// WriteAt implements [io.WriterAt]. Bytes go only into missing blocks.
func (k *sink) WriteAt(p []byte, off int64) (int, error) {
	fl, f := k.fl, k.fl.f
	end := off + int64(len(p))
	if off < fl.off || end > fl.off+fl.n {
		return 0, fmt.Errorf("%w: the source brought [%d, %d) instead of [%d, %d)",
			ErrCorrupt, off, end, fl.off, fl.off+fl.n)
	}
	n := int64(len(p))
	err := f.s.room.whileFull(n, func() error {
		if !f.s.room.look(n) { // others, or fetches beside this one, have taken the promised room
			if err := f.s.room.take(n); err != nil {
				return err
			}
		}
		return k.take(p, off)
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (k *sink) take(p []byte, off int64) error {
	fl, l := k.fl, k.fl.f.lock()
	defer l.unlock()
	if fl.dead || k.closed.Load() {
		return context.Canceled
	}
	if l.blocks != nil {
		if err := l.fill(p, off); err != nil {
			return err
		}
	}
	k.got.add(off, off+int64(len(p)))
	return nil
}

// fill writes the parts of p that belong into missing blocks.
func (f *lockedFile) fill(p []byte, off int64) error {
	b := f.blocks
	lo, hi := b.span(off, int64(len(p)))
	for i := lo; i < hi; i++ {
		from, to := max(off, b.start(i)), min(off+int64(len(p)), b.end(i))
		if b.has(i) || from >= to {
			continue
		}
		fd, err := f.writer()
		if err != nil {
			return err
		}
		if _, err := pwrite(fd, p[from-off:to-off], from); err != nil {
			return err
		}
	}
	return nil
}

// complete reports bytes that a source left out.
func (k *sink) complete() error {
	l := k.fl.f.lock()
	defer l.unlock()
	if at, ok := k.got.gap(k.fl.off, k.fl.off+k.fl.n); ok {
		return fmt.Errorf("content: the source brought nothing at %d of [%d, %d): %w",
			at, k.fl.off, k.fl.off+k.fl.n, io.ErrUnexpectedEOF)
	}
	return nil
}
