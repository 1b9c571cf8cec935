package content

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
)

// Source brings exactly the bytes [off, off+n) of one version of a file, which
// is always the same, and writes them to w at the offsets that they have in
// the file, in any order and from any number of goroutines. What it wrote
// counts only when it returns nil. It should end soon when ctx does, and must
// not use w after it returned.
type Source func(ctx context.Context, off, n int64, w io.WriterAt) error

// flight is one call of a source. File.mu guards it.
type flight struct {
	f       *File
	lo, hi  int // blocks
	off, n  int64
	src     Source
	gen     uint64 // of the source
	waiters int
	ahead   bool   // goes on when nobody waits
	unasked bool   // its error is told to nobody who asked for the bytes
	release func() // of the budget; nil: it is asked for in flight
	dead    bool   // given up: what it brings is not taken
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // fixed when done is closed
}

// Fetch brings what is missing of [off, off+n) here and returns when it is. It
// returns the source's error, or that of ctx, whose end leaves the fetch to
// others who wait for it. Bytes beyond the end of the file are ignored.
func (f *File) Fetch(ctx context.Context, off, n int64) error {
	if f.whole.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blocks == nil {
		return nil
	}
	lo, hi := f.blocks.span(off, n)
	return f.need(ctx, lo, hi, hi)
}

// FetchAll brings everything that is missing here. When nobody has changed the
// file, the whole is compared with its digest, and a difference is
// [ErrCorrupt]; then nothing of it counts as present any more.
func (f *File) FetchAll(ctx context.Context) error { return f.Fetch(ctx, 0, f.Size()) }

// need returns when the blocks [lo, hi) are present, or why they cannot be.
// Blocks up to reach may come along. mu is held, but not while it waits.
func (f *File) need(ctx context.Context, lo, hi, reach int) error {
	for f.blocks != nil {
		i := f.blocks.firstMissing(lo, hi)
		if i >= hi {
			return nil
		}
		if f.src == nil {
			return fmt.Errorf("%w: %d bytes at %d", ErrNoSource, f.blocks.end(i)-f.blocks.start(i), f.blocks.start(i))
		}
		if err := f.await(ctx, f.board(ctx, lo, hi, reach)); err != nil {
			return err
		}
	}
	return nil
}

// board finds or starts the flights that bring what is missing of [lo, hi), as
// many as may fly at once.
func (f *File) board(ctx context.Context, lo, hi, reach int) []*flight {
	var all []*flight
	for i := f.blocks.firstMissing(lo, hi); i < hi && len(all) < parallel; i = f.blocks.firstMissing(i, hi) {
		fl := f.flightOf(i)
		if fl == nil {
			fl = f.start(ctx, i, reach)
		}
		all = append(all, fl)
		i = fl.hi
	}
	return all
}

// flightOf is the flight under way that brings a block, if there is one.
func (f *File) flightOf(i int) *flight {
	for _, fl := range f.flights {
		if fl.lo <= i && i < fl.hi {
			return fl
		}
	}
	return nil
}

// start sends a flight for the missing blocks from lo on, up to reach. mu is
// held.
func (f *File) start(ctx context.Context, lo, reach int) *flight {
	fl := f.plan(lo, reach)
	fl.send(ctx)
	return fl
}

// plan is a flight for the missing blocks from lo on, up to reach. mu is held.
func (f *File) plan(lo, reach int) *flight {
	hi := lo + 1
	most := lo + max(1, int(maxFetch/f.blocks.size))
	for hi < min(reach, most) && !f.blocks.has(hi) && f.flightOf(hi) == nil {
		hi++
	}
	fl := &flight{f: f, lo: lo, hi: hi, src: f.src, gen: f.srcGen, done: make(chan struct{})}
	fl.off = f.blocks.start(lo)
	fl.n = f.blocks.end(hi-1) - fl.off
	return fl
}

// send begins a flight. mu is held.
func (fl *flight) send(ctx context.Context) {
	f := fl.f
	fctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(f.s.work.ctx, cancel)
	fl.cancel = func() { stop(); cancel() }
	if !f.s.work.begin() {
		fl.cancel()
		fl.free()
		fl.err = ErrClosed
		close(fl.done)
		return
	}
	f.flights = append(f.flights, fl)
	f.pins++
	go fl.fly(fctx)
}

// reserve waits until the budget allows the bytes of a flight, unless they were
// asked for before.
func (fl *flight) reserve(ctx context.Context) (err error) {
	if b := fl.f.s.o.Budget; b != nil && fl.release == nil {
		fl.release, err = b.Take(ctx, fl.n)
	}
	return err
}

// free gives the bytes back.
func (fl *flight) free() {
	if fl.release != nil {
		fl.release()
	}
}

// await waits for flights. mu is held, but not while it waits.
func (f *File) await(ctx context.Context, all []*flight) error {
	for _, fl := range all {
		fl.waiters++
	}
	defer func() {
		for _, fl := range all {
			if fl.waiters--; fl.waiters == 0 && !fl.ahead {
				fl.abandon()
			}
		}
	}()
	for _, fl := range all {
		f.mu.Unlock()
		var err error
		select {
		case <-fl.done:
			err = fl.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		f.mu.Lock()
		if err == nil || ctx.Err() == nil && (f.srcGen != fl.gen || fl.unasked) {
			continue // here, or to be asked for again
		}
		return err
	}
	return nil
}

// abandon gives a flight up, unless it is over. mu is held.
func (fl *flight) abandon() {
	fl.cancel()
	fl.dead = true
	fl.leave()
}

// abandonAll ends every fetch. mu is held.
func (f *File) abandonAll() {
	for len(f.flights) > 0 {
		f.flights[0].abandon()
	}
}

// leave takes a flight off the list. mu is held.
func (fl *flight) leave() {
	for i, other := range fl.f.flights {
		if other == fl {
			fl.f.flights = append(fl.f.flights[:i], fl.f.flights[i+1:]...)
			return
		}
	}
}

// fly calls the source and takes what it brought.
func (fl *flight) fly(ctx context.Context) {
	defer fl.f.s.work.done()
	k := &sink{fl: fl}
	err := fl.reserve(ctx)
	if err == nil {
		err = fl.f.s.room.take(fl.n)
	}
	if err == nil {
		err = fl.src(ctx, fl.off, fl.n, k)
	}
	if err == nil {
		err = k.complete()
	}
	k.closed.Store(true)
	f := fl.f
	if err == nil {
		err = f.s.room.whileFull(0, fl.arrive)
	}
	fl.free() // before a reader goes on, whose next fetch would count beside this one
	f.mu.Lock()
	if err == nil && fl.dead {
		err = context.Canceled
	}
	if err != nil && f.s.work.closed() {
		err = ErrClosed
	}
	if err != nil && !fl.dead {
		f.readers.stop() // who goes on need not try again with each read
	}
	fl.err = err
	fl.leave()
	fl.cancel()
	close(fl.done)
	f.mu.Unlock()
	f.sum.advance(f)
	f.mu.Lock()
	f.unpin()
	f.mu.Unlock()
}

// arrive takes what has come, unless the flight was given up.
func (fl *flight) arrive() error {
	fl.f.mu.Lock()
	defer fl.f.mu.Unlock()
	if fl.dead {
		return nil
	}
	return fl.land()
}

// land marks what has come. When it was the last that was missing, the whole
// is compared with its digest first. mu is held, but not while it compares.
func (fl *flight) land() error {
	f := fl.f
	b := f.blocks
	if b == nil {
		return nil // all of it was written meanwhile
	}
	rest := 0
	for i := fl.lo; i < fl.hi; i++ {
		if !b.has(i) {
			rest++
		}
	}
	if rest > 0 && rest == b.missing && !b.touched {
		if err := f.verify(fl); err != nil || fl.dead {
			return err
		}
	}
	for lo := b.firstMissing(fl.lo, fl.hi); lo < fl.hi; { // some may have been written meanwhile
		hi := lo
		for hi < fl.hi && !b.has(hi) {
			hi++
		}
		if err := b.mark(lo, hi, present); err != nil {
			return err
		}
		lo = b.firstMissing(hi, fl.hi)
	}
	return f.complete()
}

// complete notes that nothing is missing any more, if that is so. mu is held.
func (f *File) complete() error {
	b := f.blocks
	if b == nil || b.missing > 0 {
		return nil
	}
	f.whole.Store(true)
	if b.touched && !b.single() {
		return nil // the map goes when the bytes that it tells of are on the disk
	}
	return f.settle()
}

// settle gives a whole file its name, or takes its map away. mu is held.
func (f *File) settle() error {
	n := f.s.dirs.lock(f.ino)
	defer n.unlock()
	if !f.s.inodes.named(n, f) {
		return nil
	}
	var err error
	if f.part != "" {
		err = n.take(f.part)
	} else {
		err = n.unlinkMap()
	}
	if err == nil {
		f.part = ""
		f.blocks.close()
		f.blocks = nil
	}
	return err
}

// sink takes what a source delivers.
type sink struct {
	fl     *flight
	closed atomic.Bool
	got    ranges // guarded by File.mu
}

// WriteAt implements [io.WriterAt]. Bytes go only where none are yet.
func (k *sink) WriteAt(p []byte, off int64) (int, error) {
	fl, f := k.fl, k.fl.f
	end := off + int64(len(p))
	if off < fl.off || end > fl.off+fl.n {
		return 0, fmt.Errorf("%w: the source brought [%d, %d) instead of [%d, %d)",
			ErrCorrupt, off, end, fl.off, fl.off+fl.n)
	}
	n := int64(len(p))
	err := f.s.room.whileFull(n, func() error {
		if !f.s.room.look(n) { // others, or fetches beside this one, have taken what it was promised
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
	fl, f := k.fl, k.fl.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl.dead || k.closed.Load() {
		return context.Canceled
	}
	if f.blocks != nil {
		if err := f.fill(p, off); err != nil {
			return err
		}
	}
	k.got.add(off, off+int64(len(p)))
	return nil
}

// fill writes the parts of p that belong into missing blocks. mu is held.
func (f *File) fill(p []byte, off int64) error {
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

// complete says what a source left out.
func (k *sink) complete() error {
	k.fl.f.mu.Lock()
	defer k.fl.f.mu.Unlock()
	if at, ok := k.got.gap(k.fl.off, k.fl.off+k.fl.n); ok {
		return fmt.Errorf("content: the source brought nothing at %d of [%d, %d): %w",
			at, k.fl.off, k.fl.off+k.fl.n, io.ErrUnexpectedEOF)
	}
	return nil
}
