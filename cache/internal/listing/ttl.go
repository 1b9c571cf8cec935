package listing

import (
	"log/slog"
	"sync"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
)

const (
	// StaleFor is how long after its last listing a directory is shown to a strict look
	// without an answer of the remote.
	StaleFor = 60 * time.Second
	// LeastWait is how long a look waits for a listing that usually comes at once.
	LeastWait = 30 * time.Millisecond
	// MostWait is how long a look at stale names waits at most, and a strict look at least.
	MostWait = time.Second

	kernelMax = time.Hour
)

// Freshness says how far a directory can be believed.
type Freshness uint8

const (
	Fresh   Freshness = iota
	Stale             // usable while the remote is slow
	Old               // its content is not usable without an answer
	Unknown           // never listed
)

// Belief is how long directories are believed, and how the remote answers listings, on which that
// depends. Its lock is taken after all others.
type Belief struct {
	Now      func() time.Time
	TTL      time.Duration // 0: everything is believed
	Patience time.Duration // how long a look waits for a remote that is gone
	// Whole is how long everything may be believed from now on, for a remote that is believed as a
	// whole and not by directory; nil: it is not.
	Whole func() time.Duration
	Log   *slog.Logger

	mu      sync.Mutex
	failing time.Time     // since when listings are late, or not answered; zero: they are answered
	gone    time.Time     // since when they fail, however long the wait; zero: they do not
	usual   time.Duration // the duration of a listing
}

// isLocal reports whether the remote does not have a directory.
func isLocal(dir table.Ino, n *table.Inode) bool { return dir != table.Root && len(n.RemoteLinks) == 0 }

// freshness is how far a directory can be believed at a time.
func (b *Belief) freshness(dir table.Ino, n *table.Inode, now time.Time) Freshness {
	if !n.Loaded {
		return Unknown
	}
	if b.TTL == 0 || isLocal(dir, n) || n.From != "" {
		return Fresh // only this working copy can change it
	}
	switch since := now.Sub(time.Unix(0, n.Listed)); {
	case since < b.TTL && since >= 0:
		return Fresh
	case since < StaleFor && since >= 0:
		return Stale
	}
	return Old
}

// KernelTTL is how long the kernel may believe the names of a directory and their attributes: the
// rest of its time. n is nil for one that is gone.
func (b *Belief) KernelTTL(dir table.Ino, n *table.Inode) time.Duration {
	switch {
	case b.Whole != nil:
		return min(kernelMax, b.Whole())
	case b.TTL == 0 || n == nil || isLocal(dir, n):
		return kernelMax
	}
	return max(0, min(b.TTL, b.TTL-b.Now().Sub(time.Unix(0, n.Listed))))
}

// Judge says how far a look that came at a time can believe a directory, and how long it may wait
// for a listing: less than 0, to its end. Strict is a look that shows content.
func (b *Belief) Judge(dir table.Ino, n *table.Inode, arrived time.Time, strict bool) (Freshness, time.Duration) {
	now := arrived
	if listed := time.Unix(0, n.Listed); listed.After(arrived) && !listed.After(b.Now()) {
		now = listed // listed meanwhile: as new as can be, however long it took
	}
	a := b.freshness(dir, n, now)
	b.mu.Lock()
	defer b.mu.Unlock()
	moment := min(max(LeastWait, 4*b.usual), MostWait) // for a listing that comes as usual
	switch {
	case a == Unknown && b.gone.IsZero(): // it was never listed
		return a, -1
	case a == Unknown:
		return a, max(moment, b.Patience-now.Sub(b.gone))
	case a == Fresh || strict && a == Old:
		return a, -1
	case !b.failing.IsZero():
		return Stale, 0
	case a == Old && b.usual == 0: // how fast the remote lists shows now
		return Stale, MostWait
	case a == Old:
		return Stale, max(LeastWait, 4*b.usual)
	case strict:
		return a, max(MostWait, 4*b.usual)
	case b.usual > MostWait:
		return a, 0
	}
	return a, moment
}

// Overdue notes that an answer did not come in its usual time: no look waits until there is one
// again.
func (b *Belief) Overdue(waited time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if waited > 0 && b.failing.IsZero() {
		b.failing = b.Now()
	}
}

// Answered notes that the remote answered a listing, and how fast. It reports whether it
// was gone before.
func (b *Belief) Answered(took time.Duration) (back bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if back = !b.gone.IsZero(); back {
		b.Log.Info("the remote answers again", "after", b.Now().Sub(b.gone).Round(time.Second))
	}
	if b.usual == 0 {
		b.usual = took
	} else {
		took = min(took, 4*max(b.usual, LeastWait/4)) // an outage is not usual
		b.usual = (3*b.usual + took) / 4
	}
	b.failing, b.gone = time.Time{}, time.Time{}
	return back
}

// Unanswered notes that the remote did not answer a listing in a time.
func (b *Belief) Unanswered(took time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	since := b.Now().Add(-took)
	if b.failing.IsZero() {
		b.failing = since
	}
	if b.gone.IsZero() {
		b.Log.Warn("the remote does not answer: what is known is shown", "err", err)
		b.gone = since
	}
}

// FailingSince is since when the remote does not answer, so that shown names may be old; zero: it
// answers.
func (b *Belief) FailingSince() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failing
}

// IsFailing reports whether the remote has not answered of late.
func (b *Belief) IsFailing() bool { return !b.FailingSince().IsZero() }
