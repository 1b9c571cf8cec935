package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
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
	later bool           // see lookLater
	beat  *atomic.Uint64 // counts what moves; nil: nobody does
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

// moved says that there is progress.
func (w *waiting) moved() {
	if w.beat != nil {
		w.beat.Add(1)
	}
	if w.timer != nil && w.Err() == nil {
		w.timer.Reset(w.d)
	}
}

// reach is how far attempts at one thing got. Only what goes further than any
// attempt before is progress: of a service that breaks off at the same place
// each time, nobody is to wait for more.
type reach struct{ now, best atomic.Int64 }

// again begins another attempt.
func (r *reach) again() { r.now.Store(0) }

// by adds to the attempt, and reports whether that is progress.
func (r *reach) by(n int) bool {
	now := r.now.Add(int64(n))
	for {
		best := r.best.Load()
		if now <= best {
			return false
		}
		if r.best.CompareAndSwap(best, now) {
			return true
		}
	}
}

// close frees what the context holds.
func (w *waiting) close() {
	if w.timer != nil {
		w.timer.Stop()
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

// watch ends the waiting when the interrupt of a request was a kill, or is
// followed by one. The kernel interrupts a request once, for any signal.
func (w *waiting) watch(op *fs.Op) {
	select {
	case <-op.Cancel:
	case <-w.Done():
		return
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !killed(op.PID) {
		select {
		case <-tick.C:
		case <-w.Done():
			return
		}
	}
	w.end(syscall.EINTR)
}

// killed reports whether a thread has a SIGKILL pending, which the kernel also
// gives it for every other signal that ends it, or is gone.
func killed(tid uint32) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(int(tid)) + "/status")
	if err != nil {
		return true
	}
	for _, field := range []string{"\nSigPnd:\t", "\nShdPnd:\t"} {
		_, rest, _ := bytes.Cut(status, []byte(field))
		hex, _, _ := bytes.Cut(rest, []byte("\n"))
		if set, err := strconv.ParseUint(string(hex), 16, 64); err == nil && set&(1<<(syscall.SIGKILL-1)) != 0 {
			return true
		}
	}
	return false
}

const (
	firstPause = 50 * time.Millisecond
	longest    = 15 * time.Second
)

// retry runs attempt until it succeeds, fails for good, or ctx ends; then the
// error is that of the last attempt.
func (v *Volume) retry(ctx context.Context, attempt func(ctx context.Context) error) error {
	return v.retryWhile(ctx, longest, func(error) bool { return true }, attempt)
}

// retryWhile is retry with pauses of at most so long, as long as hope says that
// another attempt may be worth it.
func (v *Volume) retryWhile(ctx context.Context, most time.Duration, hope func(err error) bool, attempt func(ctx context.Context) error) error {
	for d := firstPause; ; d = min(2*d, most) {
		err := attempt(ctx)
		if err == nil || !again(err) || !hope(err) {
			return err
		}
		v.o.Log.Debug("will try again", "in", d, "err", err)
		if v.pause(ctx, d/2+rand.N(d/2)) != nil {
			return err
		}
	}
}

// again reports whether the same call may succeed soon. A full backend is told
// to the program at once.
func again(err error) bool {
	return providers.KindOf(err).Retry == providers.RetryLater &&
		!errors.Is(err, fs.ErrUnavailable) && !errors.Is(err, providers.ErrQuota)
}

// errRefused is what a program gets for credentials that do not hold: for it the
// backend is away, but a person is told what is wrong.
var errRefused error = refusedAccess{}

type refusedAccess struct{}

func (refusedAccess) Error() string {
	return "the backend refused access, for the reason that follows (`wsmount resolve --explain` names the secret in use)"
}

func (refusedAccess) Unwrap() error { return fs.ErrUnavailable }

// errnos gives the kinds of the seam that package fs does not know a meaning.
var errnos = []struct{ kind, as error }{
	{providers.ErrReadOnly, fs.ErrReadOnly},
	{providers.ErrConflict, fs.ErrConflict},
	{providers.ErrUnavailable, fs.ErrUnavailable},
	{providers.ErrUnauthenticated, errRefused},
	{providers.ErrQuota, fs.ErrQuota},
	{providers.ErrUnsupported, fs.ErrUnsupported},
	{providers.ErrTooLarge, syscall.EFBIG},
	{providers.ErrNotDir, syscall.ENOTDIR},
	{providers.ErrIsDir, syscall.EISDIR},
	{providers.ErrNotEmpty, syscall.ENOTEMPTY},
	{providers.ErrNameTooLong, syscall.ENAMETOOLONG},
	{providers.ErrClosed, syscall.EIO},
	{providers.ErrCorrupt, syscall.EIO},
}

// translate adds the kind of package fs to an error of the seam.
func translate(err error) error {
	for _, row := range errnos {
		if errors.Is(err, row.kind) {
			return fmt.Errorf("%w: %w", row.as, err)
		}
	}
	return err
}
