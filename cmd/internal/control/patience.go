package control

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// A call that waits for a commit, a pull or a push takes as long as there is to
// do. What has a limit is how long nothing comes further: the daemon gives up
// then, and says so; and who calls gives up a little later, on a daemon that has
// said nothing, because it hangs. Both look at the same beat.

// beatEvery is how often the beat is looked at.
const beatEvery = 250 * time.Millisecond

// patient is a context that ends, as one with a deadline does, when beat has not
// changed for so long. beat may take its time, and ok is false when it cannot say.
func patient(ctx context.Context, limit time.Duration, beat func(ctx context.Context) (n uint64, ok bool)) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	p := &patience{Context: inner, done: make(chan struct{})}
	over := time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
	go func() {
		defer close(p.done)
		tick := time.NewTicker(min(beatEvery, max(limit/8, time.Millisecond)))
		defer tick.Stop()
		last, known := beat(inner)
		for inner.Err() == nil {
			select {
			case <-inner.Done():
				return
			case <-tick.C:
			}
			now, ok := beat(inner)
			if ok && known && now != last && over.Stop() {
				over.Reset(limit)
			}
			if ok {
				last, known = now, true
			}
		}
	}()
	return p, func() { over.Stop(); cancel(nil) }
}

// patience is what patient makes. Its channel is its own, so that the contexts that
// are made of it end with its error too, and not with that of the one below.
type patience struct {
	context.Context
	done chan struct{}
}

// Done implements context.Context.
func (p *patience) Done() <-chan struct{} { return p.done }

// Err implements context.Context.
func (p *patience) Err() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	if errors.Is(context.Cause(p.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return p.Context.Err()
}

// patient is for a call that may wait so many seconds for something to move.
func (s *Server) patient(ctx context.Context, seconds float64) (context.Context, context.CancelFunc) {
	return patient(ctx, waitLimit(seconds), func(context.Context) (uint64, bool) { return s.b.Work().Beat, true })
}

// Work asks what is under way.
func (c *Client) Work(ctx context.Context) (out Work, err error) {
	ctx, cancel := context.WithTimeout(ctx, AnswerLimit)
	defer cancel()
	return out, c.call(ctx, http.MethodGet, "/v1/work", nil, &out)
}

// Patient is a context for a call of an event, or of a pull, commit or push, which the
// daemon was told to give up when it has not come further for so long. It ends when the
// daemon has not said that either.
func (c *Client) Patient(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return patient(ctx, limit+AnswerLimit, func(ctx context.Context) (uint64, bool) {
		work, err := c.Work(ctx)
		return work.Beat, err == nil
	})
}

// Answering is a context for a call to which the daemon may take as long as it likes,
// that ends when the daemon has said nothing at all for AnswerLimit: it hangs.
func (c *Client) Answering(ctx context.Context) (context.Context, context.CancelFunc) {
	answers := uint64(0)
	return patient(ctx, AnswerLimit, func(ctx context.Context) (uint64, bool) {
		_, err := c.Work(ctx)
		if err == nil {
			answers++
		}
		return answers, err == nil
	})
}
