package files

import (
	"sync"
	"time"
)

// ReadBreaker lets reads of content fail early while the remote refuses them all.
//
// While the remote refuses, a read is tried again for the time of patience, counted from
// the first refusal: a restart is shorter. Once it has refused all that time, a read fails
// when it was tried for a second, until one is answered. Reads under way are not broken
// off: a remote that is slow refuses nothing. When no read was tried for the time of
// patience the remote may have been back in between: then it counts from the start.
type ReadBreaker struct {
	now      func() time.Time
	patience time.Duration

	mu          sync.Mutex
	since, last time.Time // since when each read was refused, and when the last one was; zero: the last was answered
}

// TriedFor is how long a read is tried at least.
const TriedFor = time.Second

// NewReadBreaker makes one for a remote that was not asked yet.
func NewReadBreaker(now func() time.Time, patience time.Duration) *ReadBreaker {
	return &ReadBreaker{now: now, patience: patience}
}

// Answered notes that the remote answered a read.
func (b *ReadBreaker) Answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since, b.last = time.Time{}, time.Time{}
}

// Refused notes that a read was refused, and reports whether one that began at a time is to
// be tried again.
func (b *ReadBreaker) Refused(began time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.since.IsZero() || now.Sub(b.last) > b.patience {
		b.since = now
	}
	b.last = now
	return now.Sub(b.since) < b.patience || now.Sub(began) < TriedFor
}
