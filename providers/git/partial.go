package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// How a clone is made: Options.Clone.
const (
	CloneAuto     = ""         // without blobs, if the server can; then all come, unless that is very much
	CloneBlobless = "blobless" // without blobs, if the server can; they come when they are needed
	CloneFull     = "full"     // with all blobs; in a clone without, they come as fast as they can
)

// partial brings the blobs that a partial clone is without: at once those that a caller waits
// for, and the rest in batches ahead of need. A blob is asked for once, however many callers wait
// for it.
type partial struct {
	repo    *repository
	ask     func(ctx context.Context, blobs []id, receive func(io.Reader) error) error
	mode    string
	refused func() // told that the credentials were not taken; may be nil
	now     func() time.Time
	shared  string        // a directory that clones share; "": there is none
	silence time.Duration // after which a server that sends nothing is given up

	is    atomic.Bool // blobs may be missing
	ctx   context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup
	slots chan struct{} // requests that a caller waits for
	woken chan struct{} // the prefetch looks again
	ahead *ahead

	mu      sync.Mutex // guards all below
	flights map[id]*flight
	next    *flight // not begun yet: it takes more
	pulls   int     // movings that have not ended
	near    []id    // directories that a caller has looked at, the last first
	state   providers.CloneState
	ended   bool
}

// flight is a request for blobs.
type flight struct {
	blobs []id
	done  chan struct{} // closed once err holds
	err   error
}

// Bounds of requests that a caller waits for.
const (
	mostSlots = 3
	mostAsked = 10_000 // blobs in one
)

// silence is how long a server may send nothing.
const silence = time.Minute

func newPartial(r *repository) *partial {
	w := &partial{repo: r, silence: silence,
		slots: make(chan struct{}, mostSlots), woken: make(chan struct{}, 1), flights: map[id]*flight{}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	w.ahead = newAhead(w)
	w.is.Store(r.partialState() == partialMissing)
	w.state.Missing = -1
	r.objects.Promise(w.bring)
	return w
}

// from names the server to ask for missing blobs. It is called once, before the first request.
func (w *partial) from(m *remote.Remote, o Options) {
	w.ask, w.mode, w.refused, w.now, w.shared = m.Blobs, o.Clone, o.Refused, o.Now, o.Shared
}

// bring is need for callers without a context: it waits, at most until the provider is closed. It
// also finds objects of commits that no reference leads to.
func (w *partial) bring(blob id) error {
	if w.repo.partialState() == "" {
		return nil
	}
	err := w.await(w.ctx, blob)
	if w.ctx.Err() != nil {
		return providers.ErrClosed
	}
	return err
}

// begin starts the prefetch, if blobs are missing.
func (w *partial) begin() {
	w.work.Go(w.ahead.run)
}

// end waits until nothing is under way any more.
func (w *partial) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.stop()
	w.work.Wait()
}

// need waits until blobs are local. The error is ctx's, or the reason why they cannot come.
func (w *partial) need(ctx context.Context, blobs ...id) error {
	if !w.is.Load() {
		return nil
	}
	return w.await(ctx, blobs...)
}

func (w *partial) await(ctx context.Context, blobs ...id) error {
	flights, err := w.board(blobs)
	if err != nil {
		return err
	}
	for f := range flights {
		select {
		case <-f.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for f, mine := range flights {
		for _, blob := range mine {
			if f.err != nil && !w.repo.objects.Has(blob) {
				return f.err
			}
		}
	}
	return nil
}

// isPromised reports whether a blob is not local, because it came from the server and was left
// there.
func (w *partial) isPromised(blob id) bool { return w.is.Load() && !w.repo.objects.Has(blob) }

// board finds the requests that bring blobs, or makes one.
func (w *partial) board(blobs []id) (map[*flight][]id, error) {
	flights := map[*flight][]id{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, blob := range blobs {
		if w.repo.objects.Has(blob) {
			continue
		}
		f := w.flights[blob]
		if f == nil {
			if w.ended {
				return nil, providers.ErrClosed
			}
			f = lockedPartial{w}.upcoming()
			f.blobs, w.flights[blob] = append(f.blobs, blob), f
		}
		flights[f] = append(flights[f], blob)
	}
	return flights, nil
}

// lockedPartial is a partial whose mutex the caller has locked.
type lockedPartial struct{ *partial }

// upcoming is a request that takes more blobs.
func (w lockedPartial) upcoming() *flight {
	if f := w.next; f != nil && len(f.blobs) < mostAsked {
		return f
	}
	f := &flight{done: make(chan struct{})}
	w.next = f
	w.work.Go(func() {
		select {
		case w.slots <- struct{}{}:
			defer func() { <-w.slots }()
		case <-w.ctx.Done():
		}
		w.mu.Lock()
		if w.next == f {
			w.next = nil
		}
		w.mu.Unlock()
		w.fly(f)
	})
	return f
}

// reserve makes a request for blobs that are not asked for yet; nil: all of them are on their
// way.
func (w *partial) reserve(blobs []id) *flight {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &flight{done: make(chan struct{})}
	for _, blob := range blobs {
		if w.flights[blob] == nil && !w.repo.objects.Has(blob) {
			f.blobs, w.flights[blob] = append(f.blobs, blob), f
		}
	}
	if len(f.blobs) == 0 {
		return nil
	}
	return f
}

// fly makes a request. The result is the number of bytes that came.
func (w *partial) fly(f *flight) (size int64) {
	size, err := w.receive(f.blobs)
	came := 0
	for _, blob := range f.blobs {
		if w.repo.objects.Has(blob) {
			came++
		}
	}
	if err == nil && came < len(f.blobs) {
		err = unavailable(fmt.Errorf("the server did not send %d of %d contents that it had promised", len(f.blobs)-came, len(f.blobs)))
	}
	w.mu.Lock()
	for _, blob := range f.blobs {
		delete(w.flights, blob)
	}
	if w.state.Missing > 0 {
		w.state.Missing = max(0, w.state.Missing-came)
	}
	lockedPartial{w}.failed(err)
	w.mu.Unlock()
	f.err = err
	close(f.done)
	if came > 0 {
		w.wake()
	}
	return size
}

// failed notes how the last request ended.
func (w lockedPartial) failed(err error) {
	switch {
	case w.ctx.Err() != nil:
	case err == nil:
		w.state.Error, w.state.Failing = "", time.Time{}
	default:
		if w.state.Failing.IsZero() {
			w.state.Failing = w.now()
		}
		w.state.Error = err.Error()
		if errors.Is(err, providers.ErrUnauthenticated) && w.refused != nil {
			w.refused()
		}
	}
}

// receive asks for blobs, and gives a silent server up.
func (w *partial) receive(blobs []id) (size int64, err error) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	silent := time.AfterFunc(w.silence, cancel)
	defer silent.Stop()
	err = w.ask(ctx, blobs, func(r io.Reader) error {
		return w.repo.objects.ReceivePromised(&outgoing{r, func(n int) {
			size += int64(n)
			silent.Reset(w.silence)
		}})
	})
	switch {
	case err == nil:
		return size, nil
	case w.ctx.Err() != nil:
		return size, providers.ErrClosed
	case ctx.Err() != nil:
		return size, unavailable(fmt.Errorf("the server sent nothing for %v", w.silence))
	}
	return size, contentError(err)
}

func unavailable(err error) error { return &remote.Error{Kind: providers.ErrUnavailable, Err: err} }

// contentError keeps a server's error about the repository from looking like an error about a
// file.
func contentError(err error) error {
	var asked *remote.Error
	if errors.As(err, &asked) && !errors.Is(asked.Kind, providers.ErrUnauthenticated) {
		return &remote.Error{Kind: providers.ErrUnavailable, Code: asked.Code, Err: errors.New(asked.Error())}
	}
	return err
}

// wake has the prefetch look again.
func (w *partial) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// mostNear bounds the directories that are remembered as looked at.
const mostNear = 64

// lookedAt has blobs below a directory come before the rest.
func (w *partial) lookedAt(dir id) {
	if !w.is.Load() || dir.IsZero() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.near = append([]id{dir}, w.near[:min(len(w.near), mostNear-1)]...)
}

// without marks the clone as one without blobs, before objects come that lack them. It counts as
// whole again when all objects that references lead to were looked through, so a caller that
// moves a reference begins a moving first.
func (w *partial) without() error {
	if err := w.repo.setPartial(partialMissing); err != nil {
		return err
	}
	w.is.Store(true)
	return nil
}

// moving begins a change that ends with a reference that leads to a commit. known says that the
// commit is local already, with or without its blobs.
func (w *partial) moving(known bool) (end func(), err error) {
	w.mu.Lock()
	w.pulls++
	w.mu.Unlock()
	if known && w.repo.partialState() != "" {
		err = w.without()
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
func (w *partial) complete() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pulls > 0 || len(w.flights) > 0 || w.ahead.again.Load() {
		return nil
	}
	if err := w.repo.setPartial(partialWhole); err != nil {
		return err
	}
	w.is.Store(false)
	w.state = providers.CloneState{Missing: -1}
	return nil
}

// small brings all content of a commit with few files at once, so that the clone has all of it,
// or none.
func (w *partial) small(ctx context.Context, c id) error {
	if !w.is.Load() || w.mode == CloneBlobless {
		return nil
	}
	commit, err := w.repo.commit(c)
	if err != nil {
		return err
	}
	blobs, err := w.repo.missingIn([]id{commit.Tree}, smallClone)
	if err != nil || len(blobs) > smallClone {
		return err
	}
	return w.need(ctx, blobs...)
}

// Clone implements providers.Cloner.
func (p *Provider) Clone() providers.CloneState {
	w := p.repo.partial
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state
	s.Kind, s.Fetching = providers.CloneBlobless, len(w.flights)
	if !w.is.Load() {
		s.Kind, s.Missing = providers.CloneFull, 0
	}
	return s
}
