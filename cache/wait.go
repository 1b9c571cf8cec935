package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/proc"
)

// errPatience ends what has been tried for long enough.
var errPatience = fmt.Errorf("gave up waiting: %w", fs.ErrUnavailable)

// waiting is a context for work that a request waits for. It ends when the
// volume does, when nothing has moved for the patience given (0: for ever),
// and when the caller is being killed. Other signals do not end it: close must not fail
// with EINTR because a timer ticked.
type waiting struct {
	context.Context
	end   context.CancelCauseFunc
	timer *time.Timer
	d     time.Duration
	beat  *atomic.Uint64 // counts what moves; nil: nobody does
	with  func() bool    // lets go of another context with which it ends; nil: there is none
	pages atomic.Uint64  // of a walk that came for it
}

func (v *Volume) wait(op *fs.Op, d time.Duration) *waiting {
	ctx, end := context.WithCancelCause(v.ctx)
	w := &waiting{Context: ctx, end: end, d: d}
	if d > 0 {
		w.timer = time.AfterFunc(d, func() { end(errPatience) })
	}
	if op != nil && op.Cancel != nil {
		go w.watch(op)
	}
	return w
}

// waitWith is wait for work that no request waits for, and that ends with ctx.
func (v *Volume) waitWith(ctx context.Context, d time.Duration) *waiting {
	w := v.wait(nil, d)
	w.with = context.AfterFunc(ctx, func() { w.end(context.Canceled) })
	return w
}

// Moved implements revision.Waiting.
func (w *waiting) Moved() { w.moved() }

// moved says that there is progress.
func (w *waiting) moved() {
	if w.beat != nil {
		w.beat.Add(1)
	}
	if w.timer != nil && w.Err() == nil {
		w.timer.Reset(w.d)
	}
}

// progressed tells whoever waits of something that came.
func progressed(w *waiting, got *pending.Reach, n int) {
	if got.By(n) {
		w.moved()
	}
}

// close frees what the context holds.
func (w *waiting) close() {
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.with != nil {
		w.with()
	}
	w.end(context.Canceled)
}

// cause is why the context ended, if that is what err says.
func (w *waiting) cause(err error) error {
	switch {
	case err == nil || w.Err() == nil:
		return err
	case errors.Is(err, w.Err()):
		return context.Cause(w)
	}
	return fmt.Errorf("%w: %w", context.Cause(w), err)
}

// watch ends the waiting when the caller is being killed.
func (w *waiting) watch(op *fs.Op) {
	if proc.UntilKilled(op.PID, op.Cancel, w.Done()) {
		w.end(syscall.EINTR)
	}
}

// translate gives an error of the seam the meaning that it has for a program.
func translate(err error) error { return errno.Translate(err) }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
