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

// retry says when something that failed is tried again. The zero value has not
// failed.
type retry struct {
	since, next time.Time
	waited      time.Duration
	err         error
}

// pauses say how long to wait after a failure; that there is no more to be done about
// it, if it is not to be tried again.
type pauses func(syncpolicy.Failure) (wait time.Duration, again bool)

// ended notes what became of an attempt.
func (a *retry) ended(now time.Time, err error, pause pauses) {
	if err == nil {
		*a = retry{}
		return
	}
	if a.since.IsZero() {
		a.since = now
	}
	// What gave up waiting says nothing of the remote, and has no kind of its own.
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

// arm has something tried after a time, unless a time is set already.
func (a *retry) arm(at time.Time) {
	if a.next.IsZero() {
		a.next = at
	}
}

func (a *retry) due(now time.Time) bool { return !a.next.IsZero() && !now.Before(a.next) }

// fails describes it for status, nil if nothing has failed.
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

	mu                sync.Mutex // guards what follows
	push, pull, fetch retry      // pull is a pull request
}

// fetched notes what became of a pull.
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

// pushed notes what became of a push. One that was broken off has not failed, and
// is made again soon.
func (r *retries) pushed(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.push.ended(r.clock(), err, r.pause)
}

// proposed notes what became of a pull request.
func (r *retries) proposed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pull.ended(r.clock(), err, r.pause)
}

// due reports what is to be tried now: a push that is owed at once if it has not failed,
// a pull request that is missing soon.
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

// describe puts them into the status, with what the working copy knows of unpushed
// commits, which outlives this process.
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
