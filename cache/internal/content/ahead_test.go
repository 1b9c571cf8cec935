package content

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

const mib = 1 << 20

// plain are options without a floor, with blocks as they are outside of tests.
func plain() Options { return Options{Floor: -1, Ballast: -1} }

// readAt reads one piece and compares it.
func readAt(t *testing.T, f *File, b *backend, off, n int64) {
	t.Helper()
	buf := make([]byte, n)
	_, err := f.ReadAt(t.Context(), buf, off)
	assert.True(t, err == nil || err == io.EOF, err)
	assert.Must(t, string(buf) == string(b.data[off:off+n]), "wrong bytes at", off)
}

// settle waits until nothing is under way.
func settle(f *File) { waitFor(f, func(f *lockedFile) bool { return len(f.flights) == 0 }) }

// Of a reader that goes on, several ranges are under way at once.
func TestRangesSideBySide(t *testing.T) {
	b := &backend{data: pattern(64*mib, 1)}
	gate := make(chan struct{})
	b.do = func(ctx context.Context, call int, _, _ int64, _ io.WriterAt) (bool, error) {
		if call > 0 { // the first is what an open fetches
			<-gate
		}
		return false, nil
	}
	f := using(t, sparse(t, openStore(t, t.TempDir(), plain()), 7, b, ""))
	assert.OK(t, f.Fetch(t.Context(), 0, 4*mib))
	readAt(t, f, b, 0, 2*mib)
	readAt(t, f, b, 2*mib, 2*mib)
	done := make(chan struct{})
	go func() {
		defer close(done)
		readAt(t, f, b, 4*mib, mib)
	}()
	waitFor(f, func(f *lockedFile) bool { return len(f.flights) >= 4 })
	close(gate)
	<-done
	settle(f)
	assert.True(t, f.Present(0, int64(len(b.data[:4*mib+4*5*mib]))), "the window is not here")
	assert.False(t, f.Present(4*mib+4*5*mib+mib, 1), "more than the window is here")
}

// A read here and there brings little.
func TestRandomReadsFetchLittle(t *testing.T) {
	b := &backend{data: pattern(64*mib, 1)}
	f := using(t, sparse(t, openStore(t, t.TempDir(), plain()), 7, b, ""))
	for i := range int64(10) {
		readAt(t, f, b, i*37%13*4*mib+4096, 4096)
	}
	settle(f)
	assert.Equal(t, 64*mib-f.Missing(), 10*defaultBlock, "bytes came for 10 reads of 4 KiB")
}

// Two who read one file at different places are both fetched for.
func TestTwoReadersOfOneFile(t *testing.T) {
	b := &backend{data: pattern(64*mib, 1)}
	f := using(t, sparse(t, openStore(t, t.TempDir(), plain()), 7, b, ""))
	for i := range int64(8) {
		readAt(t, f, b, i*mib/2, mib/2)
		readAt(t, f, b, 32*mib+i*mib/2, mib/2)
		settle(f)
	}
	for _, at := range []int64{4 * mib, 36 * mib} {
		assert.True(t, f.Present(at, mib), "nothing is here ahead of", at)
	}
}

// What is under way for a reader that went elsewhere is given up when others have
// taken its place.
func TestForsakenReader(t *testing.T) {
	b := &backend{data: pattern(100*mib, 1)}
	b.do = func(ctx context.Context, _ int, off, _ int64, _ io.WriterAt) (bool, error) {
		if off >= 4*mib && off < 40*mib {
			<-ctx.Done()
			return true, ctx.Err()
		}
		return false, nil
	}
	f := using(t, sparse(t, openStore(t, t.TempDir(), plain()), 7, b, ""))
	assert.OK(t, f.Fetch(t.Context(), 0, 4*mib))
	readAt(t, f, b, 0, 2*mib)
	readAt(t, f, b, 2*mib, 2*mib)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := f.ReadAt(ctx, make([]byte, 4096), 4*mib)
		left <- err
	}()
	waitFor(f, func(f *lockedFile) bool { return len(f.flights) > 1 })
	cancel()
	<-left
	l := f.lock()
	ahead := len(l.flights)
	l.unlock()
	assert.Must(t, ahead != 0, "nothing is under way ahead of the reader")
	for i := range int64(len(readers{})) {
		readAt(t, f, b, (50+i*10)*mib, 4096)
	}
	settle(f)
}

// purse is a budget that tests look into.
type purse struct {
	mu    sync.Mutex
	limit int64 // in advance
	ahead int64
	used  int64
	most  int64
}

func (p *purse) Take(_ context.Context, n int64) (func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used += n
	p.most = max(p.most, p.used)
	return func() { p.give(n, 0) }, nil
}

func (p *purse) TryTake(_ any, n int64) (func(), bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ahead+n > p.limit {
		return nil, false
	}
	p.ahead += n
	p.used += n
	p.most = max(p.most, p.used)
	return func() { p.give(n, n) }, true
}

func (p *purse) give(n, ahead int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	p.ahead -= ahead
}

// All that is under way was asked of the budget and is given back; without it a
// reader gets what it needs and no more.
func TestBudget(t *testing.T) {
	for _, limit := range []int64{0, 8 * mib} {
		p := &purse{limit: limit}
		b := &backend{data: pattern(40*mib, 1)}
		o := plain()
		o.Budget = p
		f := sparse(t, openStore(t, t.TempDir(), o), 7, b, "")
		for off := int64(0); off < 40*mib; off += mib {
			readAt(t, f, b, off, mib)
		}
		settle(f)
		f.Release()
		p.mu.Lock()
		assert.True(t, p.used == 0 && p.ahead == 0, limit, "bytes are not given back:", p.used, p.ahead)
		assert.True(t, p.most > 0 && p.most <= limit+maxFetch, limit, "bytes that were under way:", p.most)
		p.mu.Unlock()
	}
}

// What is fetched ahead is here, or its error is nobody's: who needs the bytes
// asks himself.
func TestFetchAhead(t *testing.T) {
	b := &backend{data: pattern(640, 1)}
	gate := make(chan struct{})
	b.do = func(_ context.Context, call int, _, _ int64, _ io.WriterAt) (bool, error) {
		if call == 0 {
			<-gate
			return true, errBackend
		}
		return false, nil
	}
	f := alone(t, b, "")
	ahead := make(chan error)
	go func() { ahead <- f.FetchAhead(t.Context(), "reader") }()
	waitFor(f, func(f *lockedFile) bool { return len(f.flights) == 1 })
	needed := make(chan error)
	go func() { needed <- f.Fetch(t.Context(), 0, 640) }()
	waitFor(f, func(f *lockedFile) bool { return len(f.flights) == 1 && f.flights[0].waiters == 2 })
	close(gate)
	assert.True(t, <-ahead != nil || b.count() >= 2, "what failed is said to be here") // who needs it may have brought it already
	assert.OK(t, <-needed)
	assert.OK(t, f.FetchAhead(t.Context(), "reader"))
	assert.Equal(t, b.count(), 2, "calls", b.calls)
}

// Without room nothing is fetched ahead, and who leaves ends what nobody needs.
func TestFetchAheadEnds(t *testing.T) {
	o := small()
	o.Budget = &purse{}
	b := &backend{data: pattern(640, 1)}
	s := openStore(t, t.TempDir(), o)
	f := using(t, sparse(t, s, 7, b, ""))
	assert.True(t, f.FetchAhead(t.Context(), "reader") != nil, "there was room")
	assert.Equal(t, b.count(), 0, "calls", b.calls)
	o.Budget.(*purse).limit = 640
	b.do = func(ctx context.Context, _ int, _, _ int64, _ io.WriterAt) (bool, error) {
		<-ctx.Done()
		return true, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ahead := make(chan error)
	go func() { ahead <- f.FetchAhead(ctx, "reader") }()
	waitFor(f, func(f *lockedFile) bool { return len(f.flights) == 1 })
	cancel()
	assert.Is(t, <-ahead, context.Canceled)
	settle(f)
	waitFor(f, func(*lockedFile) bool { return o.Budget.(*purse).free() })
}

func (p *purse) free() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used == 0
}
