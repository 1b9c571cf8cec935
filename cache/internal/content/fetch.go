package content

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// Source brings exactly the bytes [off, off+n) of one version of a file, always the same,
// and writes them to w at the offsets that they have in the file, in any order and from any
// number of goroutines. The bytes count only when it returns nil. It should end soon when
// ctx does, and must not use w after it returned.
type Source func(ctx context.Context, off, n int64, w io.WriterAt) error

// SetSource says where missing blocks come from, from now on. It must bring the same
// version as the source before. Fetches that are under way go on, and are repeated with the
// new source should they fail.
func (f *File) SetSource(src Source) {
	l := f.lock()
	defer l.unlock()
	l.src = src
	l.srcGen++
}

// flight is one call of a source. The methods that concern others than the goroutine of the
// call are methods of lockedFile.
type flight struct {
	f      *File
	lo, hi int // blocks
	off, n int64
	src    Source
	gen    uint64 // of the source
	cancel context.CancelFunc
	done   chan struct{}
	err    error // fixed when done is closed

	release func() // of the budget; nil: it is asked for in flight

	// The lock of the file guards the rest.
	waiters int
	ahead   bool // goes on without a waiter
	unasked bool // its error goes to no caller that asked for the bytes
	dead    bool // given up: its bytes are not taken
}

// Fetch fetches the missing blocks of [off, off+n) and returns when they are local. It
// returns the source's error, or that of ctx, whose end leaves the fetch to other waiters.
// Bytes beyond the end of the file are ignored.
func (f *File) Fetch(ctx context.Context, off, n int64) error {
	if f.whole.Load() {
		return nil
	}
	l := f.lock()
	defer l.unlock()
	if l.blocks == nil {
		return nil
	}
	lo, hi := l.blocks.span(off, n)
	return l.need(ctx, lo, hi, hi)
}

// FetchAll fetches all missing blocks. When no program has changed the file, the whole is
// compared with its digest, and a difference is [ErrCorrupt]; then none of it counts as
// present any more.
func (f *File) FetchAll(ctx context.Context) error { return f.Fetch(ctx, 0, f.Size()) }

// need returns when the blocks [lo, hi) are present, or with the reason why they cannot be.
// Blocks up to reach may come along. It waits without the lock.
func (f *lockedFile) need(ctx context.Context, lo, hi, reach int) error {
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

// board finds or starts the flights that bring the missing blocks of [lo, hi), as many as
// may fly at once.
func (f *lockedFile) board(ctx context.Context, lo, hi, reach int) []*flight {
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
func (f *lockedFile) flightOf(i int) *flight {
	for _, fl := range f.flights {
		if fl.lo <= i && i < fl.hi {
			return fl
		}
	}
	return nil
}

// start sends a flight for the missing blocks from lo on, up to reach.
func (f *lockedFile) start(ctx context.Context, lo, reach int) *flight {
	fl := f.plan(lo, reach)
	f.send(ctx, fl)
	return fl
}

// plan is a flight for the missing blocks from lo on, up to reach.
func (f *lockedFile) plan(lo, reach int) *flight {
	hi := lo + 1
	most := lo + max(1, int(maxFetch/f.blocks.size))
	for hi < min(reach, most) && !f.blocks.has(hi) && f.flightOf(hi) == nil {
		hi++
	}
	fl := &flight{f: f.file, lo: lo, hi: hi, src: f.src, gen: f.srcGen, done: make(chan struct{})}
	fl.off = f.blocks.start(lo)
	fl.n = f.blocks.end(hi-1) - fl.off
	return fl
}

// send begins a flight.
func (f *lockedFile) send(ctx context.Context, fl *flight) {
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

// await waits for flights, without the lock.
func (f *lockedFile) await(ctx context.Context, all []*flight) error {
	for _, fl := range all {
		fl.waiters++
	}
	defer func() {
		for _, fl := range all {
			if fl.waiters--; fl.waiters == 0 && !fl.ahead {
				f.abandon(fl)
			}
		}
	}()
	for _, fl := range all {
		var err error
		f.unlocked(func() { err = fl.wait(ctx) })
		if err == nil || ctx.Err() == nil && (f.srcGen != fl.gen || fl.unasked) {
			continue // local, or to be asked for again
		}
		return err
	}
	return nil
}

// wait returns when the flight is over, or ctx.
func (fl *flight) wait(ctx context.Context) error {
	select {
	case <-fl.done:
		return fl.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// abandon gives a flight up, unless it is over.
func (f *lockedFile) abandon(fl *flight) {
	fl.cancel()
	fl.dead = true
	f.leave(fl)
}

// abandonAll ends every fetch.
func (f *lockedFile) abandonAll() {
	for len(f.flights) > 0 {
		f.abandon(f.flights[0])
	}
}

// leave takes a flight off the list.
func (f *lockedFile) leave(fl *flight) {
	if i := slices.Index(f.flights, fl); i >= 0 {
		f.flights = slices.Delete(f.flights, i, i+1)
	}
}

// reserve waits until the budget allows the bytes of a flight, unless they were asked for before.
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

// fly calls the source and takes its bytes.
func (fl *flight) fly(ctx context.Context) {
	f := fl.f
	defer f.s.work.done()
	err := fl.call(ctx)
	if err == nil {
		err = f.s.room.whileFull(0, fl.arrive)
	}
	fl.free() // before a reader goes on, whose next fetch would count beside this one
	fl.finish(err)
	f.sum.advance(f)
	l := f.lock()
	defer l.unlock()
	l.unpin()
}

// call calls the source, when there is room for its bytes.
func (fl *flight) call(ctx context.Context) error {
	k := &sink{fl: fl}
	defer k.closed.Store(true)
	if err := fl.reserve(ctx); err != nil {
		return err
	}
	if err := fl.f.s.room.take(fl.n); err != nil {
		return err
	}
	if err := fl.src(ctx, fl.off, fl.n, k); err != nil {
		return err
	}
	return k.complete()
}

// arrive takes the bytes that have come, unless the flight was given up.
func (fl *flight) arrive() error {
	l := fl.f.lock()
	defer l.unlock()
	if fl.dead {
		return nil
	}
	return l.land(fl)
}

// finish tells the waiters that the flight is over.
func (fl *flight) finish(err error) {
	l := fl.f.lock()
	defer l.unlock()
	if err == nil && fl.dead {
		err = context.Canceled
	}
	if err != nil && l.s.work.closed() {
		err = ErrClosed
	}
	if err != nil && !fl.dead {
		l.readers.stop() // a reader that goes on need not try again with each read
	}
	fl.err = err
	l.leave(fl)
	fl.cancel()
	close(fl.done)
}

// land marks the blocks that have come. When they were the last missing ones, the whole is
// compared with its digest first, without the lock.
func (f *lockedFile) land(fl *flight) error {
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

// complete notes that the file is whole, if no block is missing any more.
func (f *lockedFile) complete() error {
	b := f.blocks
	if b == nil || b.missing > 0 {
		return nil
	}
	f.whole.Store(true)
	if b.touched && !b.single() {
		return nil // the map goes when the bytes that it describes are on the disk
	}
	return f.settle()
}

// settle gives a whole file its name, or takes its map away.
func (f *lockedFile) settle() error {
	n := f.s.dirs.lock(f.ino)
	defer n.unlock()
	if !f.s.inodes.named(n, f.file) {
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
