package upload

import (
	"time"

	"github.com/wsmount/wsmount/cache/internal/tree"
)

const (
	flaky       = 4 // failures in a row after which the remote gets a rest
	outageAfter = 10 * time.Second
)

// Backoff counts the failed changes of late, across names: it shows how the remote takes changes.
type Backoff struct {
	failures int       // for now, in a row
	since    time.Time // the first of them
	err      error     // the last of them
	outage   bool      // it was told
	reached  time.Time // when the remote last answered a change
}

// NewBackoff begins when the remote was reached.
func NewBackoff(now time.Time) Backoff { return Backoff{reached: now} }

// Failures is how many changes have failed in a row, for now.
func (b *Backoff) Failures(*tree.View) int { return b.failures }

// IsFlaky reports whether so many failed that the remote is asked for little at a time.
func (b *Backoff) IsFlaky(*tree.View) bool { return b.failures >= flaky }

// Rests is how many rests the remote got, with the one that is due now: it grows with the
// failures since it is flaky.
func (b *Backoff) Rests(*tree.View) int { return b.failures - flaky }

// Failed counts a failure that may pass, and reports whether it is an outage that is to be
// told: each is told once.
func (b *Backoff) Failed(v *tree.View, err error, now time.Time) (outage bool) {
	if b.failures == 0 {
		b.since = now
	}
	b.failures++
	b.err = err
	if b.outage || !b.IsFlaky(v) && now.Sub(b.since) <= outageAfter {
		return false
	}
	b.outage = true
	return true
}

// Reached notes that the remote answered a change. It returns the length of the outage that this
// ends, if that was told.
func (b *Backoff) Reached(_ *tree.View, now time.Time) (outage time.Duration, told bool) {
	outage, told = now.Sub(b.since), b.outage
	b.failures, b.outage, b.reached = 0, false, now
	return outage, told
}

// Unreachable is the time for which the remote has not taken a change, and the last failure; 0:
// none fails.
func (b *Backoff) Unreachable(_ *tree.View, now time.Time) (since time.Duration, last error) {
	if b.failures == 0 || b.reached.IsZero() {
		return 0, nil
	}
	return now.Sub(b.reached), b.err
}
