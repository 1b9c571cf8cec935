// Package waiting has requests of programs wait for the remote, and ends that: when the working
// copy ends, when there was no progress for the patience, and when the caller is killed. Other
// signals do not end it: close must not fail with EINTR because a timer ticked.
//
//	w := waits.For(op, time.Minute)
//	defer w.Close()
//	err := w.Cause(waits.Retry(w, func(ctx context.Context) error { ... w.Moved() ... }))
//
// A [Context] is for one request, which [Waits] retries as long as that may help. [Sent] waits
// until the remote has the local changes, as close and fsync do.
package waiting

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/proc"
	"github.com/wsmount/wsmount/providers"
)

// ErrPatience is the cause when the patience is over.
var ErrPatience = providers.Kinded(errors.New("storage is not available: no answer in time"), fs.ErrUnavailable)

// Waits makes contexts for the requests of a working copy.
type Waits struct {
	Context context.Context // ends with the working copy
	Pause   func(ctx context.Context, d time.Duration) error
	Log     *slog.Logger
}

// A Context is for work that a request waits for.
type Context struct {
	context.Context
	end   context.CancelCauseFunc
	timer *time.Timer
	d     time.Duration
	beat  *atomic.Uint64 // counts progress; nil: there is none
	with  func() bool    // releases a context that ends this one; nil: none
}

// For is a context for work that op waits for, which ends after d without progress (0: never).
// op nil: no request waits.
func (s *Waits) For(op *fs.Op, d time.Duration) *Context {
	ctx, end := context.WithCancelCause(s.Context)
	w := &Context{Context: ctx, end: end, d: d}
	if d > 0 {
		w.timer = time.AfterFunc(d, func() { end(ErrPatience) })
	}
	if op != nil && op.Cancel != nil {
		go func() {
			if proc.UntilKilled(op.PID, op.Cancel, w.Done()) {
				end(syscall.EINTR)
			}
		}()
	}
	return w
}

// With is For for work without a waiting request, which ends with ctx.
func (s *Waits) With(ctx context.Context, d time.Duration) *Context {
	w := s.For(nil, d)
	w.with = context.AfterFunc(ctx, func() { w.end(context.Canceled) })
	return w
}

// Beating has beat count progress, and End ends the context for a cause.
func (w *Context) Beating(beat *atomic.Uint64) *Context {
	w.beat = beat
	return w
}
func (w *Context) End(cause error) { w.end(cause) }

// Moved notes progress.
func (w *Context) Moved() {
	if w.beat != nil {
		w.beat.Add(1)
	}
	if w.timer != nil && w.Err() == nil {
		w.timer.Reset(w.d)
	}
}

// Close frees the context's resources.
func (w *Context) Close() {
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.with != nil {
		w.with()
	}
	w.end(context.Canceled)
}

// Cause is why the context ended, if err says that it did.
func (w *Context) Cause(err error) error { return Cause(w, err) }

// Cause is why ctx ended, if err says that it did; else err, the failure until then.
func Cause(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case errors.Is(err, ctx.Err()):
		return context.Cause(ctx)
	}
	return providers.Kinded(err, context.Cause(ctx))
}

// Progressed notes progress by n, unless an earlier attempt had come as far.
func Progressed(w interface{ Moved() }, got *pending.Reach, n int) {
	if got.By(n) {
		w.Moved()
	}
}

// Retry runs attempt until it succeeds, fails for good, or ctx ends; then the error is that of
// the last attempt.
func (s *Waits) Retry(ctx context.Context, attempt func(ctx context.Context) error) error {
	return s.RetryWhile(ctx, upload.LongestPause, func(error) bool { return true }, attempt)
}

// RetryWhile is Retry with pauses of at most most, while hope reports that another attempt may
// succeed.
func (s *Waits) RetryWhile(ctx context.Context, most time.Duration, hope func(err error) bool, attempt func(ctx context.Context) error) error {
	for failures := 0; ; failures++ {
		err := attempt(ctx)
		if err == nil || !isWorthIt(err) || !hope(err) {
			return err
		}
		pause := upload.PauseUpTo(most, failures)
		s.Log.Debug("will try again", "in", pause, "err", err)
		if s.Pause(ctx, pause) != nil {
			return err
		}
	}
}

// isWorthIt reports whether the same call may succeed soon. It is false for a full remote: the
// program is told at once.
func isWorthIt(err error) bool {
	return providers.KindOf(err).Retry == providers.RetryLater &&
		!errors.Is(err, fs.ErrUnavailable) && !errors.Is(err, providers.ErrQuota)
}

// Passes reports whether a failure may soon be over by itself: only a waiting request need be
// told.
func Passes(err error) bool {
	switch {
	case errors.Is(err, content.ErrChanged), errors.Is(err, ErrPatience), errors.Is(err, providers.ErrUnauthenticated):
		return true
	case errors.Is(err, providers.ErrBody):
		return false
	}
	return isWorthIt(err) || errors.Is(err, fs.ErrUnavailable)
}

// Sleep is time.Sleep that ends with ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
