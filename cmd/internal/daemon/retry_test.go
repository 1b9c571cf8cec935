package daemon

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/syncpolicy"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
)

var historic = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type waits time.Duration

func (w waits) Error() string             { return "later" }
func (w waits) RetryAfter() time.Duration { return time.Duration(w) }

// The pauses grow to a limit; what the service asks for, and what will hardly
// change, takes longer; success ends it.
func TestRetry(t *testing.T) {
	pause := (&syncer{sync: mountspec.Sync{Mode: mountspec.ModePullPush}}).pause
	var a retry
	now := historic
	assert.True(t, !a.due(now) && a.fails() == nil, "nothing has failed")
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600} {
		a.ended(now, providers.ErrUnavailable, pause)
		assert.Equal(t, a.next.Sub(now), want*time.Second, "tried again after")
		assert.True(t, !a.due(a.next.Add(-1)) && a.due(a.next), "due at another time")
		now = a.next
	}
	f := a.fails()
	assert.True(t, f != nil && f.Since.Equal(historic) && f.Error != "", "status", f)
	a.ended(now, nil, pause)
	assert.True(t, !a.due(now.Add(time.Hour)) && a.fails() == nil, "it goes on after success")
	a.ended(now, errors.Join(providers.ErrUnavailable, waits(time.Minute)), pause)
	assert.Equal(t, a.next.Sub(now), time.Minute, "the service asks for a minute, and gets")
	a = retry{}
	a.ended(now, providers.ErrPermission, pause)
	assert.Equal(t, a.next.Sub(now), syncpolicy.LastPause, "a refusal is tried again after")
	a = retry{}
	a.arm(now.Add(syncpolicy.FirstPause))
	a.arm(now.Add(time.Minute))
	assert.True(t, a.due(now.Add(syncpolicy.FirstPause)) && a.fails() == nil, "what waits for its first time", a)
}

// A push that is owed is made at once, and a missing pull request soon; what is not wanted
// any more has not failed.
func TestRetriesAreDue(t *testing.T) {
	now := historic
	r := retries{clock: func() time.Time { return now }, pause: (&syncer{sync: mountspec.Sync{Mode: mountspec.ModePullPush}}).pause}
	due := func(push, pull bool) [2]bool {
		pushDue, pullDue := r.due(push, pull)
		return [2]bool{pushDue, pullDue}
	}
	assert.Equal(t, due(true, true), [2]bool{true, false}, "at first")
	now = now.Add(syncpolicy.FirstPause)
	assert.Equal(t, due(true, true), [2]bool{true, true}, "soon")
	r.pushed(fmt.Errorf("push: %w", context.Canceled))
	assert.Equal(t, due(true, false), [2]bool{true, false}, "after a push that was canceled")
	assert.True(t, r.push.fails() == nil, "a push that was canceled has failed")
	r.due(true, true)
	now = now.Add(syncpolicy.FirstPause)
	r.pushed(providers.ErrUnavailable)
	r.proposed(providers.ErrPermission)
	assert.Equal(t, due(true, true), [2]bool{false, false}, "after both have failed")
	now = now.Add(syncpolicy.FirstPause)
	assert.Equal(t, due(true, true), [2]bool{true, false}, "after the push's pause")
	assert.Equal(t, due(false, false), [2]bool{false, false}, "when neither is wanted")
	assert.Equal(t, due(true, false), [2]bool{true, false}, "when a push is wanted again")

	readOnly := retry{}
	readOnly.ended(now, providers.ErrUnavailable, (&syncer{readOnly: true, sync: mountspec.Sync{Mode: mountspec.ModePullPush}}).pause)
	assert.False(t, readOnly.due(now.Add(time.Hour)), "nothing of a read-only copy is tried again")
}

// What gave up waiting is tried again, though it has no kind of a provider's: it says
// nothing of the remote.
func TestWhatGaveUpWaitingIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		err  error
		next bool
	}{
		{errLate, true},
		{fmt.Errorf("gave up waiting: %w", fs.ErrUnavailable), true},
		{providers.ErrUnavailable, true},
		{providers.ErrPermission, false},
	} {
		var a retry
		a.ended(time.Unix(1, 0), c.err, func(f syncpolicy.Failure) (time.Duration, bool) { return time.Second, !f.Lasting })
		assert.Equal(t, !a.next.IsZero(), c.next, c.err, "next", a.next)
	}
}
