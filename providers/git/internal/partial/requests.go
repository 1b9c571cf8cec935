package partial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// request is a request for blobs.
type request struct {
	blobs []id
	done  chan struct{} // closed once err holds
	err   error
}

// Bounds of requests that a caller waits for.
const (
	mostSlots = 3
	mostAsked = 10_000 // blobs in one
)

// silence is how long a server may send nothing, unless Server says that.
const silence = time.Minute

func (w *Blobs) await(ctx context.Context, blobs ...id) error {
	requests, err := w.join(blobs)
	if err != nil {
		return err
	}
	for r := range requests {
		select {
		case <-r.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for r, mine := range requests {
		for _, blob := range mine {
			if r.err != nil && !w.in.Objects.Has(blob) {
				return r.err
			}
		}
	}
	return nil
}

// join finds the requests that bring blobs, or makes one.
func (w *Blobs) join(blobs []id) (map[*request][]id, error) {
	requests := map[*request][]id{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, blob := range blobs {
		if w.in.Objects.Has(blob) {
			continue
		}
		r := w.requests[blob]
		if r == nil {
			if w.ended {
				return nil, providers.ErrClosed
			}
			r = locked{w}.upcoming()
			r.blobs, w.requests[blob] = append(r.blobs, blob), r
		}
		requests[r] = append(requests[r], blob)
	}
	return requests, nil
}

// locked is a Blobs whose mutex the caller has locked.
type locked struct{ *Blobs }

// upcoming is a request that takes more blobs.
func (w locked) upcoming() *request {
	if r := w.next; r != nil && len(r.blobs) < mostAsked {
		return r
	}
	r := &request{done: make(chan struct{})}
	w.next = r
	w.work.Go(func() {
		select {
		case w.slots <- struct{}{}:
			defer func() { <-w.slots }()
		case <-w.ctx.Done():
		}
		w.mu.Lock()
		if w.next == r {
			w.next = nil
		}
		w.mu.Unlock()
		w.send(r)
	})
	return r
}

// reserve makes a request for blobs that are not asked for yet; nil: all of them are on their
// way.
func (w *Blobs) reserve(blobs []id) *request {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &request{done: make(chan struct{})}
	for _, blob := range blobs {
		if w.requests[blob] == nil && !w.in.Objects.Has(blob) {
			r.blobs, w.requests[blob] = append(r.blobs, blob), r
		}
	}
	if len(r.blobs) == 0 {
		return nil
	}
	return r
}

// send makes a request. The result is the number of bytes that came.
func (w *Blobs) send(r *request) (size int64) {
	size, err := w.receive(r.blobs)
	came := 0
	for _, blob := range r.blobs {
		if w.in.Objects.Has(blob) {
			came++
		}
	}
	if err == nil && came < len(r.blobs) {
		err = unavailable(fmt.Errorf("the server did not send %d of %d contents that it had promised", len(r.blobs)-came, len(r.blobs)))
	}
	w.mu.Lock()
	for _, blob := range r.blobs {
		delete(w.requests, blob)
	}
	if w.state.Missing > 0 {
		w.state.Missing = max(0, w.state.Missing-came)
	}
	locked{w}.failed(err)
	w.mu.Unlock()
	r.err = err
	close(r.done)
	if came > 0 {
		w.wake()
	}
	return size
}

// failed notes how the last request ended.
func (w locked) failed(err error) {
	switch {
	case w.ctx.Err() != nil:
	case err == nil:
		w.state.Error, w.state.Failing = "", time.Time{}
	default:
		if w.state.Failing.IsZero() {
			w.state.Failing = w.from.Now()
		}
		w.state.Error = err.Error()
		if errors.Is(err, providers.ErrUnauthenticated) && w.from.Refused != nil {
			w.from.Refused()
		}
	}
}

// receive asks for blobs, and gives a silent server up.
func (w *Blobs) receive(blobs []id) (size int64, err error) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	silent := time.AfterFunc(w.from.Silence, cancel)
	defer silent.Stop()
	err = w.from.Ask(ctx, blobs, func(r io.Reader) error {
		return w.in.Objects.ReceivePromised(&counted{r, func(n int) {
			size += int64(n)
			silent.Reset(w.from.Silence)
		}})
	})
	switch {
	case err == nil:
		return size, nil
	case w.ctx.Err() != nil:
		return size, providers.ErrClosed
	case ctx.Err() != nil:
		return size, unavailable(fmt.Errorf("the server sent nothing for %v", w.from.Silence))
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

// counted calls came with the number of bytes as they come.
type counted struct {
	r    io.Reader
	came func(int)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if n > 0 {
		c.came(n)
	}
	return n, err
}
