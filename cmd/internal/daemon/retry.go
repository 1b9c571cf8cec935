package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
)

// retry says when something that failed is tried again. The zero value has not
// failed.
type retry struct {
	since, next time.Time
	pause       time.Duration
	err         error
}

const (
	firstAgain = time.Second // a service that only starts again is back soon
	lastAgain  = 10 * time.Minute
)

// ended notes what became of an attempt. What will hardly change by itself is
// tried again after the longest pause, and nothing before a service wants it.
func (a *retry) ended(now time.Time, err error) {
	if err == nil {
		*a = retry{}
		return
	}
	if a.since.IsZero() {
		a.since = now
	}
	a.err, a.pause = err, min(max(2*a.pause, firstAgain), lastAgain)
	if providers.KindOf(err).Retry == providers.RetryNever {
		a.pause = lastAgain
	}
	var wants providers.RetryAfter
	if errors.As(err, &wants) {
		a.pause = max(a.pause, wants.RetryAfter())
	}
	a.next = now.Add(a.pause)
}

// wait has something tried for the first time, soon.
func (a *retry) wait(now time.Time) {
	if a.next.IsZero() {
		a.next = now.Add(firstAgain)
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

// owes reports whether commits are to be pushed now by themselves: each commit is,
// or a push of them was begun, in this mount or in the one before it.
func (k *syncer) owes(u *cache.Unpushed) bool {
	if u == nil || k.readOnly || k.sync.Mode != mountspec.ModePullPush || k.sync.Push.On.Resolve() == mountspec.EventManual {
		return false
	}
	return k.pushesCommits() || !u.Owed.IsZero()
}

// tried notes what became of a push. One that was broken off has not failed, and
// is made again soon.
func (k *syncer) tried(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pushRetry.ended(k.now(), err)
}

// pushFails is what the working copy knows of a push that has not succeeded, which
// outlives this process. mu is held.
func (k *syncer) pushFails(u *cache.Unpushed) *control.Fails {
	if u == nil || u.Owed.IsZero() {
		return k.pushRetry.fails() // the policy may be why
	}
	return &control.Fails{Since: u.Owed, Next: k.pushRetry.next, Error: u.Error}
}

// retryDue pushes and opens in the background what the working copy has committed
// by itself, and what could not be before, in this mount or in the one before it.
func (k *syncer) retryDue() {
	now, status := k.now(), k.copy.Status()
	k.mu.Lock()
	if !k.owes(status.Unpushed) {
		k.pushRetry = retry{}
	} else if k.pushRetry.next.IsZero() {
		k.pushRetry.next = now
	}
	wanted := k.wanted()
	if len(wanted) == 0 {
		k.pullRetry = retry{}
		k.copy.Ended(cache.ActivityPullRequest, nil)
	} else {
		k.pullRetry.wait(now)
	}
	push, pulls := k.pushRetry.due(now), k.pullRetry.due(now)
	k.mu.Unlock()
	if !push && !pulls || k.readOnly || k.ctx.Err() != nil {
		return
	}
	select {
	case k.busy <- struct{}{}:
	default:
		return // an event is being followed: soon again
	}
	go k.behind(func(ctx context.Context) error {
		defer k.look()
		var out control.EventResult
		if push {
			if err := k.pushOwed(ctx, &out); err != nil {
				return err
			}
		}
		if !pulls || k.allowed("storage:push") != nil {
			return nil
		}
		for _, branch := range wanted {
			k.propose(ctx, branch, true, &out)
		}
		return nil
	})
}

// pushOwed pushes, and pulls after it where policy wants that.
func (k *syncer) pushOwed(ctx context.Context, out *control.EventResult) error {
	if k.pushesCommits() {
		return k.do(ctx, mountspec.EventCommitCompleted, nil, out)
	}
	return k.push(ctx, out)
}

// wanted are the branches whose pull request could not be opened. mu is held.
func (k *syncer) wanted() (names []string) {
	for _, b := range k.branches.Unmerged {
		if !b.Wanted.IsZero() && b.Pushed {
			names = append(names, b.Name)
		}
	}
	return names
}
