package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/syncpolicy"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// retry is the time at which a failed operation is tried again. The zero value has not failed.
type retry struct {
	since, next time.Time
	waited      time.Duration
	err         error
}

// pauses returns the wait after a failure; again is false if it is not to be tried again.
type pauses func(syncpolicy.Failure) (wait time.Duration, again bool)

// ended notes the result of an attempt.
func (a *retry) ended(now time.Time, err error, pause pauses) {
	if err == nil {
		*a = retry{}
		return
	}
	if a.since.IsZero() {
		a.since = now
	}
	// A wait that timed out has no kind of its own, and is no lasting failure of the remote.
	lasting := providers.KindOf(err).Retry == providers.RetryNever && !errors.Is(err, fs.ErrUnavailable)
	f := syncpolicy.Failure{Waited: a.waited, Lasting: lasting}
	var wants providers.RetryAfter
	if errors.As(err, &wants) {
		f.Wants = wants.RetryAfter()
	}
	wait, again := pause(f)
	a.err, a.waited, a.next = err, wait, time.Time{}
	if again {
		a.next = now.Add(wait)
	}
}

// arm sets the time of the next attempt, unless one is set already.
func (a *retry) arm(at time.Time) {
	if a.next.IsZero() {
		a.next = at
	}
}

func (a *retry) due(now time.Time) bool { return !a.next.IsZero() && !now.Before(a.next) }

// fails describes the failure for status, nil if there is none.
func (a *retry) fails() *control.Fails {
	if a.err == nil {
		return nil
	}
	return &control.Fails{Since: a.since, Next: a.next, Error: a.err.Error()}
}

// retries are the pushes, pull requests and pulls of a working copy that failed.
type retries struct {
	clock func() time.Time
	pause pauses

	mu                sync.Mutex // guards the fields below
	push, pull, fetch retry      // pull is a pull request
}

// fetched notes the result of a pull.
func (r *retries) fetched(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fetch.ended(r.clock(), err, func(f syncpolicy.Failure) (time.Duration, bool) {
		f.Pull = true
		return r.pause(f)
	})
}

// fetchDue reports whether a pull that failed is to be tried now.
func (r *retries) fetchDue() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fetch.due(r.clock())
}

// pushed notes the result of a push. A canceled push has not failed, and is made again soon.
func (r *retries) pushed(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.push.ended(r.clock(), err, r.pause)
}

// proposed notes the result of opening a pull request.
func (r *retries) proposed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pull.ended(r.clock(), err, r.pause)
}

// due reports which are to be tried now: an owed push at once if it has not failed, a
// missing pull request after FirstPause.
func (r *retries) due(push, pull bool) (pushDue, pullDue bool) {
	now := r.clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range []struct {
		retry  *retry
		wanted bool
		first  time.Time
	}{{&r.push, push, now}, {&r.pull, pull, now.Add(syncpolicy.FirstPause)}} {
		if a.wanted {
			a.retry.arm(a.first)
		} else {
			*a.retry = retry{}
		}
	}
	return r.push.due(now), r.pull.due(now)
}

// describe puts them into the status, with the working copy's record of unpushed
// commits, which survives this process.
func (r *retries) describe(c *control.Copy, u *cache.Unpushed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.PullsFails = r.pull.fails()
	c.PushFails = r.push.fails() // the policy may be why
	if u == nil {
		return
	}
	c.Unpushed, c.UnpushedCommits, c.UnpushedSince = true, u.Commits, u.Since
	if !u.Owed.IsZero() {
		c.PushFails = &control.Fails{Since: u.Owed, Next: r.push.next, Error: u.Error}
	}
}
