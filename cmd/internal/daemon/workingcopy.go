package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cache"
	"github.com/wsmount/wsmount/cache/pins"
	"github.com/wsmount/wsmount/cmd/internal/answers"
	"github.com/wsmount/wsmount/cmd/internal/commits"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/freshness"
	"github.com/wsmount/wsmount/cmd/internal/inforce"
	"github.com/wsmount/wsmount/cmd/internal/pinned"
	"github.com/wsmount/wsmount/providers"
)

// A workingCopy is the volume of a remote workspace together with what lives as
// long as it: its provider, and the syncer that applies its sync block.
type workingCopy struct {
	*cache.Volume
	opened   atomic.Pointer[cache.Volume] // Volume, for what may be called before it is there
	provider providers.Provider
	answers  *answers.Answers
	meter    providers.Meter      // nil: the store is no service that counts requests
	cloner   providers.Cloner     // nil: it is not cloned
	replicas providers.Replicated // nil: nothing outside replicates the store
	messages *commits.Tool
	dir      string // its state directory
	readOnly bool
	noWait   bool // closes do not wait for the store
	isBucket bool // the store has no size of its own
	pins     *pins.Set
	fetching pinned.Progress
	pinner   atomic.Pointer[pinned.Keeper] // nil until the mount is there
	syncer   *syncer

	acts      *inforce.Acts // that limits of the policy count; nil: none does
	freshness *freshness.Freshness
	patience  time.Duration // how long a look waits for a pull

	// ending is told that the tree is unmounted and that what policy wants sent
	// is being sent. The context ends when there is no more time; nil says that
	// the mount never came up, so that this run has nothing to send.
	ending func() context.Context

	mu     sync.RWMutex // held for reading while the volume is used, and guards what follows
	closed bool
	last   cache.Status // once it is closed
	kept   cache.HistoryUsage
}

// ended has the volume keep how work of the store's own ended. Before there is one the
// mount itself fails, or the work is done again.
func (w *workingCopy) ended(a cache.Activity, err error) {
	if v := w.opened.Load(); v != nil {
		v.Ended(a, err)
	}
}

// answered has the volume keep what the store refuses. What opens the volume fails by itself.
func (w *workingCopy) answered(m providers.Method, at providers.Locator, err error) {
	if v := w.opened.Load(); v != nil {
		v.Answered(m, at, err)
	}
}

var errClosed = errors.New("the mount is ending")

// use calls f while the volume is open. The context that f gets ends with the
// mount too.
func (w *workingCopy) use(ctx context.Context, f func(ctx context.Context) error) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return fmt.Errorf("%s: %w", w.syncer.name, errClosed)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.syncer.gate.ctx, func() { cancel(errClosed) })()
	return f(ctx)
}

// Status is the volume's, also when that is closed. A store without a remote
// has nothing that could be unpushed.
func (w *workingCopy) Status() cache.Status {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return w.last
	}
	s := w.Volume.Status()
	if _, ok := providers.As[providers.Pusher](w.provider); !ok {
		s.Unpushed = nil
	}
	return s
}

// HistoryUsage is the volume's, also when that is closed.
func (w *workingCopy) HistoryUsage() cache.HistoryUsage {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return w.kept
	}
	return w.Volume.HistoryUsage()
}

// Unsent is the volume's; nothing once that is closed: the last status counts it.
func (w *workingCopy) Unsent(limit int) (list []cache.Unsaved, total int) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return nil, 0
	}
	return w.Volume.Unsent(limit)
}

// requests are what was asked of the store's service.
func (w *workingCopy) requests() map[string]control.Requests {
	if w.meter == nil {
		return nil
	}
	out := map[string]control.Requests{}
	for verb, n := range w.meter.Requests() {
		out[verb] = control.Requests{Count: n.Requests, Sent: n.Sent, Received: n.Received}
	}
	return out
}

// seal ends the use of the volume.
func (w *workingCopy) seal() {
	last, kept := w.Status(), w.HistoryUsage()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.last, w.kept = true, last, kept
}

// Close sends what policy wants sent and ends the volume. Its error says what
// is not safe. When time is over before all is sent, the volume is left as a
// kill would leave it: nothing is lost by that, and the next mount goes on.
func (w *workingCopy) Close() error {
	w.pinner.Load().Stop()
	ctx := w.ending()
	if ctx == nil {
		w.syncer.leave()
		w.seal()
		return w.provider.Close()
	}
	err := w.syncer.finish(ctx)
	if ctx.Err() != nil {
		return errors.Join(err, w.unsent())
	}
	w.seal()
	if cerr := w.Volume.Close(); err == nil {
		err = cerr
	}
	return errors.Join(err, w.provider.Close())
}

// unsent says what was left behind when time was over.
func (w *workingCopy) unsent() error {
	s := w.Status()
	if s.Queued > 0 {
		return fmt.Errorf("changes were not sent in time: %d", s.Queued)
	}
	if w.syncer.owesPush() {
		return errors.New("commits were not pushed in time")
	}
	return nil
}
