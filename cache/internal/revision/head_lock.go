package revision

import (
	"context"
	"math"

	"golang.org/x/sync/semaphore"
)

// HeadLock is held for reading while a store of whole revisions is asked or committed to,
// until what that brought is in the table, and for writing while its head moves to what
// others made. It comes before the lock of the tree. A reader's wait ends with its context: a
// program that is killed does not wait for a pull.
type HeadLock struct{ readers *semaphore.Weighted }

// NewHeadLock makes one that is free.
func NewHeadLock() HeadLock { return HeadLock{semaphore.NewWeighted(math.MaxInt64)} }

// RLock waits until no head moves, or ctx ends.
func (l HeadLock) RLock(ctx context.Context) error { return l.readers.Acquire(ctx, 1) }

// RUnlock gives one RLock back.
func (l HeadLock) RUnlock() { l.readers.Release(1) }

// Lock waits until it has the head alone.
func (l HeadLock) Lock() {
	_ = l.readers.Acquire(context.Background(), math.MaxInt64) // which has no end
}

// Unlock gives the Lock back.
func (l HeadLock) Unlock() { l.readers.Release(math.MaxInt64) }
