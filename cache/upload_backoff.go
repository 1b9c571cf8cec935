package cache

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// rest has a job tried again in a while.
func (e *engine) rest(v *View, t *job, err error) {
	t.err, t.state = err, jobResting
	d := pauseAfter(t.tries)
	t.tries++
	v.fails(chores.Upload, err)
	e.failed(v, err)
	v.o.Log.Debug("will try again", "what", t.op.String(), "in", d, "err", err)
	resting := e.resting
	v.background(func() {
		_ = e.v.pause(resting, d)
		locked := e.v.lock()
		if t.state == jobResting {
			t.state = jobIdle
		}
		locked.unlock()
		e.v.pending.Kick()
	})
	if e.failures >= flaky && !e.paused {
		e.pause(v, pauseAfter(e.failures-flaky))
	}
}

// pause gives the backend a rest.
func (e *engine) pause(v *View, d time.Duration) {
	e.paused = true
	resting := e.resting
	v.background(func() {
		_ = e.v.pause(resting, d)
		locked := e.v.lock()
		e.paused = false
		locked.unlock()
		e.v.pending.Kick()
	})
}

// reaches notes that the backend answered a change.
func (e *engine) reaches(v *View) {
	if e.failures >= flaky {
		e.rouse(v)
	}
	if e.outage {
		v.o.Log.Info("the remote accepts changes again", "after", v.o.Now().Sub(e.failing).Round(time.Second))
	}
	e.failures, e.outage, e.reached = 0, false, v.o.Now()
	v.fails(chores.Upload, nil)
}

// failed counts a failure that may pass. An outage is told once.
func (e *engine) failed(v *View, err error) {
	if e.failures == 0 {
		e.failing = v.o.Now()
	}
	e.failures++
	e.why = err
	if long := v.o.Now().Sub(e.failing) > outageAfter; !e.outage && (long || e.failures >= flaky) {
		e.outage = true
		v.o.Log.Warn("the remote accepts no changes: they are kept and retried", "err", err)
	}
}

// rouse ends the pauses after failures. It is for the end of an outage, and for who
// asks: what fails for a reason of its own would be tried all the time, if any success
// did this.
func (e *engine) rouse(v *View) {
	e.endRests()
	e.resting, e.endRests = context.WithCancel(v.ctx)
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
