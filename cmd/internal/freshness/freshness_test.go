package freshness

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

const ttl = time.Minute

// asking counts the renewals of a Freshness, each of which takes a second.
type asking struct {
	*Freshness
	times int
	does  func(began time.Time)
}

func newAsking() *asking {
	a := &asking{Freshness: New(ttl, time.Now)}
	a.does = func(began time.Time) { a.Answered(began) }
	a.Arm(func() {
		began := time.Now()
		a.times++
		time.Sleep(time.Second)
		a.does(began)
	})
	return a
}

// wait has somebody look who waits no longer than the patience.
func (a *asking) wait(t *testing.T, patience time.Duration) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	err = a.Wait(ctx)
	return time.Since(began), err
}

// A look waits when what is known is older than the TTL, which runs from the question, and
// is asked for once, however many look; the kernel gets the rest of the TTL.
func TestFirstLookAfterTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking()
		for range 8 {
			go func() {
				took, err := a.wait(t, time.Hour)
				assert.Is(t, err, nil)
				assert.Equal(t, took, time.Second, "it waited")
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, a.times, 1, "renewals for all")
		assert.Equal(t, a.Believed(), ttl-time.Second, "the kernel believes it for")
		time.Sleep(ttl - time.Second - 1)
		took, _ := a.wait(t, time.Hour)
		assert.Equal(t, took, 0, "within the TTL it waited")
		assert.Equal(t, a.Believed(), 1, "the kernel believes it for")
		time.Sleep(time.Nanosecond)
		assert.Equal(t, a.Believed(), 0, "the kernel believes it for")
		took, _ = a.wait(t, time.Hour)
		assert.Equal(t, took, time.Second, "after the TTL it waited")
		assert.Equal(t, a.times, 2, "renewals")
	})
}

// What was asked for after somebody came is new enough for that one, however long the
// answer took.
func TestRenewalThatTakesLongerThanTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking()
		a.ttl = time.Millisecond
		took, err := a.wait(t, time.Hour)
		assert.Is(t, err, nil)
		assert.Equal(t, took, time.Second, "it waited")
		assert.Equal(t, a.times, 1, "renewals")
		assert.Equal(t, a.Believed(), 0, "the next one believes it for")
	})
}

// Whoever has no more time goes, and the others get the answer. What was broken off is
// begun again.
func TestLookWithoutPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking()
		a.does = func(began time.Time) {
			if a.times > 1 {
				a.Answered(began)
			}
		}
		go func() {
			took, err := a.wait(t, 500*time.Millisecond)
			assert.Is(t, err, context.DeadlineExceeded)
			assert.Equal(t, took, 500*time.Millisecond, "it waited")
		}()
		took, err := a.wait(t, time.Hour)
		assert.Is(t, err, nil)
		assert.Equal(t, took, 2*time.Second, "it waited")
		assert.Equal(t, a.times, 2, "renewals")
	})
}

// When the first has waited long enough, nobody else waits, and the answer still counts.
func TestLookAtALateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking()
		go func() {
			took, err := a.wait(t, time.Hour)
			assert.Is(t, err, nil)
			assert.Equal(t, took, 500*time.Millisecond, "who has more time waited")
		}()
		_, err := a.wait(t, 500*time.Millisecond)
		assert.Is(t, err, context.DeadlineExceeded)
		a.Failed(err)
		assert.Equal(t, a.Believed(), Recheck, "the kernel believes it for")
		took, _ := a.wait(t, time.Hour)
		assert.Equal(t, took, 0, "the next one waited")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, a.times, 1, "renewals")
		assert.True(t, a.Stale() == nil, "it has answered")
	})
}

// Where a pull cannot be had, what is known is shown for a moment, or until something has
// changed.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking()
		a.does = func(time.Time) { a.Hold() }
		for want := 1; want < 3; want++ {
			assert.Is(t, a.Wait(t.Context()), nil)
			assert.Equal(t, a.Believed(), Recheck, "the kernel believes it for")
			assert.Equal(t, a.times, want, "looks whether it can be had")
			a.Look()
			assert.Equal(t, a.Believed(), 0, "after an event it is believed for")
		}
	})
}

// A pull that is owed is due at the next look, within the TTL too; a clock that was set
// back makes nothing younger; and nobody waits before looks are awaited.
func TestBelieved(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := New(ttl, func() time.Time { return now })
	assert.Equal(t, f.Believed(), Recheck, "before it is armed")
	assert.True(t, f.Arm(func() {}) && !f.Arm(func() {}), "it is armed once")
	assert.Equal(t, f.Believed(), 0, "before the first pull")
	f.Answered(now)
	assert.Equal(t, f.Believed(), ttl, "after a pull")
	f.Owe("a reason")
	assert.Equal(t, f.Believed(), 0, "when one is owed")
	f.Answered(now)
	now = now.Add(-time.Hour)
	assert.Equal(t, f.Believed(), 0, "when the clock was set back")
}

// An outage is told once, and its end.
func TestOutageIsToldOnce(t *testing.T) {
	f := New(ttl, time.Now)
	first := errors.New("first")
	assert.True(t, f.Failed(first) && !f.Failed(errors.New("second")), "one failure is news")
	f.Skipped(time.Now(), "changes")
	assert.True(t, f.Stale() != nil, "what was not asked has not answered")
	assert.True(t, f.Answered(time.Now()) && !f.Answered(time.Now()), "one answer is news")
	assert.True(t, f.Stale() == nil && f.PutOff() == "", "it is as the remote has it")
}
