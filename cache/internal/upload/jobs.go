package upload

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Job is the work on one name, from the first try to success: under way, resting after a
// failure that may pass, or held back after one that will not. Only Jobs change it, and
// hand it out under a View of the tree.
type Job struct {
	Link  table.Link
	Op    *Operation // the last one
	State State
	Err   error // the last failure
	Since time.Time

	// Unmade is the attempt of a change that was found not to have happened, see Try.
	Unmade table.Attempt
	// Sent is how many bytes of content went. It needs no lock.
	Sent pending.Reach

	tries  int    // failures in a row
	losses int    // of the present state: tries that came too late, in a row
	tried  aspect // the name at that time
	again  time.Time
}

// State is the state of a Job.
type State uint8

// States of a Job.
const (
	Idle    State = iota // it is planned anew
	Running              // its operation is under way
	Resting              // it is tried again after a pause
	Held                 // it is tried again when its name changes, or after a long time
)

const (
	mostBytes   = 256 << 20 // of content under way
	mostOfOne   = 16 << 20  // of them that one file counts for, so that a large one holds up no other
	mostLosses  = 4         // of a name, in a row
	longestHold = time.Hour
)

// HoldFor is how long a name is held back after its first failure.
const HoldFor = 5 * time.Minute

// aspect is the state of a name, as far as it can change the outcome of a try.
type aspect struct {
	ino              table.Ino
	version, attrGen uint64
	base             providers.Version
	baseIno          table.Ino
}

// aspectOf is the present state of a name.
func aspectOf(v *tree.View, l table.Link) aspect {
	rec := v.Record(l)
	s := aspect{ino: rec.Ino}
	if n := v.Inode(rec.Ino); n != nil {
		s.version, s.attrGen = n.ContentVersion, n.AttrGen
	}
	if rec.Remote != nil {
		s.base, s.baseIno = rec.Remote.Version, rec.Remote.Ino
	}
	return s
}

// Jobs are the names that are worked on.
type Jobs struct {
	of      map[table.Link]*Job // begun and not done
	busy    map[table.Link]*Job // the names of those that run
	inodes  map[table.Ino]*Job  // the inodes whose content those send or move
	running []*Job
	bytes   int64 // that those send
}

// NewJobs are none.
func NewJobs() Jobs {
	return Jobs{of: map[table.Link]*Job{}, busy: map[table.Link]*Job{}, inodes: map[table.Ino]*Job{}}
}

// Of is the job of a name, or nil.
func (j *Jobs) Of(_ *tree.View, l table.Link) *Job { return j.of[l] }

// All are all jobs.
func (j *Jobs) All(*tree.View) iter.Seq[*Job] { return maps.Values(j.of) }

// Running are those whose operations are under way.
func (j *Jobs) Running(*tree.View) []*Job { return j.running }

// Busy implements Begun.
func (j *Jobs) Busy(_ *tree.View, l table.Link) *Operation {
	if t := j.busy[l]; t != nil {
		return t.Op
	}
	return nil
}

// IsWaiting implements Begun.
func (j *Jobs) IsWaiting(_ *tree.View, l table.Link) bool {
	t := j.of[l]
	return t != nil && t.State != Idle
}

// Waiting are the names that are not planned now: they are under way, resting or held back.
func (j *Jobs) Waiting(*tree.View) map[table.Link]struct{} {
	names := map[table.Link]struct{}{}
	for l, t := range j.of {
		if t.State != Idle {
			names[l] = struct{}{}
		}
	}
	return names
}

// Fits reports whether an operation may run beside those that run: not at the same place, nor
// where the tree is moving, nor with the same content, nor too much.
func (j *Jobs) Fits(_ *tree.View, s *Operation) bool {
	if s.Sends() && j.bytes+s.weight() > mostBytes {
		return false
	}
	if s.Ino != 0 && j.inodes[s.Ino] != nil {
		return false
	}
	return !slices.ContainsFunc(j.running, func(t *Job) bool { return s.Collides(t.Op) })
}

// weight is how many of mostBytes an operation counts for.
func (s *Operation) weight() int64 { return min(s.Size, mostOfOne) }

// WorksIn reports whether an operation is under way for a name of a directory: then its outcome is
// still to be noted there.
func (j *Jobs) WorksIn(_ *tree.View, dir table.Ino) bool {
	there := func(l table.Link) bool { return l.Dir == dir }
	return slices.ContainsFunc(j.running, func(t *Job) bool { return slices.ContainsFunc(t.Op.Names(), there) })
}

// Begin begins an operation.
func (j *Jobs) Begin(v *tree.View, s *Operation, now time.Time) *Job {
	t := j.of[s.Link]
	if t == nil {
		t = &Job{Link: s.Link}
		j.of[s.Link] = t
	}
	is := aspectOf(v, s.Link)
	if t.Sent.Again(); is != t.tried {
		t.Sent.Forget() // other content goes now
	}
	if is.ino != t.tried.ino || is.version != t.tried.version {
		t.losses = 0
	}
	t.Op, t.State, t.Since, t.tried = s, Running, now, is
	j.running = append(j.running, t)
	j.bytes += s.weight()
	for _, l := range s.Names() {
		j.busy[l] = t
	}
	if s.Ino != 0 {
		j.inodes[s.Ino] = t
	}
	return t
}

// End takes a job from those that run. One of the methods below sets its next state.
func (j *Jobs) End(_ *tree.View, t *Job) {
	j.running = slices.DeleteFunc(j.running, func(other *Job) bool { return other == t })
	j.bytes -= t.Op.weight()
	for _, l := range t.Op.Names() {
		delete(j.busy, l)
	}
	if j.inodes[t.Op.Ino] == t {
		delete(j.inodes, t.Op.Ino)
	}
}

// Done says that the operation was made.
func (j *Jobs) Done(_ *tree.View, t *Job) { delete(j.of, t.Link) }

// Anew has the name planned anew, if its two sides still differ.
func (j *Jobs) Anew(v *tree.View, t *Job) {
	if t.State = Idle; !v.IsDirty(t.Link) {
		delete(j.of, t.Link)
	}
}

// BreakOff lets go of a job at the end of a run: its name can be planned again.
func (j *Jobs) BreakOff(_ *tree.View, t *Job) { t.State = Idle }

// Rest has a job rest after a failure that may pass, until Wake. It returns the number of failures
// before, from which the caller computes the pause.
func (j *Jobs) Rest(_ *tree.View, t *Job, err error) (failures int) {
	t.Err, t.State = err, Resting
	t.tries++
	return t.tries - 1
}

// Wake ends a rest.
func (j *Jobs) Wake(_ *tree.View, t *Job) {
	if t.State == Resting {
		t.State = Idle
	}
}

// Refuse holds a name back after a failure that will not pass by itself: until the name
// changes, and but for conflicts for some minutes only, each time longer. If it has changed
// already, it is planned anew.
func (j *Jobs) Refuse(v *tree.View, t *Job, err error, now time.Time) {
	t.Err, t.State = err, Held
	t.again = now.Add(min(HoldFor<<min(t.tries, 4), longestHold))
	if errors.Is(err, providers.ErrConflict) {
		t.again = time.Time{}
	}
	t.tries++
	if t.tried != aspectOf(v, t.Link) {
		t.State = Idle // that was about another state
	}
}

// Hold holds a name back that was not tried, until it changes; with retry it is tried after
// some minutes too.
func (j *Jobs) Hold(v *tree.View, l table.Link, err error, now time.Time, retry bool) *Job {
	t := &Job{Link: l, Op: &Operation{Verb: VerbWrite, Link: l}, State: Held, Err: err, tried: aspectOf(v, l)}
	if retry {
		t.again = now.Add(HoldFor)
	}
	j.of[l] = t
	return t
}

// IsHeld reports whether a job is the one for which its name is held back now.
func (j *Jobs) IsHeld(_ *tree.View, t *Job) bool { return j.of[t.Link] == t && t.State == Held }

// Lose notes that a try came too late, and reports whether that was so too often in a row: others
// change the name faster than it can be sent.
func (j *Jobs) Lose(_ *tree.View, t *Job) (tooOften bool) {
	t.losses++
	return t.losses > mostLosses
}

// Changed ends the holding back of names that changed: they may succeed in another state.
func (j *Jobs) Changed(v *tree.View, names []table.Link) {
	for _, l := range names {
		if t := j.of[l]; t != nil && t.State == Held && (!v.IsDirty(l) || t.tried != aspectOf(v, l)) {
			delete(j.of, l)
		}
	}
}

// TryAgain has names tried again that were held back for long enough, and reports whether
// there are any.
func (j *Jobs) TryAgain(_ *tree.View, now time.Time) (any bool) {
	for _, t := range j.of {
		if t.State == Held && !t.again.IsZero() && !now.Before(t.again) {
			t.State, any = Idle, true
		}
	}
	return any
}

// Forgive has a name that is held back tried again, and the directories above it.
func (j *Jobs) Forgive(v *tree.View, l table.Link) {
	for ok := true; ok; l, ok = above(v, l) {
		if t := j.of[l]; t != nil && t.State == Held {
			t.State, t.Err, t.losses = Idle, nil, 0
		}
	}
}

// ForgiveAll has all names that are held back tried again.
func (j *Jobs) ForgiveAll(v *tree.View) {
	for l := range j.of {
		j.Forgive(v, l)
	}
}

// Failure is the reason why a name that was tried is not sent: its own failure, or that of a
// directory above that the remote does not have yet. final says that trying again will not help.
func (j *Jobs) Failure(v *tree.View, l table.Link) (err error, final bool) { // the error is the subject here
	for ok := true; ok; l, ok = above(v, l) {
		if t := j.of[l]; t != nil && t.Err != nil && (t.State == Held || t.State == Resting) {
			return t.Err, t.State == Held
		}
	}
	return nil, false
}

// above is the name of the directory of a name, which the remote does not have yet; ok is
// false when it has, or there is none.
func above(v *tree.View, l table.Link) (up table.Link, ok bool) {
	dir := v.Inode(l.Dir)
	if l.Dir == table.Root || dir == nil || len(dir.RemoteLinks) > 0 || len(dir.Links) == 0 {
		return table.Link{}, false
	}
	return dir.Links[0], true
}

// IsStalled reports whether no job runs, and none rests that would run again. cause is the failure
// of a name that is held back, if there is one.
func (j *Jobs) IsStalled(*tree.View) (stalled bool, cause error) {
	if len(j.running) > 0 {
		return false, nil
	}
	for _, t := range j.of {
		switch {
		case t.State == Resting:
			return false, nil
		case t.State == Held && cause == nil:
			cause = t.Err
		}
	}
	return true, cause
}

// StandsAside reports whether a name without a local inode is one under which another working copy
// has parked an entry, or had when it was killed: that is hidden from programs too.
func (j *Jobs) StandsAside(_ *tree.View, l table.Link, rec table.Name) bool {
	return l.Dir == table.Root && strings.HasPrefix(l.Name, Parked) && rec.Ino == 0 && rec.Remote == nil && j.of[l] == nil
}
