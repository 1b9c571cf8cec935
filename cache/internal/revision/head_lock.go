package revision

import (
	"context"
	"math"

	"golang.org/x/sync/semaphore"
)

// HeadLock keeps the head of a store of whole revisions where it is from a request to the store
// until the table has the answer: readers share it, and a function that moves the head to another
// revision, or commits to it, has it alone. It comes before the lock of the tree. A [Held] or a
// [Moving] as an argument says that it is held. A reader's wait ends with its context: a program
// that is killed does not wait for a pull.
type HeadLock struct{ readers *semaphore.Weighted }

// NewHeadLock makes a free HeadLock.
func NewHeadLock() HeadLock { return HeadLock{semaphore.NewWeighted(math.MaxInt64)} }

// Held keeps the head where it is: it does not move before Release.
type Held struct {
	readers *semaphore.Weighted // nil: there is no head
	share   int64
}

// NoHead is the Held of a store that keeps no revisions: it has no head that could move.
func NoHead() Held { return Held{} }

// Moving has the head alone, and may move it.
type Moving struct{ Held }

// Hold waits until no head moves, or ctx ends.
func (l HeadLock) Hold(ctx context.Context) (Held, error) {
	if err := l.readers.Acquire(ctx, 1); err != nil {
		return Held{}, err
	}
	return Held{l.readers, 1}, nil
}

// Move waits until it has the head alone.
func (l HeadLock) Move() Moving {
	_ = l.readers.Acquire(context.Background(), math.MaxInt64) // a context without end
	return Moving{Held{l.readers, math.MaxInt64}}
}

// Release gives the head back.
func (h Held) Release() {
	if h.readers != nil {
		h.readers.Release(h.share)
	}
}
