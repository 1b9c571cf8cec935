package cache

import (
	"errors"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// job is the work on one name, from the first try to success: under way,
// resting after a failure that may pass, or held after one that will not. The lock of
// the volume guards it.
type job struct {
	link  table.Link
	op    *upload.Operation
	state jobState

	tries  int    // failures in a row
	losses int    // of what is here now: tries that were too late, in a row
	err    error  // the last failure
	tried  aspect // the name as it was then
	since  time.Time
	again  time.Time // held: when it is tried again; zero: when the name changes

	unmade table.Attempt // see upload.Try
	sent   reach         // bytes of content
}

// jobs are the names that are worked on. The lock of the volume guards them.
type jobs struct {
	of      map[table.Link]*job // what was begun and is not done
	busy    map[table.Link]*job // the names of those that run
	inodes  map[table.Ino]*job  // whose content those send or move
	running []*job
	bytes   int64 // that those send
}

func newJobs() jobs {
	return jobs{of: map[table.Link]*job{}, busy: map[table.Link]*job{}, inodes: map[table.Ino]*job{}}
}

// begin counts a job among those that run.
func (j *jobs) begin(t *job) {
	j.running = append(j.running, t)
	j.bytes += t.op.Size
	for _, l := range t.op.Names() {
		j.busy[l] = t
	}
	if t.op.Ino != 0 {
		j.inodes[t.op.Ino] = t
	}
}

// end takes a job from those that run.
func (j *jobs) end(t *job) {
	j.running = slices.DeleteFunc(j.running, func(other *job) bool { return other == t })
	j.bytes -= t.op.Size
	for _, l := range t.op.Names() {
		delete(j.busy, l)
	}
	if j.inodes[t.op.Ino] == t {
		delete(j.inodes, t.op.Ino)
	}
}

// Busy implements upload.Jobs.
func (j *jobs) Busy(l table.Link) *upload.Operation {
	if t := j.busy[l]; t != nil {
		return t.op
	}
	return nil
}

// IsWaiting implements upload.Jobs.
func (j *jobs) IsWaiting(l table.Link) bool {
	t := j.of[l]
	return t != nil && t.state != jobIdle
}

// fits reports whether an operation may run beside those that run: not at the same
// place, nor where the tree is moving, nor with the same content, nor too much.
func (j *jobs) fits(s *upload.Operation) bool {
	if s.Sends() && len(j.running) > 0 && j.bytes+s.Size > maxBytes && j.bytes > 0 {
		return false
	}
	if s.Ino != 0 && j.inodes[s.Ino] != nil {
		return false
	}
	return !slices.ContainsFunc(j.running, func(t *job) bool { return s.Collides(t.op) })
}

// works reports whether an operation is under way for a name of a directory: then what
// comes of it is still to be noted there.
func (j *jobs) works(dir table.Ino) bool {
	there := func(l table.Link) bool { return l.Dir == dir }
	return slices.ContainsFunc(j.running, func(t *job) bool { return slices.ContainsFunc(t.op.Names(), there) })
}

type jobState uint8

const (
	jobIdle jobState = iota
	jobRunning
	jobResting
	jobHeld
)

// aspect is what a name needs, as far as it can change the outcome of a try.
type aspect struct {
	ino          table.Ino
	gen, attrGen uint64
	base         providers.Version
	baseIno      table.Ino
}

// aspectOf is the present state of a name.
func aspectOf(v *View, l table.Link) aspect {
	rec, _ := v.table.Name(l.Dir, l.Name)
	s := aspect{ino: rec.Ino}
	if n := v.table.Inode(rec.Ino); n != nil {
		s.gen, s.attrGen = n.ContentVersion, n.AttrGen
	}
	if rec.Remote != nil {
		s.base, s.baseIno = rec.Remote.Version, rec.Remote.Ino
	}
	return s
}

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
	if e.backoff.failures >= flaky {
		limit = 1
	}
	var before upload.Order
	e.planner.Begin(deep)
	defer e.planner.End()
	cut := false     // what a name waits for was not searched to its end
	waiting := false // something could begin later
	far := 0         // names in a row that wait for something far away
	v.pending.EachDue(v.View, func(l table.Link) bool {
		if len(e.jobs.running) >= limit {
			waiting = true
			return false
		}
		verdict, s, isCut := e.planner.Plan(v.View, l)
		if far++; !isCut {
			far = 0
		}
		cut = cut || isCut
		if far > farNames && len(e.jobs.running) > 0 {
			waiting = true // what runs comes first: there will be another walk
			return false
		}
		switch verdict {
		case upload.Busy:
			before.Pass(s.Class())
		case upload.Ready:
			waiting = true
			if before.Lets(s.Class(), v.o.Policy.NoWait) && e.jobs.fits(s) {
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
	case cut && !deep && len(e.jobs.running) == 0:
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
			e.backoff.pause(locked, pauseAfter(e.backoff.failures))
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
	t := e.jobs.of[s.Link]
	if t == nil {
		t = &job{link: s.Link}
		e.jobs.of[s.Link] = t
	}
	now := aspectOf(v, s.Link)
	if t.sent.again(); now != t.tried {
		t.sent.best.Store(0) // it is something else that goes
	}
	if now.ino != t.tried.ino || now.gen != t.tried.gen {
		t.losses = 0
	}
	t.op, t.state, t.since, t.tried = s, jobRunning, v.o.Now(), now
	e.jobs.begin(t)
	v.background(func() { e.run(t) })
}

// run does an operation, and what follows from its outcome.
func (e *engine) run(t *job) {
	v := e.v
	w := v.wait(nil, v.o.Patience)
	defer w.close()
	sent := func(n int) {
		if t.sent.by(n) {
			w.moved()
			e.moving()
		}
	}
	err := w.cause(e.exec.Do(w, &upload.Try{Operation: t.op, Unmade: &t.unmade, Sent: sent}))
	if err != nil && v.ctx.Err() == nil && lostRace(err) {
		w.moved()
		err = w.cause(e.yieldTo(w, t, err))
	}
	locked := v.lock()
	e.jobs.end(t)
	e.conclude(locked, t, err)
	refused, left := t.state == jobHeld, e.left(locked, t.op)
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
func (e *engine) conclude(v *View, t *job, err error) {
	now := v.o.Now()
	switch {
	case v.ctx.Err() != nil:
		t.state = jobIdle
		return
	case err == nil:
		e.backoff.reaches(v)
		delete(e.jobs.of, t.link)
		v.doing.advanced(v.pending)
	case errors.Is(err, upload.ErrAgain):
		if t.state = jobIdle; v.Record(t.link).Seq == 0 {
			delete(e.jobs.of, t.link) // theirs has the name now
		}
	case passing(err):
		e.rest(v, t, err)
	default:
		e.backoff.reaches(v)
		t.err, t.state = err, jobHeld
		t.again = now.Add(min(holdFor<<min(t.tries, 4), longestHold))
		if errors.Is(err, providers.ErrConflict) {
			t.again = time.Time{}
		}
		t.tries++
		if t.tried != aspectOf(v, t.link) {
			t.state = jobIdle // that was about another state
		}
	}
	v.pending.NamesChanged(v.View, t.link)
	if t.state == jobHeld && t.op.Dir {
		v.pending.Review(v.View) // what is in it waits in vain
	}
}

// rest has a job tried again in a while.
func (e *engine) rest(v *View, t *job, err error) {
	t.err, t.state = err, jobResting
	d := pauseAfter(t.tries)
	t.tries++
	v.fails(chores.Upload, err)
	e.backoff.failed(v, err)
	v.o.Log.Debug("will try again", "what", t.op.String(), "in", d, "err", err)
	resting := e.backoff.resting
	v.background(func() {
		_ = e.v.pause(resting, d)
		locked := e.v.lock()
		if t.state == jobResting {
			t.state = jobIdle
		}
		locked.unlock()
		e.v.pending.Kick()
	})
	if e.backoff.failures >= flaky && !e.backoff.paused {
		e.backoff.pause(v, pauseAfter(e.backoff.failures-flaky))
	}
}

// errContended is a name that others change faster than we get to it.
var errContended = errors.New("the remote keeps changing; will retry")
