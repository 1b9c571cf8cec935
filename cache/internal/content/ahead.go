package content

import (
	"context"
	"errors"
)

// Reading ahead.
//
// A reader that goes from the beginning of something to the end is fetched for
// in advance: as many ranges side by side as fit into its window. Whenever it had
// to wait all the same, the window becomes four times what it has read so far, up
// to maxWindow. So who reads a little is fetched little for, and who is faster
// than the remote soon has it send as fast as it can. What all readers together
// may have under way is for the Budget to say.

const (
	maxWindow = 64 << 20
	ways      = 8         // ranges side by side in a window
	leastPart = 4 << 20   // a range is no smaller, if the window is not
	slack     = 2 << 20   // how far the reads of one reader come out of order
	enough    = 256 << 10 // who has read so much on end goes on
)

// readers are those of one file that read on end, the last used first.
type readers [4]reader

// reader is where one of them is.
type reader struct {
	begun  bool
	start  int64 // where it began
	next   int64 // where it goes on
	window int64 // how much is fetched in advance
	front  int   // blocks before that one are here or on their way
}

// of is the reader that a read belongs to: one that goes on about there, or a new
// one in the place of the one that was not seen for longest. The reads of one
// reader may come in another order than it made them, and side by side.
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

// stop has nothing fetched in advance until a reader waits again.
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

// readNeed brings what a read needs here, and for a reader that goes on more.
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

// readAhead starts what is missing of a reader's window behind the block hi, in
// ranges of so many blocks.
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
		if next > end-min(part, len(b.state)-next) { // what is left of the window is no whole range
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

// mayAhead asks the budget for the bytes of a flight that no one waits for.
func (f *lockedFile) mayAhead(fl *flight, reader any) (ok bool) {
	if f.s.o.Budget == nil {
		return true
	}
	fl.release, ok = f.s.o.Budget.TryTake(reader, fl.n)
	return ok
}

// forsake gives up what is on its way for a reader that was not seen for long.
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

// FetchAhead brings all of a file here that no one has asked for yet, as far as
// the budget has room for reader, and returns when it is here. Who needs the bytes
// meanwhile waits for the same fetch, but not for its error: he asks himself.
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

// startAll starts what is missing, and reports whether all of it is on its way.
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
