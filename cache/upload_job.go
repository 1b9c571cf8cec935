package cache

import (
	"errors"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
)

// walk starts what may run now, see upload.Planner.Begin for deep.
func (e *engine) walk(v *View, deep bool) {
	if e.backoff.paused || e.looking || v.closed {
		return
	}
	err := e.halt.check(v)
	if unseen := (*massdelete.UnseenError)(nil); errors.As(err, &unseen) {
		e.lookInto(v, unseen.Dirs)
		return
	}
	if e.halt.err = err; err != nil {
		v.pending.Review(v.View)
		return
	}
	limit := maxRunning
	if e.backoff.IsFlaky() {
		limit = 1
	}
	var before upload.Order
	e.planner.Begin(deep)
	defer e.planner.End()
	cut := false     // what a name waits for was not searched to its end
	waiting := false // something could begin later
	far := 0         // names in a row that wait for something far away
	v.pending.EachDue(v.View, func(l table.Link) bool {
		if len(e.jobs.Running()) >= limit {
			waiting = true
			return false
		}
		verdict, s, isCut := e.planner.Plan(v.View, l)
		if far++; !isCut {
			far = 0
		}
		cut = cut || isCut
		if far > farNames && len(e.jobs.Running()) > 0 {
			waiting = true // what runs comes first: there will be another walk
			return false
		}
		switch verdict {
		case upload.Busy:
			before.Pass(s.Class())
		case upload.Ready:
			waiting = true
			if before.Lets(s.Class(), v.o.Policy.NoWait) && e.jobs.Fits(s) {
				e.start(v, s)
			} else if before.Ends(s.Class()) {
				return false
			}
			before.Pass(s.Class())
		}
		return !before.IsMoving()
	})
	switch {
	case waiting:
	case cut && !deep && len(e.jobs.Running()) == 0:
		e.walk(v, true)
	default:
		e.stalled(v)
	}
}

// lookInto makes directories known before anything is started.
func (e *engine) lookInto(v *View, dirs []table.Ino) {
	e.looking = true
	v.background(func() {
		err := e.v.lookInto(e.v.ctx, dirs)
		locked := e.v.lock()
		e.looking = false
		if err != nil {
			e.v.fails(chores.Upload, err)
			e.backoff.failed(locked, err)
			e.backoff.pause(locked, pauseAfter(e.backoff.Failures()))
		}
		locked.unlock()
		e.v.pending.Kick()
	})
}

// farNames is how many names in a row a walk passes that wait for something far
// away, as in the removal of a deep tree, while there is something that runs.
const farNames = 16

// start runs an operation in the background.
func (e *engine) start(v *View, s *upload.Operation) {
	t := e.jobs.Begin(v.View, s, v.o.Now())
	v.background(func() { e.run(t) })
}

// run does an operation, and what follows from its outcome.
func (e *engine) run(t *upload.Job) {
	v := e.v
	w := v.wait(nil, v.o.Patience)
	defer w.close()
	sent := func(n int) {
		if t.Sent.By(n) {
			w.moved()
			e.moving()
		}
	}
	err := w.cause(e.exec.Do(w, &upload.Try{Operation: t.Op, Unmade: &t.Unmade, Sent: sent}))
	if err != nil && v.ctx.Err() == nil && lostRace(err) {
		w.moved()
		err = w.cause(e.yieldTo(w, t, err))
	}
	locked := v.lock()
	e.jobs.End(t)
	e.conclude(locked, t, err)
	refused, left := t.State == upload.Held, e.left(locked, t.Op)
	locked.unlock()
	for _, dir := range left {
		v.abandon(dir)
	}
	if err == nil {
		v.pending.Arrived()
	}
	if refused {
		e.hold(t)
	}
	e.v.pending.Kick()
}

// moving tells who waits that bytes are moving, once in a while: nobody gives
// up for want of patience then.
func (e *engine) moving() {
	now, last := time.Now().UnixNano(), e.beat.Load()
	if now-last < int64(min(time.Second, e.v.o.Patience/8)) || !e.beat.CompareAndSwap(last, now) {
		return
	}
	e.v.doing.alive()
	locked := e.v.lock()
	defer locked.unlock()
	e.v.doing.advanced(e.v.pending)
}

// left are the directories of an operation that waited for its end to be forgotten.
func (e *engine) left(v *View, s *upload.Operation) (dirs []table.Ino) {
	for _, l := range s.Names() {
		if v.IsNowhere(l.Dir) && v.IsForsaken(l.Dir) {
			dirs = append(dirs, l.Dir)
		}
	}
	return dirs
}

// conclude decides what becomes of a job.
func (e *engine) conclude(v *View, t *upload.Job, err error) {
	switch {
	case v.ctx.Err() != nil:
		e.jobs.BreakOff(t)
		return
	case err == nil:
		e.backoff.reaches(v)
		e.jobs.Done(t)
		v.doing.advanced(v.pending)
	case errors.Is(err, upload.ErrAgain):
		e.jobs.Anew(v.View, t)
	case passing(err):
		e.rest(v, t, err)
	default:
		e.backoff.reaches(v)
		e.jobs.Refuse(v.View, t, err, v.o.Now())
	}
	v.pending.NamesChanged(v.View, t.Link)
	if t.State == upload.Held && t.Op.Dir {
		v.pending.Review(v.View) // what is in it waits in vain
	}
}

// rest has a job tried again in a while.
func (e *engine) rest(v *View, t *upload.Job, err error) {
	d := pauseAfter(e.jobs.Rest(t, err))
	v.fails(chores.Upload, err)
	e.backoff.failed(v, err)
	v.o.Log.Debug("will try again", "what", t.Op.String(), "in", d, "err", err)
	resting := e.backoff.resting
	v.background(func() {
		_ = e.v.pause(resting, d)
		locked := e.v.lock()
		e.jobs.Wake(t)
		locked.unlock()
		e.v.pending.Kick()
	})
	if e.backoff.IsFlaky() && !e.backoff.paused {
		e.backoff.pause(v, pauseAfter(e.backoff.Rests()))
	}
}

// errContended is a name that others change faster than we get to it.
var errContended = errors.New("the remote keeps changing; will retry")
