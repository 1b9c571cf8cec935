package listing

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
)

// remote counts listings, which end when they are let.
type remote struct {
	Shared
	begun, ended atomic.Int32
	pages        atomic.Uint64
	answer       chan error
}

func newRemote() *remote {
	return &remote{answer: make(chan error), Shared: Shared{
		Now:  time.Now,
		Go:   func(f func()) { go f() },
		Wait: func(d time.Duration) time.Duration { return d },
	}}
}

func (r *remote) start() Run {
	r.begun.Add(1)
	ctx, cancel := context.WithCancel(context.Background())
	return Run{Pages: r.pages.Load,
		End: func() { r.ended.Add(1); cancel() },
		Work: func() error {
			select {
			case err := <-r.answer:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
}

func (r *remote) do(ctx context.Context, limit time.Duration) error {
	_, err := r.Do(ctx, table.Root, limit, r.start)
	return err
}

// One listing serves all who come meanwhile, and the next is another.
func TestOneListingServesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, told := newRemote(), errors.New("told to all")
		for round := range int32(2) {
			var callers sync.WaitGroup
			for range 5 {
				callers.Go(func() { assert.Is(t, r.do(t.Context(), -1), told) })
			}
			synctest.Wait()
			r.answer <- told
			callers.Wait()
			assert.Equal(t, r.begun.Load(), round+1, "listings")
		}
	})
}

// A caller that does not want to wait leaves the listing to itself, and one that is gone
// takes it along unless others wait.
func TestWhoGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote()
		assert.Is(t, r.do(t.Context(), time.Second), ErrTimedOut)
		assert.Is(t, r.do(t.Context(), 0), ErrTimedOut)
		assert.Equal(t, r.begun.Load(), 1, "listings")
		assert.Equal(t, r.ended.Load(), 0, "of them ended")
		r.answer <- nil
		synctest.Wait()
		assert.Equal(t, r.ended.Load(), 1, "after the answer")

		gone := errors.New("killed")
		ctx, kill := context.WithCancelCause(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() { assert.OK(t, r.do(t.Context(), -1)) })
		callers.Go(func() { assert.Is(t, r.do(ctx, -1), gone) })
		synctest.Wait()
		kill(gone)
		synctest.Wait()
		assert.Equal(t, r.ended.Load(), 1, "though one waits")
		r.answer <- nil
		callers.Wait()

		ctx, kill = context.WithCancelCause(t.Context())
		callers.Go(func() { assert.Is(t, r.do(ctx, -1), gone) })
		synctest.Wait()
		kill(gone)
		callers.Wait()
		synctest.Wait()
		assert.Equal(t, len(r.runs), 0, "listings that can be joined")
	})
}

// As long as pages come the remote answers, and a look goes on waiting.
func TestPagesAreAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, done := newRemote(), make(chan error)
		began := time.Now()
		go func() { done <- r.do(t.Context(), time.Second) }()
		for range 5 {
			time.Sleep(900 * time.Millisecond) // of the bubble
			r.pages.Add(1)
		}
		assert.Is(t, <-done, ErrTimedOut)
		assert.True(t, time.Since(began) > 5*time.Second, "it gave up after", time.Since(began))
		r.answer <- nil
	})
}
