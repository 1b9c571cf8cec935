package cache

import (
	"context"
	"time"
)

// readBreaker are since when each read of content was refused, and when the last one
// was; zero: the last read was answered. The volume's lock guards it.
type readBreaker struct{ since, last time.Time }

const (
	// readerPause is the longest pause between two tries of who waits for content,
	// so that he has it soon after the backend is back.
	readerPause = time.Second
	// readerTries is how long a read is tried at least.
	readerTries = time.Second
)

// retryRead is retry for who reads content. While the backend refuses, he waits
// for half of Options.Patience, counted from when it began to: a restart is
// shorter. Once it has refused all that time, a read fails when it was tried for
// a second, until one is answered. Nothing that is under way is broken off: a
// backend that is slow refuses nothing. When nobody has asked for that long it may
// have been back in between: then it counts from the start.
func (v *Volume) retryRead(ctx context.Context, attempt func(ctx context.Context) error) error {
	began := v.o.Now()
	return v.retryWhile(ctx, readerPause, func(error) bool { return v.readRefused(began) }, func(ctx context.Context) error {
		err := attempt(ctx)
		if err == nil || !again(err) {
			locked := v.lock()
			locked.pulls.breaker = readBreaker{}
			locked.unlock()
		}
		return err
	})
}

// readRefused notes that a read was, and reports whether who began at a time is to try
// again.
func (v *Volume) readRefused(began time.Time) bool {
	locked := v.lock()
	defer locked.unlock()
	now, r, enough := v.o.Now(), &locked.pulls.breaker, v.o.Patience/2
	if r.since.IsZero() || now.Sub(r.last) > enough {
		r.since = now
	}
	r.last = now
	return now.Sub(r.since) < enough || now.Sub(began) < readerTries
}
