package content

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

var errBackend = errors.New("backend")

func TestReadsFetchWhatTheyNeed(t *testing.T) {
	data := pattern(64*20+10, 1)
	type read struct{ off, n int64 }
	for _, c := range []struct {
		name  string
		reads []read
		want  [][2]int64
	}{
		{"one block", []read{{70, 5}}, [][2]int64{{64, 64}}},
		{"twice is fetched once", []read{{70, 5}, {64, 64}}, [][2]int64{{64, 64}}},
		{"across blocks in one call", []read{{130, 140}}, [][2]int64{{128, 192}}},
		{"around what is here", []read{{256, 64}, {70, 400}}, [][2]int64{{256, 64}, {64, 192}, {320, 192}}},
		{"the last block ends with the file", []read{{1285, 100}}, [][2]int64{{1280, 10}}},
		{"beyond the end", []read{{2000, 10}}, nil},
		{"here and there", []read{{640, 9}, {128, 9}, {960, 9}, {384, 9}}, [][2]int64{{640, 64}, {128, 64}, {960, 64}, {384, 64}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &backend{data: data}
			f := alone(t, b, "")
			for _, r := range c.reads {
				got := make([]byte, r.n)
				n, err := f.ReadAt(t.Context(), got, r.off)
				want := data[min(r.off, int64(len(data))):min(r.off+r.n, int64(len(data)))]
				assert.Must(t, n == len(want) && string(got[:n]) == string(want), "read", r, got[:n])
				assert.Must(t, (err == io.EOF) == (len(want) < int(r.n)), "read", r, err)
			}
			slices.SortFunc(b.calls, func(x, y [2]int64) int { return int(x[0] - y[0]) })
			slices.SortFunc(c.want, func(x, y [2]int64) int { return int(x[0] - y[0]) })
			assert.Slice(t, b.calls, c.want, "calls")
		})
	}
}

func TestSequentialReadsAreFewFetches(t *testing.T) {
	data := pattern(48<<20, 1)
	b := &backend{data: data}
	f := using(t, sparse(t, openStore(t, t.TempDir(), Options{Floor: -1, Ballast: -1}), 7, b, digestOf(data)))
	buf := make([]byte, 128<<10)
	for off := 0; off < len(data); off += len(buf) {
		assert.OK(t, assert.ErrOf(f.ReadAt(t.Context(), buf, int64(off))))
		assert.Must(t, string(buf) == string(data[off:off+len(buf)]), "wrong bytes at", off)
	}
	assert.AtMost(t, b.count(), 16, "calls", b.calls)
	for _, c := range b.calls {
		assert.AtMost(t, c[1], maxFetch, "bytes that a call is for")
	}
	assert.True(t, f.Whole(), "not whole")
}

func TestFetchAllInBoundedCalls(t *testing.T) {
	data := pattern(20<<20+5, 1)
	b := &backend{data: data}
	f := using(t, sparse(t, openStore(t, t.TempDir(), Options{Floor: -1, Ballast: -1}), 7, b, digestOf(data)))
	assert.OK(t, f.FetchAll(t.Context()))
	slices.SortFunc(b.calls, func(x, y [2]int64) int { return int(x[0] - y[0]) })
	assert.Slice(t, b.calls, [][2]int64{{0, 8 << 20}, {8 << 20, 8 << 20}, {16 << 20, 4<<20 + 5}}, "calls")
	wantBytes(t, f, data)
}

func TestManyAskersOneFetch(t *testing.T) {
	b := &backend{data: pattern(640, 1)}
	asked := make(chan struct{})
	b.do = func(ctx context.Context, call int, _, _ int64, _ io.WriterAt) (bool, error) {
		<-asked
		return false, nil
	}
	f := alone(t, b, "")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			assert.Is(t, f.Fetch(t.Context(), 100, 200), nil)
		})
	}
	waitFor(f, func(f *lockedFile) bool { return len(f.flights) == 1 && f.flights[0].waiters == 20 })
	close(asked)
	wg.Wait()
	assert.Equal(t, b.count(), 1, "calls", b.calls)
}

// waitFor returns when cond, which the lock of the file guards, holds.
func waitFor(f *File, cond func(*lockedFile) bool) {
	for {
		l := f.lock()
		ok := cond(l)
		l.unlock()
		if ok {
			return
		}
	}
}

func TestWaiterLeaves(t *testing.T) {
	b := &backend{data: pattern(640, 1)}
	ended := make(chan error, 1)
	goOn := make(chan struct{})
	b.do = func(ctx context.Context, call int, _, _ int64, _ io.WriterAt) (bool, error) {
		select {
		case <-ctx.Done():
			ended <- ctx.Err()
			return true, ctx.Err()
		case <-goOn:
			return false, nil
		}
	}
	f := alone(t, b, "")
	ask := func(ctx context.Context, n int) chan error {
		done := make(chan error, 1)
		go func() { done <- f.Fetch(ctx, 0, 64) }()
		waitFor(f, func(f *lockedFile) bool { return len(f.flights) == 1 && f.flights[0].waiters == n })
		return done
	}
	first, cancelFirst := context.WithCancel(t.Context())
	second, cancelSecond := context.WithCancel(t.Context())
	one := ask(first, 1)
	two := ask(second, 2)
	cancelFirst()
	wantErr(t, <-one, context.Canceled)
	select {
	case err := <-ended:
		t.Fatalf("the fetch ended with %v while somebody waits", err)
	default:
	}
	cancelSecond()
	wantErr(t, <-two, context.Canceled)
	wantErr(t, <-ended, context.Canceled)

	close(goOn) // and the next one starts anew
	assert.OK(t, f.Fetch(t.Context(), 0, 64))
	assert.Equal(t, b.count(), 2, "calls", b.calls)
}

func TestReleaseEndsFetches(t *testing.T) {
	b := &backend{data: pattern(640, 1)}
	ended := make(chan struct{})
	b.do = func(ctx context.Context, _ int, _, _ int64, _ io.WriterAt) (bool, error) {
		<-ctx.Done()
		close(ended)
		return true, ctx.Err()
	}
	f := sparse(t, openStore(t, t.TempDir(), small()), 7, b, "")
	l := f.lock()
	all, _ := l.startAll(t.Context(), "reader")
	all[0].ahead = true // nobody waits for it
	l.unlock()
	f.Release()
	<-ended
}

func TestCloseEndsFetches(t *testing.T) {
	b := &backend{data: pattern(640, 1)}
	b.do = func(ctx context.Context, _ int, _, _ int64, _ io.WriterAt) (bool, error) {
		<-ctx.Done()
		return true, ctx.Err()
	}
	s := openStore(t, t.TempDir(), small())
	f := using(t, sparse(t, s, 7, b, ""))
	done := make(chan error, 1)
	go func() { done <- f.Fetch(t.Context(), 0, 64) }()
	waitFor(f, func(f *lockedFile) bool { return len(f.flights) == 1 })
	assert.OK(t, s.Close())
	wantErr(t, <-done, ErrClosed)
	wantErr(t, f.Fetch(t.Context(), 0, 64), ErrClosed)
}

func TestBadSources(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(b *backend, off, n int64, w io.WriterAt) error
		want error
	}{
		{"fails", func(b *backend, off, n int64, w io.WriterAt) error { return errBackend }, errBackend},
		{"fails after all came", func(b *backend, off, n int64, w io.WriterAt) error {
			return errors.Join(b.deliver(off, n, w), errBackend)
		}, errBackend},
		{"delivers short", func(b *backend, off, n int64, w io.WriterAt) error {
			return b.deliver(off, n-1, w)
		}, io.ErrUnexpectedEOF},
		{"leaves a gap", func(b *backend, off, n int64, w io.WriterAt) error {
			w.WriteAt(b.data[off:off+10], off)
			_, err := w.WriteAt(b.data[off+11:off+n], off+11)
			return err
		}, io.ErrUnexpectedEOF},
		{"the same bytes twice", func(b *backend, off, n int64, w io.WriterAt) error {
			w.WriteAt(b.data[off:off+n/2], off)
			_, err := w.WriteAt(b.data[off:off+n/2], off)
			return err
		}, io.ErrUnexpectedEOF},
		{"delivers too much", func(b *backend, off, n int64, w io.WriterAt) error {
			_, err := w.WriteAt(b.data[off:off+n+1], off)
			return err
		}, ErrCorrupt},
		{"delivers too early", func(b *backend, off, n int64, w io.WriterAt) error {
			_, err := w.WriteAt(b.data[off-1:off+n], off-1)
			return err
		}, ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &backend{data: pattern(640, 1)}
			b.do = func(_ context.Context, call int, off, n int64, w io.WriterAt) (bool, error) {
				if call == 0 {
					return true, c.do(b, off, n, w)
				}
				return false, nil
			}
			f := alone(t, b, digestOf(b.data))
			wantErr(t, assert.ErrOf(f.ReadAt(t.Context(), make([]byte, 100), 100)), c.want)
			assert.True(t, f.Missing() == 640 && !f.Present(64, 1), f.Missing(), "bytes are missing, want all")
			wantBytes(t, f, b.data)
		})
	}
}

func TestWithoutSource(t *testing.T) {
	s := openStore(t, t.TempDir(), small())
	f := assert.Of(s.Sparse(7, "", 640, "")).OK(t)
	defer f.Release()
	wantErr(t, assert.ErrOf(f.ReadAt(t.Context(), make([]byte, 1), 0)), ErrNoSource)
	wantErr(t, f.FetchAhead(t.Context(), "reader"), ErrNoSource)
	write(t, f, pattern(64, 9), 64)
	assert.Equal(t, f.Missing(), 640-64, "bytes missing")
}

func TestFailedFetchIsRepeatedWithTheNewSource(t *testing.T) {
	old := &backend{data: pattern(640, 1)}
	f := alone(t, old, "")
	next := &backend{data: old.data}
	old.do = func(context.Context, int, int64, int64, io.WriterAt) (bool, error) {
		f.SetSource(next.source)
		return true, errBackend
	}
	wantBytes(t, f, old.data)
}

func TestLateFetchOverwritesNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, f *File, want []byte) []byte
	}{
		{"write of a whole block", func(t *testing.T, f *File, want []byte) []byte {
			write(t, f, pattern(64, 99), 64)
			copy(want[64:], pattern(64, 99))
			return want
		}},
		{"truncate to 0 and write", func(t *testing.T, f *File, want []byte) []byte {
			assert.OK(t, f.Truncate(t.Context(), 0))
			write(t, f, pattern(100, 99), 30)
			return append(make([]byte, 30), pattern(100, 99)...)
		}},
		{"shrink in a block and grow", func(t *testing.T, f *File, want []byte) []byte {
			assert.OK(t, f.Truncate(t.Context(), 100))
			assert.OK(t, f.Truncate(t.Context(), 300))
			return append(want[:100:100], make([]byte, 200)...)
		}},
		{"punch a block", func(t *testing.T, f *File, want []byte) []byte {
			assert.OK(t, f.Allocate(t.Context(), 64, 128, punch))
			clear(want[64:192])
			return want
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &backend{data: pattern(640, 1)}
			begun, goOn := make(chan struct{}), make(chan struct{})
			b.do = func(_ context.Context, call int, _, _ int64, _ io.WriterAt) (bool, error) {
				if call == 0 {
					close(begun)
					<-goOn
				}
				return false, nil
			}
			f := alone(t, b, digestOf(b.data))
			done := make(chan error, 1)
			go func() { done <- f.FetchAll(t.Context()) }()
			<-begun
			want := c.change(t, f, slices.Clone(b.data))
			close(goOn)
			assert.OK(t, <-done)
			wantBytes(t, f, want)
		})
	}
}

func TestDigest(t *testing.T) {
	data := pattern(640, 1)
	for _, c := range []struct {
		name, digest string
		size         int
		want         error
	}{
		{"sha256 that matches", digestOf(data), 640, nil},
		{"sha256 that does not", digestOf(data[:639]), 640, ErrCorrupt},
		{"one block that matches", digestOf(data[:60]), 60, nil},
		{"one block that does not", digestOf(data[:61]), 60, ErrCorrupt},
		{"md5 that matches", "md5:0f343b0931126a20f133d67c2b018a3b", 0, nil},
		{"md5 that does not", "md5:0f343b0931126a20f133d67c2b018a3c", 640, ErrCorrupt},
		{"a kind that nobody knows", "crc32:0", 640, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &backend{data: data[:c.size]}
			if c.size == 0 { // 1024 zeros
				b.data = make([]byte, 1024)
			}
			f := alone(t, b, c.digest)
			if c.size > 64 {
				assert.OK(t, f.Fetch(t.Context(), 200, 10)) // not in order
			}
			wantErr(t, f.FetchAll(t.Context()), c.want)
			if c.want == nil {
				wantBytes(t, f, b.data)
				return
			}
			assert.Equal(t, f.Missing(), int64(c.size), "bytes missing")
			wantErr(t, assert.ErrOf(f.ReadAt(t.Context(), make([]byte, 640), 0)), ErrCorrupt)
		})
	}
}

func TestCorruptContentIsFetchedAgain(t *testing.T) {
	b := &backend{data: pattern(640, 1)}
	b.do = func(_ context.Context, call int, off, n int64, w io.WriterAt) (bool, error) {
		if call > 0 {
			return false, nil
		}
		_, err := w.WriteAt(make([]byte, n), off)
		return true, err
	}
	dir := t.TempDir()
	f := sparse(t, openStore(t, dir, small()), 7, b, digestOf(b.data))
	assert.OK(t, f.Fetch(t.Context(), 0, 64))
	wantErr(t, f.FetchAll(t.Context()), ErrCorrupt)
	f.Release()
	f = using(t, opened(t, openStore(t, dir, small()), 7)) // by another process
	f.SetSource(b.source)
	assert.Equal(t, f.Missing(), 640, "bytes missing")
	wantBytes(t, f, b.data)
}

func TestVerify(t *testing.T) {
	s := openStore(t, t.TempDir(), small())
	f := using(t, create(t, s, 7))
	data := pattern(500, 3)
	write(t, f, data, 0)
	assert.OK(t, f.Verify(t.Context(), digestOf(data)))
	wantErr(t, f.Verify(t.Context(), digestOf(data[1:])), ErrCorrupt)
	wantErr(t, f.Verify(t.Context(), ""), ErrCorrupt)
	b := &backend{data: data}
	p := using(t, sparse(t, s, 8, b, ""))
	wantErr(t, p.Verify(t.Context(), digestOf(data)), ErrPartial)
}
