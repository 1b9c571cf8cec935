package upload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Host is the working copy that a Sender works for. Pauses and operations end with it.
type Host interface {
	// Go runs f in the background. The end of the working copy waits for it.
	Go(f func())
	// Pause waits for so long, or until ctx ends.
	Pause(ctx context.Context, d time.Duration)
	// Patiently runs do with a context that ends when no progress was made for too long, and says
	// so in place of do's error then.
	Patiently(do func(ctx context.Context, moved func()) error) error
	// Abandon forgets directories without a name, if they are not in use any more.
	Abandon(dirs []table.Ino)
}

// Judge makes the decisions that a Sender must not make.
type Judge interface {
	// MayBegin reports whether due names may be sent at all. When that changes the queue is to be
	// kicked.
	MayBegin(v *tree.View) bool
	// PreconditionFailed decides about a name whose operation lost to another change, by the
	// conflict policy. nil says that the name is to be planned anew.
	PreconditionFailed(ctx context.Context, l table.Link, cause error) error
	// Refused is told of a job whose name is held back from now on.
	Refused(t *Job)
}

// Monitor is told of progress and failures.
type Monitor interface {
	// Advanced says that the remote took a change.
	Advanced(*tree.View)
	// Moving says that bytes of content are moving.
	Moving()
	// Ended says that a change was taken or refused (nil), or failed and may succeed later.
	Ended(v *tree.View, err error)
}

// SenderOptions are the parts that a Sender works with.
type SenderOptions struct {
	Tree     *tree.Tree
	Queue    *pending.Queue
	Executor *Executor
	Host     Host
	Judge    Judge
	Monitor  Monitor
	Context  context.Context // ends with the working copy
	Now      func() time.Time
	NoWait   bool // no program waits for content to be sent
	Log      *slog.Logger
}

// Sender sends due changes name by name: it goes through the dirty names by seq, asks the planner
// for the next operation of each, and runs those that may run now.
//
// # Order
//
// Content goes in parallel, with new directories, links and attributes (soft operations);
// deletions go in parallel with each other; a rename goes alone. Changes whose order another host
// could observe stay in order: nothing overtakes an earlier rename or deletion, and no rename or
// deletion overtakes an earlier soft change. A rename or deletion waits for content before it only
// where no program waits for that content (SenderOptions.NoWait): otherwise close has not returned
// yet, and its order is undefined.
//
// A name that fails for now rests, one that fails for good is held back, and neither holds up
// names that do not depend on it.
type Sender struct {
	o        SenderOptions
	jobs     Jobs
	planner  *Planner
	backoff  Backoff
	paused   bool            // nothing begins before the remote has had a rest
	resting  context.Context // of pauses after failures
	endRests context.CancelFunc
}

// MostRunning is how many operations run at a time.
const MostRunning = 16

// farNames is how many names in a row a walk passes whose wait has a far cause, as in the removal
// of a deep tree, while operations run.
const farNames = 16

// errContended is a name that others change faster than it can be sent.
var errContended = errors.New("the remote keeps changing; will retry")

// NewSender makes one that has begun nothing.
func NewSender(o SenderOptions) *Sender {
	s := &Sender{o: o, jobs: NewJobs(), backoff: NewBackoff(o.Now())}
	s.planner = NewPlanner(Options{Capabilities: o.Executor.caps, Jobs: &s.jobs, IsOpen: o.Queue.IsOpen, NewID: o.Executor.o.NewID})
	s.resting, s.endRests = context.WithCancel(o.Context)
	return s
}

// Jobs are the names that are worked on.
func (s *Sender) Jobs() *Jobs { return &s.jobs }

// Backoff counts the failures of the remote.
func (s *Sender) Backoff() *Backoff { return &s.backoff }

// Look begins the operations that may run now.
func (s *Sender) Look(v *tree.View) { s.walk(v, false) }

// Resolve begins to resolve the outcome of an attempt at a name, if that may run now, and no other
// operation.
func (s *Sender) Resolve(v *tree.View, l table.Link) {
	verdict, op, _ := s.planner.Plan(v, l)
	if verdict == Ready && op.Verb == VerbResolve && s.jobs.Fits(v, op) {
		s.begin(v, op)
	}
}

// walk is Look, see Planner.Begin for deep.
func (s *Sender) walk(v *tree.View, deep bool) {
	if s.paused || !s.o.Judge.MayBegin(v) {
		return
	}
	limit := MostRunning
	if s.backoff.IsFlaky(v) {
		limit = 1
	}
	var before Order
	s.planner.Begin(v, deep)
	defer s.planner.End(v)
	cut := false     // a search for the cause of a wait ended early
	waiting := false // an operation could begin later
	far := 0         // names in a row whose wait has a far cause
	s.o.Queue.EachDue(v, func(l table.Link) bool {
		if len(s.jobs.Running(v)) >= limit {
			waiting = true
			return false
		}
		verdict, op, isCut := s.planner.Plan(v, l)
		if far++; !isCut {
			far = 0
		}
		cut = cut || isCut
		if far > farNames && len(s.jobs.Running(v)) > 0 {
			waiting = true // running operations come first: there will be another walk
			return false
		}
		switch verdict {
		case Busy:
			before.Pass(op.Class())
		case Ready:
			waiting = true
			if before.Lets(op.Class(), s.o.NoWait) && s.jobs.Fits(v, op) {
				s.begin(v, op)
			} else if before.Ends(op.Class()) {
				return false
			}
			before.Pass(op.Class())
		}
		return !before.IsMoving()
	})
	switch {
	case waiting:
	case cut && !deep && len(s.jobs.Running(v)) == 0:
		s.walk(v, true)
	default:
		s.Stalled(v)
	}
}

// Stalled ends all waiting when no job runs, rests, or could begin: the names left wait for one
// that is held back.
func (s *Sender) Stalled(v *tree.View) {
	if s.o.Queue.Waiting(v) == 0 || s.paused {
		return
	}
	if stalled, cause := s.jobs.IsStalled(v); stalled {
		s.o.Queue.Stall(v, cause)
	}
}

// begin has an operation run in the background.
func (s *Sender) begin(v *tree.View, op *Operation) {
	t := s.jobs.Begin(v, op, s.o.Now())
	s.o.Host.Go(func() { s.run(t) })
}

// run makes an operation, and acts on its outcome. It is called without the lock.
func (s *Sender) run(t *Job) {
	err := s.o.Host.Patiently(func(ctx context.Context, moved func()) error {
		sent := func(n int) {
			if t.Sent.By(n) {
				moved()
				s.o.Monitor.Moving()
			}
		}
		err := s.o.Executor.Do(ctx, &Try{Operation: t.Op, Unmade: &t.Unmade, Sent: sent})
		if err == nil || ctx.Err() != nil || !s.o.Executor.isLost(err) {
			return err
		}
		moved()
		return s.yield(ctx, t, err)
	})
	v := s.o.Tree.Lock()
	s.jobs.End(v, t)
	s.conclude(v, t, err)
	refused, dirs := t.State == Held, leftBehind(v, t.Op)
	s.o.Tree.Unlock()
	if len(dirs) > 0 {
		s.o.Host.Abandon(dirs)
	}
	if err == nil {
		s.o.Queue.Arrived()
	}
	if refused {
		s.o.Judge.Refused(t)
	}
	s.o.Queue.Kick()
}

// leftBehind are the directories of an operation that waited for its end to be forgotten.
func leftBehind(v *tree.View, op *Operation) (dirs []table.Ino) {
	for _, l := range op.Names() {
		if v.IsNowhere(l.Dir) && v.IsForsaken(l.Dir) {
			dirs = append(dirs, l.Dir)
		}
	}
	return dirs
}

// yield deals with an operation that lost to another change.
func (s *Sender) yield(ctx context.Context, t *Job, cause error) error {
	v := s.o.Tree.Lock()
	tooOften, sides := s.jobs.Lose(v, t), ""
	if tooOften {
		sides = t.Op.Sides(v)
	}
	s.o.Tree.Unlock()
	if tooOften {
		s.o.Log.Warn("a change keeps being overtaken by others", "change", t.Op.String(), "names", sides)
		return fmt.Errorf("%w: %v", errContended, cause) // no decision needed: retried later
	}
	if t.Op.Verb == VerbDelete && errors.Is(cause, providers.ErrNotEmpty) {
		return s.o.Executor.Resurrect(t.Op.Link, cause)
	}
	for _, l := range t.Op.Lost(cause) {
		if err := s.o.Judge.PreconditionFailed(ctx, l, cause); err != nil {
			return err
		}
	}
	return ErrAgain
}

// conclude sets the next state of a job.
func (s *Sender) conclude(v *tree.View, t *Job, err error) {
	switch {
	case s.o.Context.Err() != nil:
		s.jobs.BreakOff(v, t)
		return
	case err == nil:
		s.Reached(v)
		s.jobs.Done(v, t)
		s.o.Monitor.Advanced(v)
	case errors.Is(err, ErrAgain):
		s.jobs.Anew(v, t)
	case s.o.Executor.o.Passes(err):
		s.rest(v, t, err)
	default:
		if !isOurs(err) {
			s.Reached(v)
		}
		s.jobs.Refuse(v, t, err, s.o.Now())
	}
	s.o.Queue.NamesChanged(v, t.Link)
	if t.State == Held && t.Op.Dir {
		s.o.Queue.Review(v) // names in it wait in vain
	}
}

// isOurs reports whether a refusal may have come about without the remote: it does not show that
// the remote answers again.
func isOurs(err error) bool {
	return errors.Is(err, ErrSuspect) || errors.Is(err, providers.ErrTooLarge)
}

// rest has a job tried again in a while.
func (s *Sender) rest(v *tree.View, t *Job, err error) {
	d := PauseAfter(s.jobs.Rest(v, t, err))
	s.o.Monitor.Ended(v, err)
	s.Failed(v, err)
	s.o.Log.Debug("will try again", "what", t.Op.String(), "in", d, "err", err)
	s.after(v, d, func(v *tree.View) { s.jobs.Wake(v, t) })
	if s.backoff.IsFlaky(v) && !s.paused {
		s.Pause(v, PauseAfter(s.backoff.Rests(v)))
	}
}

// after runs f when a time is over, or the pauses after failures end, and has the names looked at
// then.
func (s *Sender) after(_ *tree.View, d time.Duration, f func(*tree.View)) {
	resting := s.resting
	s.o.Host.Go(func() {
		s.o.Host.Pause(resting, d)
		f(s.o.Tree.Lock())
		s.o.Tree.Unlock()
		s.o.Queue.Kick()
	})
}

// IsPaused reports whether no operation begins for now.
func (s *Sender) IsPaused(*tree.View) bool { return s.paused }

// Pause gives the remote a rest.
func (s *Sender) Pause(v *tree.View, d time.Duration) {
	s.paused = true
	s.after(v, d, func(*tree.View) { s.paused = false })
}

// Rouse ends the pauses after failures. It is for the end of an outage, and for a commit: if any
// success did this, a name that fails for a reason of its own would be tried all the time.
func (s *Sender) Rouse(*tree.View) {
	s.endRests()
	s.resting, s.endRests = context.WithCancel(s.o.Context)
}

// Reached notes that the remote answered a change.
func (s *Sender) Reached(v *tree.View) {
	if s.backoff.IsFlaky(v) {
		s.Rouse(v)
	}
	if outage, told := s.backoff.Reached(v, s.o.Now()); told {
		s.o.Log.Info("the remote accepts changes again", "after", outage.Round(time.Second))
	}
	s.o.Monitor.Ended(v, nil)
}

// Failed counts a failure that may pass. An outage is told once.
func (s *Sender) Failed(v *tree.View, err error) {
	if s.backoff.Failed(v, err, s.o.Now()) {
		s.o.Log.Warn("the remote accepts no changes: they are kept and retried", "err", err)
	}
}

// IsPlaceKnown reports whether the place of an inode at the remote is known.
func (s *Sender) IsPlaceKnown(v *tree.View, ino table.Ino) bool {
	n := v.Inode(ino)
	if n == nil {
		return true
	}
	for _, h := range n.RemoteLinks {
		if rec := v.Record(h); rec.Attempt != nil || v.Attempted(rec, nil) {
			return false
		}
		if _, moving := s.planner.Unsettled(v, h.Dir); moving != (table.Link{}) {
			return false
		}
	}
	return true
}

// Pauses between tries, which double.
const (
	FirstPause   = 50 * time.Millisecond
	LongestPause = 15 * time.Second
)

// PauseAfter is the pause after so many failures, with jitter.
func PauseAfter(failures int) time.Duration { return PauseUpTo(LongestPause, failures) }

// PauseUpTo is PauseAfter for pauses of at most so long.
func PauseUpTo(most time.Duration, failures int) time.Duration {
	d := min(FirstPause<<min(failures, 20), most)
	return d/2 + rand.N(d/2)
}
