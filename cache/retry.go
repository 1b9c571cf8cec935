package cache

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// retry runs attempt until it succeeds, fails for good, or ctx ends; then the
// error is that of the last attempt.
func (v *Volume) retry(ctx context.Context, attempt func(ctx context.Context) error) error {
	return v.retryWhile(ctx, upload.LongestPause, func(error) bool { return true }, attempt)
}

// retryWhile is retry with pauses of at most so long, as long as hope says that
// another attempt may be worth it.
func (v *Volume) retryWhile(ctx context.Context, most time.Duration, hope func(err error) bool, attempt func(ctx context.Context) error) error {
	for d := upload.FirstPause; ; d = min(2*d, most) {
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

// Rouse has what failed to be sent tried now: its cause is over, such as a policy's refusal.
func (v *Volume) Rouse() {
	defer v.pending.Kick()
	defer v.lock().unlock()
	v.send.Rouse()
}

// again reports whether the same call may succeed soon. A full backend is told
// to the program at once.
func again(err error) bool {
	return providers.KindOf(err).Retry == providers.RetryLater &&
		!errors.Is(err, fs.ErrUnavailable) && !errors.Is(err, providers.ErrQuota)
}

// passing reports whether the same may succeed soon without anybody's doing.
// Nobody need be told but who waits.
func passing(err error) bool {
	switch {
	case errors.Is(err, content.ErrChanged), errors.Is(err, errPatience), errors.Is(err, providers.ErrUnauthenticated):
		return true
	case errors.Is(err, providers.ErrBody):
		return false
	}
	return again(err) || errors.Is(err, fs.ErrUnavailable)
}
