package cache

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

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
