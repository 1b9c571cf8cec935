package content

import (
	"context"
	"sync"
)

// work is the tasks in the background: fetches, evictions, and delayed writes. Close waits
// for them.
type work struct {
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu      sync.Mutex // nothing is added to running once ctx has ended
	running sync.WaitGroup
}

func newWork() *work {
	w := &work{}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// begin counts one task, until done. It reports false when no more may begin.
func (w *work) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed() {
		return false
	}
	w.running.Add(1)
	return true
}

func (w *work) done() { w.running.Done() }

func (w *work) closed() bool { return w.ctx.Err() != nil }

// end lets no more task begin, and returns when all are over.
func (w *work) end() {
	w.mu.Lock()
	w.cancel()
	w.mu.Unlock()
	w.running.Wait()
}
