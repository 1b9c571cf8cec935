// Package budget bounds the bytes that fetches have under way.
//
// It knows sizes and waiting callers. It knows no files or providers.
//
//	b := budget.New(0) // as much as this machine, or its control group, allows
//	release, err := b.Take(ctx, 8<<20) // a reader waits
//	release, ok := b.TryTake(reader, 8<<20) // in advance
//
// # What it promises
//
// No more than the limit is under way at once, but for a single piece that is larger than that.
// Waiting callers are served in order of arrival. Prefetches never take more than three
// quarters, never start while a caller waits, and are shared evenly by the readers that they
// are for: a large file leaves room for the small ones.
package budget

import (
	"context"
	"slices"
	"sync"
)

// Bounds of the default limit.
const (
	Least = 64 << 20
	Most  = 1 << 30
)

// Budget is the bytes that may be under way. Make it with New.
type Budget struct {
	limit int64

	mu      sync.Mutex // guards all below
	used    int64
	ahead   int64         // of used: prefetches
	readers map[any]int64 // ahead by reader
	queue   []*waiter
}

// waiter is a Take that did not fit yet.
type waiter struct {
	n    int64
	done chan struct{} // closed when its bytes are granted
}

// New is a budget of so many bytes; 0: a quarter of the memory of this machine, or of the limit
// of this process's control group if that is less, but 64 MiB at least and 1 GiB at most.
func New(limit int64) *Budget {
	if limit <= 0 {
		limit = min(max(memory("/")/4, Least), Most)
	}
	return &Budget{limit: limit, readers: map[any]int64{}}
}

// Take waits until n bytes may be under way, or ctx ends. The bytes are free
// again when release was called.
func (b *Budget) Take(ctx context.Context, n int64) (release func(), err error) {
	n = min(n, b.limit)
	release = sync.OnceFunc(func() { b.less(func() { b.used -= n }) })
	b.mu.Lock()
	if len(b.queue) == 0 && b.used+n <= b.limit {
		b.used += n
		b.mu.Unlock()
		return release, nil
	}
	w := &waiter{n, make(chan struct{})}
	b.queue = append(b.queue, w)
	b.mu.Unlock()
	select {
	case <-w.done:
		return release, nil
	case <-ctx.Done():
	}
	b.less(func() {
		if i := slices.Index(b.queue, w); i >= 0 {
			b.queue = slices.Delete(b.queue, i, i+1) // a waiter behind it may need less
			return
		}
		b.used -= w.n // it was served at the same moment
	})
	return nil, context.Cause(ctx)
}

// TryTake is Take for a prefetch for a reader: it does not wait, and leaves room for waiting
// callers and for other readers.
func (b *Budget) TryTake(reader any, n int64) (release func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	spare := b.limit / 4 * 3
	readers := len(b.readers)
	if b.readers[reader] == 0 {
		readers++
	}
	if len(b.queue) > 0 || b.ahead+n > spare || b.used+n > b.limit || b.readers[reader]+n > spare/int64(readers) {
		return nil, false
	}
	b.used += n
	b.ahead += n
	b.readers[reader] += n
	return sync.OnceFunc(func() {
		b.less(func() {
			b.used -= n
			b.ahead -= n
			if b.readers[reader] -= n; b.readers[reader] <= 0 {
				delete(b.readers, reader)
			}
		})
	}), true
}

// less runs change, which frees bytes or removes a waiter, and then serves waiters as far as
// they fit.
func (b *Budget) less(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	for len(b.queue) > 0 && b.used+b.queue[0].n <= b.limit {
		b.used += b.queue[0].n
		close(b.queue[0].done)
		b.queue = b.queue[1:]
	}
}

// Usage is how a budget is used.
type Usage struct {
	Limit   int64
	Used    int64 // bytes under way
	Ahead   int64 // of these: prefetches
	Waiting int   // fetches that wait
}

// Usage is the present usage of the budget.
func (b *Budget) Usage() Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Usage{Limit: b.limit, Used: b.used, Ahead: b.ahead, Waiting: len(b.queue)}
}
