package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// task is the work on one name, from the first try to success: under way,
// resting after a failure that may pass, or held after one that will not. mu
// guards it.
type task struct {
	link  table.Link
	step  *step
	state taskState

	tries  int    // failures in a row
	losses int    // of what is here now: tries that were too late, in a row
	err    error  // the last failure
	tried  aspect // the name as it was then
	since  time.Time
	again  time.Time // held: when it is tried again; zero: when the name changes

	// op is the operation of a change that was found not to have happened: if
	// it is made again, it has the same id, so that neither harms the other.
	op table.Attempt

	sent reach // bytes of content
}

type taskState uint8

const (
	taskIdle taskState = iota
	taskRunning
	taskResting
	taskHeld
)

// aspect is what a name needs, as far as it can change the outcome of a try.
type aspect struct {
	ino          table.Ino
	gen, attrGen uint64
	base         providers.Version
	baseIno      table.Ino
}

// aspect is the present state of a name. mu is held.
func (e *engine) aspect(l table.Link) aspect {
	rec, _ := e.v.table.Name(l.Dir, l.Name)
	s := aspect{ino: rec.Ino}
	if n := e.v.table.Inode(rec.Ino); n != nil {
		s.gen, s.attrGen = n.Gen, n.AttrGen
	}
	if rec.Base != nil {
		s.base, s.baseIno = rec.Base.Version, rec.Base.Ino
	}
	return s
}

// walk starts what may run now. mu is held.
func (e *engine) walk() {
	if e.paused || e.looking || e.v.closed {
		return
	}
	err := e.checkHalt()
	if unseen := (*unseenError)(nil); errors.As(err, &unseen) {
		e.lookInto(unseen.dirs)
		return
	}
	if e.halt = err; err != nil {
		e.settleAll()
		return
	}
	limit := maxRunning
	if e.failures >= flaky {
		limit = 1
	}
	var before order
	e.cut = false
	e.memo = newMemo()
	defer func() { e.memo = nil }()
	waiting := false // something could begin later
	far := 0         // names in a row that wait for something far away
	e.v.table.Dirty(0, func(seq uint64, l table.Link) bool {
		if len(e.running) >= limit {
			waiting = true
			return false
		}
		if seq > e.due && len(e.because) == 0 {
			return false
		}
		if _, follows := e.because[l]; seq > e.due && !follows {
			return true
		}
		cut := e.cut
		e.cut = false
		verdict, s := e.plan(l, nil)
		if far++; !e.cut {
			far = 0
		}
		e.cut = e.cut || cut
		if far > farNames && len(e.running) > 0 {
			waiting = true // what runs comes first: there will be another walk
			return false
		}
		switch verdict {
		case verdictBusy:
			before.pass(s.class())
		case verdictReady:
			waiting = true
			if before.lets(s.class(), e.v.o.Policy.NoWait) && e.fits(s) {
				e.start(s)
			} else if before.ends(s.class()) {
				return false
			}
			before.pass(s.class())
		}
		return !before.moving
	})
	switch {
	case waiting:
	case e.cut && !e.deep && len(e.running) == 0:
		e.deep = true
		e.walk()
		e.deep = false
	default:
		e.stalled()
	}
}

// lookInto makes directories known before anything is started. mu is held.
func (e *engine) lookInto(dirs []table.Ino) {
	e.looking = true
	e.v.background(func() {
		err := e.v.lookInto(e.v.ctx, dirs)
		e.v.mu.Lock()
		e.looking = false
		if err != nil {
			e.v.fails(chores.Upload, err)
			e.failed(err)
			e.pause(pauseAfter(e.failures))
		}
		e.v.mu.Unlock()
		e.wake()
	})
}

// farNames is how many names in a row a walk passes that wait for something far
// away, as in the removal of a deep tree, while there is something that runs.
const farNames = 16

// order is what a walk has passed that is not done yet.
type order struct{ moving, deleting, soft, content bool }

// class says with what a step may run at the same time.
type class uint8

const (
	classContent class = iota
	classSoft
	classDelete
	classMove
)

func (o *order) pass(c class) {
	switch c {
	case classContent:
		o.content = true
	case classSoft:
		o.soft = true
	case classDelete:
		o.deleting = true
	case classMove:
		o.moving = true
	}
}

// lets reports whether a step may begin beside what was passed.
func (o *order) lets(c class, inOrder bool) bool {
	switch c {
	case classContent, classSoft:
		return !o.moving && !o.deleting
	case classDelete:
		return !o.moving && !o.soft && !(inOrder && o.content)
	}
	return !o.moving && !o.deleting && !o.soft && !(inOrder && o.content)
}

// ends reports that nothing behind a step of this class, which may not begin,
// may begin either.
func (o *order) ends(c class) bool {
	return c == classMove || c != classDelete && o.deleting
}

// fits reports whether a step may run beside those that run: not at the same
// place, nor where the tree is moving, nor with the same content, nor too much.
func (e *engine) fits(s *step) bool {
	if s.sends() && len(e.running) > 0 && e.bytes+s.size > maxBytes && e.bytes > 0 {
		return false
	}
	if s.ino != 0 && e.inodes[s.ino] != nil {
		return false
	}
	for _, t := range e.running {
		if s.collides(t.step) {
			return false
		}
	}
	return true
}

// start runs a step in the background. mu is held.
func (e *engine) start(s *step) {
	t := e.tasks[s.link]
	if t == nil {
		t = &task{link: s.link}
		e.tasks[s.link] = t
	}
	now := e.aspect(s.link)
	if t.sent.again(); now != t.tried {
		t.sent.best.Store(0) // it is something else that goes
	}
	if now.ino != t.tried.ino || now.gen != t.tried.gen {
		t.losses = 0
	}
	t.step, t.state, t.since, t.tried = s, taskRunning, e.v.o.Now(), now
	s.task = t
	e.running = append(e.running, t)
	e.bytes += s.size
	for _, l := range s.names() {
		e.busy[l] = t
	}
	if s.ino != 0 {
		e.inodes[s.ino] = t
	}
	e.v.background(func() { e.run(t) })
}

// run does a step, and what follows from its outcome.
func (e *engine) run(t *task) {
	v := e.v
	w := v.wait(nil, v.o.Patience)
	defer w.close()
	t.step.moved = w.moved
	err := w.cause(e.do(w, t.step))
	if err != nil && v.ctx.Err() == nil && lostRace(err) {
		w.moved()
		err = w.cause(e.yieldTo(w, t, err))
	}
	v.mu.Lock()
	e.stop(t)
	e.conclude(t, err)
	refused, arrival, left := t.state == taskHeld, e.arrival, e.left(t.step)
	v.mu.Unlock()
	for _, dir := range left {
		v.abandon(dir)
	}
	if err == nil && arrival != nil {
		arrival()
	}
	if refused {
		e.hold(t)
	}
	e.wake()
}

// stop takes a task from those that run. mu is held.
func (e *engine) stop(t *task) {
	e.running = slices.DeleteFunc(e.running, func(other *task) bool { return other == t })
	e.bytes -= t.step.size
	for _, l := range t.step.names() {
		delete(e.busy, l)
	}
	if e.inodes[t.step.ino] == t {
		delete(e.inodes, t.step.ino)
	}
}

// conclude decides what becomes of a task. mu is held.
func (e *engine) conclude(t *task, err error) {
	now := e.v.o.Now()
	switch {
	case e.v.ctx.Err() != nil:
		t.state = taskIdle
		return
	case err == nil:
		e.reaches()
		delete(e.tasks, t.link)
		e.advanced()
	case errors.Is(err, errAgain):
		if t.state = taskIdle; e.record(t.link).Seq == 0 {
			delete(e.tasks, t.link) // theirs has the name now
		}
	case passing(err):
		e.rest(t, err)
	default:
		e.reaches()
		t.err, t.state = err, taskHeld
		t.again = now.Add(min(holdFor<<min(t.tries, 4), longestHold))
		if errors.Is(err, providers.ErrConflict) {
			t.again = time.Time{}
		}
		t.tries++
		if t.tried != e.aspect(t.link) {
			t.state = taskIdle // that was about another state
		}
	}
	e.settle(t.link)
	if t.state == taskHeld && t.step.dir {
		e.settleAll() // what is in it waits in vain
	}
}

// rest has a task tried again in a while. mu is held.
func (e *engine) rest(t *task, err error) {
	t.err, t.state = err, taskResting
	d := pauseAfter(t.tries)
	t.tries++
	e.v.fails(chores.Upload, err)
	e.failed(err)
	e.v.o.Log.Debug("will try again", "what", t.step.String(), "in", d, "err", err)
	resting := e.resting
	e.v.background(func() {
		_ = e.v.pause(resting, d)
		e.v.mu.Lock()
		if t.state == taskResting {
			t.state = taskIdle
		}
		e.v.mu.Unlock()
		e.wake()
	})
	if e.failures >= flaky && !e.paused {
		e.pause(pauseAfter(e.failures - flaky))
	}
}

// pause gives the backend a rest. mu is held.
func (e *engine) pause(d time.Duration) {
	e.paused = true
	resting := e.resting
	e.v.background(func() {
		_ = e.v.pause(resting, d)
		e.v.mu.Lock()
		e.paused = false
		e.v.mu.Unlock()
		e.wake()
	})
}

// reaches notes that the backend answered a change. mu is held.
func (e *engine) reaches() {
	if e.failures >= flaky {
		e.rouse()
	}
	if e.outage {
		e.v.o.Log.Info("the backend takes changes again", "after", e.v.o.Now().Sub(e.failing).Round(time.Second))
	}
	e.failures, e.outage, e.reached = 0, false, e.v.o.Now()
	e.v.fails(chores.Upload, nil)
}

// failed counts a failure that may pass. An outage is told once. mu is held.
func (e *engine) failed(err error) {
	if e.failures == 0 {
		e.failing = e.v.o.Now()
	}
	e.failures++
	e.why = err
	if long := e.v.o.Now().Sub(e.failing) > outageAfter; !e.outage && (long || e.failures >= flaky) {
		e.outage = true
		e.v.o.Log.Warn("the backend takes no changes: they wait here, and are tried again", "err", err)
	}
}

// rouse ends the pauses after failures. It is for the end of an outage, and for who
// asks: what fails for a reason of its own would be tried all the time, if any
// success did this. mu is held.
func (e *engine) rouse() {
	e.endRests()
	e.resting, e.endRests = context.WithCancel(e.v.ctx)
}

// pauseAfter is how long to wait after so many failures, with jitter.
func pauseAfter(failures int) time.Duration {
	d := min(firstPause<<min(failures, 20), longest)
	return d/2 + rand.N(d/2)
}

// hold records why a name is held back, and tells. By now the task may have been
// asked for again, or run: then there is nothing to record yet.
func (e *engine) hold(t *task) {
	v := e.v
	var what, path string
	var cause error
	told := false
	err := e.update(func() error {
		rec, ok := v.table.Name(t.link.Dir, t.link.Name)
		if !ok || rec.Seq == 0 || e.tasks[t.link] != t || t.state != taskHeld {
			return errMoot
		}
		what, path, cause = t.step.verb.String(), e.v.pathFor(t.link), t.err
		conflict := errors.Is(cause, providers.ErrConflict)
		if rec.Held != nil && rec.Held.Conflict && conflict {
			return nil // who decided that wrote it down
		}
		if toldAgain(rec, cause) {
			return errMoot
		}
		rec.Held = &table.Held{Reason: cause.Error(), Conflict: conflict}
		v.table.SetName(t.link.Dir, t.link.Name, rec)
		told = e.toldBefore(t.link, cause)
		return nil
	})
	if err == nil && !told {
		v.report(what, path, cause)
	}
}

var (
	// errMoot ends an update that has nothing to do any more.
	errMoot = errors.New("moot")
	// errAgain has a name planned anew at once.
	errAgain = errors.New("look again")
	// errContended is a name that others change faster than we get to it.
	errContended = errors.New("changed there again and again")
)

// lostRace reports whether another change was there first.
func lostRace(err error) bool {
	for _, kind := range []error{providers.ErrConflict, providers.ErrExist, providers.ErrNotExist,
		providers.ErrNotDir, providers.ErrIsDir, providers.ErrNotEmpty} {
		if errors.Is(err, kind) {
			return !passing(err)
		}
	}
	return false
}

// yieldTo has the conflict policy decide about a change that came too late.
func (e *engine) yieldTo(ctx context.Context, t *task, cause error) error {
	t.losses++
	if t.losses > maxTries {
		e.v.o.Log.Warn("a change was too late again and again", "change", t.step.String(), "names", e.v.sides(t.step.names()))
		return fmt.Errorf("%w: %v", errContended, cause) // nobody need decide: it is tried again later
	}
	if t.step.verb == verbDelete && errors.Is(cause, providers.ErrNotEmpty) {
		return e.revive(t.step.link, cause)
	}
	for _, l := range t.step.lost(cause) {
		if err := e.v.lost(ctx, l, cause); err != nil {
			return err
		}
	}
	return errAgain
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

// heldError is the error of a name that was held in another run.
func heldError(h *table.Held) error {
	if h.Conflict {
		return fmt.Errorf("%w: %s", providers.ErrConflict, h.Reason)
	}
	return errors.New(h.Reason)
}
