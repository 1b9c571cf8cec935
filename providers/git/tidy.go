package git

import (
	"context"
	"sync"
	"sync/atomic"
)

// tidier makes few packs of many in the background, one time after the other.
type tidier struct {
	ctx     context.Context // ends with the provider
	stop    context.CancelFunc
	running atomic.Bool
	work    sync.WaitGroup
}

func newTidier() *tidier {
	t := &tidier{}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// tidy has the packs looked at, after each move of the head. That one could not be
// made is no matter: everything is where it was, and the next move tries again.
func (t *tidier) tidy(r *repository) {
	if t.running.CompareAndSwap(false, true) {
		t.work.Go(func() {
			defer t.running.Store(false)
			_ = r.objects.Repack(t.ctx)
		})
	}
}

// end waits until nothing is under way any more.
func (t *tidier) end() {
	t.stop()
	t.work.Wait()
}
