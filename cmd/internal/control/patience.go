package control

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// A call that waits for a commit, a pull or a push may take as long as its work.
// Only time without progress is limited: after that the daemon gives up and reports
// it; the caller gives up a little later, on a daemon that has not reported because
// it hangs. Both watch the same beat.

// beatEvery is the interval at which the beat is read.
const beatEvery = 250 * time.Millisecond

// patient is a context that ends, as one with a deadline does, when beat has not
// changed for so long. beat may take its time; ok is false if the beat is unknown.
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

// patience is the context of patient. It has a channel of its own, so that contexts
// derived from it end with its error too, and not with that of its parent.
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

// patient is for a call that may wait so many seconds without progress.
func (s *Server) patient(ctx context.Context, seconds float64) (context.Context, context.CancelFunc) {
	return patient(ctx, waitLimit(seconds), func(context.Context) (uint64, bool) { return s.b.Work().Beat, true })
}

// Work asks for the work under way.
func (c *Client) Work(ctx context.Context) (out Work, err error) {
	ctx, cancel := context.WithTimeout(ctx, AnswerLimit)
	defer cancel()
	return out, c.call(ctx, http.MethodGet, "/v1/work", nil, &out)
}

// Patient is a context for a call of an event, a pull, commit or push that the daemon gives up
// after the limit without progress. It ends if the daemon does not report that either.
func (c *Client) Patient(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return patient(ctx, limit+AnswerLimit, func(ctx context.Context) (uint64, bool) {
		work, err := c.Work(ctx)
		return work.Beat, err == nil
	})
}

// Answering is a context for a call of any length. It ends when the daemon has
// answered no request for AnswerLimit: then it hangs.
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
