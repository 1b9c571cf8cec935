package cache

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// backoff is how the remote takes changes, and the rests that it gets after failures. The
// lock of the volume guards it.
type backoff struct {
	upload.Backoff
	paused   bool            // no start before the remote has had a rest
	resting  context.Context // of pauses after failures
	endRests context.CancelFunc
}

func newBackoff(v *Volume) backoff {
	b := backoff{Backoff: upload.NewBackoff(v.o.Now())}
	b.resting, b.endRests = context.WithCancel(v.ctx)
	return b
}

// pause gives the backend a rest.
func (b *backoff) pause(v *View, d time.Duration) {
	b.paused = true
	resting := b.resting
	v.background(func() {
		_ = v.Volume.pause(resting, d)
		locked := v.Volume.lock()
		b.paused = false
		locked.unlock()
		v.pending.Kick()
	})
}

// reaches notes that the remote answered a change.
func (b *backoff) reaches(v *View) {
	if b.IsFlaky() {
		b.rouse(v)
	}
	if outage, told := b.Reached(v.o.Now()); told {
		v.o.Log.Info("the remote accepts changes again", "after", outage.Round(time.Second))
	}
	v.fails(chores.Upload, nil)
}

// failed counts a failure that may pass. An outage is told once.
func (b *backoff) failed(v *View, err error) {
	if b.Failed(err, v.o.Now()) {
		v.o.Log.Warn("the remote accepts no changes: they are kept and retried", "err", err)
	}
}

// rouse ends the pauses after failures. It is for the end of an outage, and for who
// asks: what fails for a reason of its own would be tried all the time, if any success
// did this.
func (b *backoff) rouse(v *View) {
	b.endRests()
	b.resting, b.endRests = context.WithCancel(v.ctx)
}

// pauseAfter is how long to wait after so many failures, with jitter.
func pauseAfter(failures int) time.Duration {
	d := min(firstPause<<min(failures, 20), longest)
	return d/2 + rand.N(d/2)
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
