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

// A workingCopy is the volume of a remote workspace together with the objects that
// live as long as it: its provider, and the syncer that applies its sync block.
type workingCopy struct {
	*cache.Volume
	opened   atomic.Pointer[cache.Volume] // Volume, for calls that may come before it is open
	provider providers.Provider
	answers  *answers.Answers
	meter    providers.Meter      // nil: the store does not count requests
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

	acts      *inforce.Acts // counts for the limits of the policy; nil: there are no limits
	freshness *freshness.Freshness
	patience  time.Duration // the longest wait of a look for a pull

	// ending is called when the tree is unmounted, before changes are sent as
	// policy wants. Its context ends when time is over; nil means that the mount
	// never came up, so that this run has nothing to send.
	ending func() context.Context

	mu     sync.RWMutex // held for reading while the volume is used, and guards the fields below
	closed bool
	last   cache.Status // set once it is closed
	kept   cache.HistoryUsage
}

// ended has the volume keep the outcome of the store's own work. Before the volume is
// open the mount itself fails, or the work is done again.
func (w *workingCopy) ended(a cache.Activity, err error) {
	if v := w.opened.Load(); v != nil {
		v.Ended(a, err)
	}
}

// answered has the volume keep the store's refusals. Before it is open they fail the open.
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

// Status is the volume's, also after it is closed. A store without a remote has no
// unpushed commits.
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

// HistoryUsage is the volume's, also after it is closed.
func (w *workingCopy) HistoryUsage() cache.HistoryUsage {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return w.kept
	}
	return w.Volume.HistoryUsage()
}

// Unsent is the volume's; empty after it is closed, when the last status has the count.
func (w *workingCopy) Unsent(limit int) (list []cache.Unsaved, total int) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return nil, 0
	}
	return w.Volume.Unsent(limit)
}

// requests returns the requests to the store's service by verb.
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

// Close sends the changes that policy wants sent and closes the volume. Its error names the
// changes that are not safe. If time is over before all is sent, the volume is left as a kill
// would leave it: nothing is lost, and the next mount goes on.
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

// unsent names the changes that were not sent when time was over.
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
