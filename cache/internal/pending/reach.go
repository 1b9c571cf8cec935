package pending

import "sync/atomic"

// Reach is how far attempts at one thing got. Only an attempt that gets further than any before
// makes progress: a remote that breaks off at the same place each time must not make callers wait
// longer. Zero is before the first attempt.
type Reach struct{ now, best atomic.Int64 }

// Again begins another attempt.
func (r *Reach) Again() { r.now.Store(0) }

// Forget begins an attempt at another thing.
func (r *Reach) Forget() {
	r.now.Store(0)
	r.best.Store(0)
}

// Now is how far the attempt has come.
func (r *Reach) Now() int64 { return r.now.Load() }

// By adds to the attempt, and reports whether that is progress.
func (r *Reach) By(n int) bool {
	now := r.now.Add(int64(n))
	for {
		best := r.best.Load()
		if now <= best {
			return false
		}
		if r.best.CompareAndSwap(best, now) {
			return true
		}
	}
}
