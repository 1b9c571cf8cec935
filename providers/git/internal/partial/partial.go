// Package partial brings the blobs that a clone is without (git-partial-clone, blob:none): at once
// those that a caller needs, and the rest in batches ahead of need, until none is missing.
//
// It knows the commits and trees that are local, and neither references nor the protocol. A caller
// that fetches commits says so before (Without, Moving).
//
//	blobs := partial.New(repository)
//	blobs.From(server)
//	blobs.Begin()
//	err := blobs.Need(ctx, missing...)
package partial

import (
	"cmp"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/history"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

type id = odb.ID

// State tells whether blobs may be missing. It is kept with the clone.
type State string

// States of a clone that was made without blobs; "": it was never without.
const (
	Missing State = "missing" // some may be missing
	Whole   State = "whole"   // none is any more
)

// Repository is a clone.
type Repository struct {
	Dir     string // on the disk that is not to get full
	Objects *odb.Store
	Commit  history.Read
	Heads   func() ([]odb.ID, error) // the commits that references lead to
	State   func() State
	// SetState changes State, which is safe on the disk when it returns.
	SetState func(State) error
}

// Server is where missing blobs come from.
type Server struct {
	// Ask asks for blobs, and calls receive with a pack of them.
	Ask      func(ctx context.Context, blobs []odb.ID, receive func(io.Reader) error) error
	OnDemand bool          // no blobs are prefetched
	Bounded  bool          // the prefetch ends when very much is local
	Silence  time.Duration // after which a server that sends nothing is given up; 0: a minute
	Refused  func()        // called when the credentials were not taken; nil: no call
	Now      func() time.Time
	// Turn waits until the prefetch may ask for a batch, or ctx ends. end is called with whether
	// a batch came, or nothing is missing any more.
	Turn func(ctx context.Context) (end func(news bool))
}

// Blobs brings the blobs that a partial clone is without: at once those that a caller waits for,
// and the rest in batches ahead of need. A blob is asked for once, however many callers wait for
// it. It may be used from several goroutines.
type Blobs struct {
	in   Repository
	from Server

	is    atomic.Bool // blobs may be missing
	ctx   context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup
	slots chan struct{} // requests that a caller waits for
	woken chan struct{} // the prefetch looks again
	ahead *ahead

	mu       sync.Mutex // guards all below
	requests map[id]*request
	next     *request // not begun yet: it takes more
	pulls    int      // movings that have not ended
	near     []id     // directories that a caller has looked at, the last first
	state    providers.CloneState
	ended    bool
}

// New is for a clone, whose database asks it for missing blobs from then on.
func New(in Repository) *Blobs {
	w := &Blobs{in: in, slots: make(chan struct{}, mostSlots), woken: make(chan struct{}, 1), requests: map[id]*request{}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.ahead = newAhead(w)
	w.is.Store(in.State() == Missing)
	w.state.Missing = -1
	in.Objects.Promise(w.bring)
	return w
}

// From names the server to ask for missing blobs. It is called once, before the first request.
func (w *Blobs) From(s Server) {
	s.Silence = cmp.Or(s.Silence, silence)
	w.from = s
}

// bring is Need for callers without a context: it waits, at most until the provider is closed. It
// also finds objects of commits that no reference leads to.
func (w *Blobs) bring(blob id) error {
	if w.in.State() == "" {
		return nil
	}
	err := w.await(w.ctx, blob)
	if w.ctx.Err() != nil {
		return providers.ErrClosed
	}
	return err
}

// Begin starts the prefetch, if blobs are missing.
func (w *Blobs) Begin() {
	w.work.Go(w.ahead.run)
}

// End waits until nothing is under way any more.
func (w *Blobs) End() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.stop()
	w.work.Wait()
}

// Need waits until blobs are local. The error is ctx's, or the reason why they cannot come.
func (w *Blobs) Need(ctx context.Context, blobs ...id) error {
	if !w.is.Load() {
		return nil
	}
	return w.await(ctx, blobs...)
}

// MayMiss reports whether blobs may be missing.
func (w *Blobs) MayMiss() bool { return w.is.Load() }

// IsPromised reports whether a blob is not local, because it came from the server and was left
// there.
func (w *Blobs) IsPromised(blob id) bool { return w.is.Load() && !w.in.Objects.Has(blob) }

// wake has the prefetch look again.
func (w *Blobs) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// mostNear bounds the directories that are remembered as looked at.
const mostNear = 64

// LookedAt has blobs below a directory come before the rest.
func (w *Blobs) LookedAt(dir id) {
	if !w.is.Load() || dir.IsZero() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.near = append([]id{dir}, w.near[:min(len(w.near), mostNear-1)]...)
}

// Without marks the clone as one without blobs, before objects come that lack them. It counts as
// whole again when all objects that references lead to were looked through, so a caller that
// moves a reference begins a moving first. The error is that of Repository.SetState.
func (w *Blobs) Without() error {
	if err := w.in.SetState(Missing); err != nil {
		return err
	}
	w.is.Store(true)
	return nil
}

// Moving begins a change that ends with a reference that leads to a commit. known says that the
// commit is local already, with or without its blobs. end is called after an error too, which is
// that of Without.
func (w *Blobs) Moving(known bool) (end func(), err error) {
	w.mu.Lock()
	w.pulls++
	w.mu.Unlock()
	if known && w.in.State() != "" {
		err = w.Without()
	}
	return func() {
		w.ahead.again.Store(true)
		w.mu.Lock()
		w.pulls--
		w.mu.Unlock()
		w.wake()
	}, err
}

// complete notes that nothing is missing any more, unless that may have changed.
func (w *Blobs) complete() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pulls > 0 || len(w.requests) > 0 || w.ahead.again.Load() {
		return nil
	}
	if err := w.in.SetState(Whole); err != nil {
		return err
	}
	w.is.Store(false)
	w.state = providers.CloneState{Missing: -1}
	return nil
}

// FetchSmall brings all content of a commit with few files at once, so that the clone has all of
// it, or none. The error is that of Need.
func (w *Blobs) FetchSmall(ctx context.Context, c id) error {
	if !w.is.Load() || w.from.OnDemand {
		return nil
	}
	commit, err := w.in.Commit(c)
	if err != nil {
		return err
	}
	blobs, err := missingIn(w.in.Objects, []id{commit.Tree}, smallClone)
	if err != nil || len(blobs) > smallClone {
		return err
	}
	return w.Need(ctx, blobs...)
}

// Clone describes what is local, as [providers.Cloner] does.
func (w *Blobs) Clone() providers.CloneState {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state
	s.Kind, s.Fetching = providers.CloneBlobless, len(w.requests)
	if !w.is.Load() {
		s.Kind, s.Missing = providers.CloneFull, 0
	}
	return s
}
