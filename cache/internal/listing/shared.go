package listing

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// ErrTimedOut says that a caller did not want to wait any longer; the listing goes on.
var ErrTimedOut = errors.New("listing timed out")

// Run is one listing.
type Run struct {
	Work  func() error  // lists
	End   func()        // frees what Work has, and ends it
	Pages func() uint64 // that have come for it so far
}

// Shared has one listing of a directory at a time, which serves all callers that come meanwhile.
// It goes on as long as one of them waits, or when one of them timed out and left it running.
type Shared struct {
	Now  func() time.Time
	Go   func(func())                      // runs a listing
	Wait func(time.Duration) time.Duration // how long a wait for so long really is

	mu   sync.Mutex // guards runs, and of each its callers and whether it is kept
	runs underWay
}

// underWay are the listings under way, by directory.
type underWay map[table.Ino]*shared

// remove takes a listing off, unless that of its directory is another by now.
func (u underWay) remove(dir table.Ino, one *shared) {
	if u[dir] == one {
		delete(u, dir)
	}
}

// shared is a listing under way.
type shared struct {
	Run
	began time.Time
	done  chan struct{}
	err   error // valid when done is closed

	callers int
	kept    bool // no caller need wait
}

// Do lists a directory, or waits for the listing that is under way, for limit at most;
// less than 0: to its end. It reports when that listing began.
func (s *Shared) Do(ctx context.Context, dir table.Ino, limit time.Duration, start func() Run) (time.Time, error) {
	one := s.join(dir, limit, start)
	err := s.await(ctx, one, limit)
	s.mu.Lock()
	defer s.mu.Unlock()
	one.kept = one.kept || err == ErrTimedOut // never wrapped
	if one.callers--; one.callers == 0 && !one.kept {
		one.End()
		s.runs.remove(dir, one) // no caller may join a listing that is given up
	}
	return one.began, err
}

// join counts one more caller of the listing that is under way, or of one that it starts.
func (s *Shared) join(dir table.Ino, limit time.Duration, start func() Run) *shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.runs[dir]
	if one == nil {
		one = &shared{Run: start(), began: s.Now(), done: make(chan struct{})}
		if s.runs == nil {
			s.runs = underWay{}
		}
		s.runs[dir] = one
		s.Go(func() { s.run(dir, one) })
	}
	one.callers++
	one.kept = one.kept || limit == 0
	return one
}

// run lists, and wakes the callers.
func (s *Shared) run(dir table.Ino, one *shared) {
	one.err = one.Work()
	s.mu.Lock()
	s.runs.remove(dir, one)
	s.mu.Unlock()
	close(one.done)
	one.End()
}

// await waits for the end of a listing, of the limit, or of ctx. As long as pages come the
// limit begins anew: the remote does answer.
func (s *Shared) await(ctx context.Context, one *shared, limit time.Duration) error {
	var late <-chan time.Time
	for {
		pages := one.Pages()
		if limit >= 0 {
			late = time.After(s.Wait(limit))
		}
		select {
		case <-one.done:
			return one.err
		case <-late:
			if one.Pages() == pages {
				return ErrTimedOut
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
