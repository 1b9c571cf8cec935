package content

import (
	"context"
	"errors"
)

// Reading ahead.
//
// For a reader that goes from the beginning of something to the end, ranges are fetched in
// advance: as many side by side as fit into its window. Whenever it had to wait all the same, the
// window becomes four times the bytes that it has read so far, up to maxWindow. So little is
// fetched for a reader that reads little, and one that is faster than the remote soon has it send
// as fast as it can. The Budget bounds the bytes that all readers together have under way.

const (
	maxWindow = 64 << 20
	ways      = 8         // ranges side by side in a window
	leastPart = 4 << 20   // a range is no smaller, if the window is not
	slack     = 2 << 20   // how far the reads of one reader come out of order
	enough    = 256 << 10 // a reader that has read so much on end goes on
)

// readers are those of one file that read on end, most recently used first.
type readers [4]reader

// reader is the state of one of them.
type reader struct {
	begun  bool
	start  int64 // where it began
	next   int64 // where it goes on
	window int64 // how much is fetched in advance
	front  int   // blocks before that one are local or on their way
}

// of is the reader that a read belongs to: one that goes on near that offset, or a new
// one in place of the least recently used. The reads of one reader may come in another
// order than it made them, and side by side.
func (rs *readers) of(off int64) (r *reader, gone reader) {
	i := 0
	for i < len(rs) && !rs[i].near(off) {
		i++
	}
	if i == len(rs) {
		i--
		gone = rs[i]
		rs[i] = reader{begun: true, start: off, next: off}
	}
	found := rs[i]
	copy(rs[1:i+1], rs[:i])
	rs[0] = found
	return &rs[0], gone
}

func (r *reader) near(off int64) bool {
	return r.begun && off >= r.next-slack && off <= r.next+slack
}

// stop ends fetches in advance until a reader waits again.
func (rs *readers) stop() {
	for i := range rs {
		rs[i].window, rs[i].front = 0, 0
	}
}

// saw notes a read, and whether it had to wait.
func (r *reader) saw(off, n int64, miss bool) {
	r.next = max(r.next, off+n)
	if read := r.next - r.start; miss && read >= enough {
		r.window = max(r.window, min(4*read, maxWindow))
	}
}

// part is how large the ranges of the window are.
func (r *reader) part() int64 {
	return max(min(r.window, leastPart), min(r.window/ways, maxFetch))
}

// readNeed fetches the blocks of a read, and more for a reader that goes on.
func (f *File) readNeed(ctx context.Context, off, n int64) error {
	l := f.lock()
	defer l.unlock()
	b := l.blocks
	if b == nil {
		return nil
	}
	n = max(min(n, f.size.Load()-off), 0)
	lo, hi := b.span(off, n)
	miss := b.firstMissing(lo, hi) < hi
	r, gone := l.readers.of(off)
	l.forsake(gone)
	r.saw(off, n, miss)
	part := int(r.part() / b.size)
	if !miss {
		l.readAhead(ctx, r, hi, part)
		return nil
	}
	reach := max(hi, min(lo+part, len(b.state)))
	if l.src != nil {
		l.board(ctx, lo, hi, reach)
		l.readAhead(ctx, r, hi, part)
	}
	return l.need(ctx, lo, hi, reach)
}

// readAhead starts fetches of the missing blocks of a reader's window after the block hi,
// in ranges of so many blocks.
func (f *lockedFile) readAhead(ctx context.Context, r *reader, hi, part int) {
	b := f.blocks
	if r.window == 0 || part == 0 || f.src == nil {
		return
	}
	end := min(hi+int(r.window/b.size), len(b.state))
	for r.front = max(r.front, hi); r.front < end; {
		next := b.firstMissing(r.front, end)
		if fl := f.flightOf(next); fl != nil && next < end {
			r.front = fl.hi
			continue
		}
		if next > end-min(part, len(b.state)-next) { // the rest of the window is no whole range
			return
		}
		fl := f.plan(next, next+part)
		if !f.mayAhead(fl, f.file) {
			return
		}
		fl.ahead = true
		f.send(ctx, fl)
		r.front = fl.hi
	}
}

// mayAhead asks the budget for the bytes of a flight without a waiter.
func (f *lockedFile) mayAhead(fl *flight, reader any) (ok bool) {
	if f.s.o.Budget == nil {
		return true
	}
	fl.release, ok = f.s.o.Budget.TryTake(reader, fl.n)
	return ok
}

// forsake gives up the fetches in advance for a reader that was not seen for long.
func (f *lockedFile) forsake(r reader) {
	if r.window == 0 {
		return
	}
	from := int(r.next / f.blocks.size)
	for i := len(f.flights) - 1; i >= 0; i-- {
		if fl := f.flights[i]; fl.ahead && fl.waiters == 0 && fl.lo >= from && fl.hi <= r.front {
			f.abandon(fl)
		}
	}
}

// FetchAhead fetches all of a file that no caller has asked for yet, as far as the budget
// has room for reader, and returns when it is local. A caller that needs the bytes
// meanwhile waits for the same fetch, but does not get its error: it asks again itself.
func (f *File) FetchAhead(ctx context.Context, reader any) error {
	l := f.lock()
	defer l.unlock()
	switch {
	case l.blocks == nil:
		return nil
	case l.src == nil:
		return ErrNoSource
	}
	all, ok := l.startAll(ctx, reader)
	for _, fl := range all {
		fl.unasked = fl.unasked || fl.waiters == 0 && !fl.ahead
	}
	err := l.await(ctx, all)
	switch {
	case err != nil:
		return err
	case l.blocks == nil || l.blocks.missing == 0:
		return nil
	case !ok:
		return errNoBudget
	}
	return errUnasked
}

var (
	errNoBudget = errors.New("no room to prefetch")
	errUnasked  = errors.New("the prefetch ended without content")
)

// startAll starts fetches of all missing blocks, and reports whether all of them are on
// their way.
func (f *lockedFile) startAll(ctx context.Context, reader any) (all []*flight, ok bool) {
	end := len(f.blocks.state)
	for i := f.blocks.firstMissing(0, end); i < end; i = f.blocks.firstMissing(i, end) {
		fl := f.flightOf(i)
		if fl == nil {
			fl = f.plan(i, end)
			if !f.mayAhead(fl, reader) {
				return all, false
			}
			f.send(ctx, fl)
		}
		all = append(all, fl)
		i = fl.hi
	}
	return all, true
}
