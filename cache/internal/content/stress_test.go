package content

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand"
	"slices"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// TestManyAtOnce lets readers, writers, fetches, snapshots, evictions and a
// source that fails now and then work on the same files. Each byte is either
// the source's or one that a writer wrote at that offset; what a snapshot says
// does not change; and in the end a file is what its only writer made of it.
func TestManyAtOnce(t *testing.T) {
	const size, files, rounds = 2000, 3, 150
	o := small()
	o.Limit = 1
	s := openStore(t, t.TempDir(), o)
	base := pattern(size, 1)
	b := &backend{data: base}
	b.do = func(ctx context.Context, call int, off, n int64, w io.WriterAt) (bool, error) {
		switch call % 7 {
		case 2:
			return true, errBackend
		case 4:
			return true, b.deliver(off, n-1, w)
		}
		return false, ctx.Err()
	}
	open := func(ino uint64) *File {
		for {
			f, err := s.Open(ino)
			if err == nil {
				f.SetSource(b.source)
				return f
			}
			if !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
				return nil
			}
		}
	}
	fine := func(err error) bool {
		if err == nil {
			return true
		}
		assert.False(t, !errors.Is(err, errBackend) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled), err)
		return false
	}
	var wg sync.WaitGroup
	var want [files][]byte
	for ino := range uint64(files) {
		f := sparse(t, s, ino, b, digestOf(base))
		defer f.Release()
		want[ino] = slices.Clone(base)
		wg.Go(func() { // the writer
			r := rand.New(rand.NewSource(int64(ino)))
			for range rounds {
				off, n := r.Int63n(size), 1+r.Int63n(200)
				n = min(n, size-off)
				p := pattern(int(n), byte(r.Intn(256)))
				if _, err := f.WriteAt(t.Context(), p, off); fine(err) {
					copy(want[ino][off:], p)
				}
			}
		})
		for k := range 2 {
			wg.Go(func() { // readers who leave early
				r := rand.New(rand.NewSource(int64(k) + 100))
				for range rounds {
					g := open(ino)
					ctx, cancel := context.WithCancel(t.Context())
					if r.Intn(4) == 0 {
						go cancel()
					}
					_, err := g.ReadAt(ctx, make([]byte, 300), r.Int63n(size))
					fine(err)
					cancel()
					g.Quiet()
					g.Release()
				}
			})
		}
		wg.Go(func() { // whoever sends
			for range rounds / 10 {
				v, err := f.Snapshot(t.Context())
				if !fine(err) {
					continue
				}
				one, err := io.ReadAll(v.Reader())
				fine(err)
				two, err := io.ReadAll(v.Reader())
				fine(err)
				assert.Slice(t, one, two, "a snapshot changed")
				v.Close()
				fine(f.Sync())
			}
		})
		wg.Go(func() {
			for range rounds {
				s.Clean(ino, size, true)
				s.Evict(func(uint64) bool { return true })
				s.Usage()
				f.Missing()
				f.Present(0, size)
			}
		})
	}
	wg.Wait()
	b.do = nil
	for ino := range uint64(files) {
		f := open(ino)
		wantBytes(t, f, want[ino])
		f.Release()
	}
}
