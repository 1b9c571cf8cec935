package cache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// engine makes the backend equal to what is here, one name at a time: it goes
// through the names that differ in the order in which they began to, asks the
// planner what each needs, and runs what may run now. It keeps no log: what is
// still to be done is what still differs, after a crash too.
//
// # Order
//
// Content goes in parallel, with new directories, links and attributes (soft
// operations); deletions go in parallel with each other; a rename goes alone. What
// another host could tell apart stays in order: nothing overtakes an earlier
// rename or deletion, and no rename or deletion overtakes an earlier soft
// change. A rename or deletion waits for content before it only where nobody
// waits for that content (Policy.NoWait): otherwise close has not returned yet,
// and its order is anybody's guess.
//
// A name that fails for now rests, one that fails for good is held, and neither
// holds up any other that does not depend on it.
//
// With a provider that commits whole sets see batch.go instead.
type engine struct {
	v     *Volume
	kick  chan struct{} // somebody wants it to look
	slots chan struct{} // one for each part on its way
	sets  providers.Committer

	// What follows is guarded by the volume's lock.

	jobs    map[table.Link]*job // what was begun and is not done
	busy    map[table.Link]*job // the names of those that run
	inodes  map[table.Ino]*job  // whose content those send or move
	running []*job
	bytes   int64  // that those send
	ops     uint64 // operation ids given

	last     uint64                  // the newest Seq
	due      uint64                  // names up to this Seq are to be sent
	windowed bool                    // a window is open
	flushed  map[table.Ino]uint64    // the state that a program has closed
	overdue  map[table.Ino]struct{}  // what is sent although a program goes on writing it
	unsaved  map[table.Ino]int64     // bytes of content that the backend lacks
	total    int64                   // the sum of unsaved
	waiters  map[*waiter]struct{}    // who waits
	arrival  func()                  // told without the lock when something has arrived
	because  map[table.Link]struct{} // names that differ because of an operation: due with it
	ages     []age                   // when changes began
	writing  map[table.Ino]time.Time // open for writing since

	beat     atomic.Int64          // when we last told who waits that bytes move
	failures int                   // for now, in a row, of any name
	failing  time.Time             // since the first of them
	outage   bool                  // they were told of
	why      error                 // the last of them
	moot     int                   // sets in a row that what they were to send had changed under
	cut      bool                  // a search for what a name waits for ended early: see tooFar
	deep     bool                  // none does
	memo     *memo                 // of the walk under way
	found    map[table.Ino]finding // content that holds a secret
	larger   map[table.Link]string // what was told of files that the provider does not take
	passed   []table.Ino           // of unsettled, kept for its next search
	paused   bool                  // no start before the backend has had a rest
	resting  context.Context       // of pauses after failures
	endRests context.CancelFunc
	looking  bool // no start before more of the tree is known, see massdelete.go
	reached  time.Time

	doing      doing
	requests   []*request   // Commits of sets, in order
	blocked    error        // why nothing is sent
	checked    uint64       // what was due when that was looked at
	cleared    uint64       // deletions up to here were confirmed
	sending    bool         // a set is under way
	stirred    bool         // since it began: what it leaves out may go by now
	old        []table.Link // names with attempts of their own, although sets are sent
	setErr     error        // why the last one failed
	pushing    bool         // in the background
	pushWanted bool         // another is to follow it
	commits    uint64       // to push, that were noted in this run
	lines      uint64       // how often the head left the line of commits that it was on
	pushed     uint64       // commits that there were when the latest push began that has succeeded
	revision   providers.Revision
}

const (
	maxRunning   = 16
	maxBytes     = 256 << 20 // of content in flight, if it is more than one file's
	maxTries     = 4         // changes of one name lost to others in a row
	flaky        = 4         // failures in a row after which the backend gets a rest
	outageAfter  = 10 * time.Second
	holdFor      = 5 * time.Minute
	longestHold  = time.Hour
	housekeeping = 15 * time.Second
)

func (e *engine) init(v *Volume) {
	e.v, e.kick, e.slots = v, make(chan struct{}, 1), make(chan struct{}, partsAtOnce)
	e.jobs, e.busy, e.inodes = map[table.Link]*job{}, map[table.Link]*job{}, map[table.Ino]*job{}
	e.found, e.larger = map[table.Ino]finding{}, map[table.Link]string{}
	e.flushed, e.overdue, e.unsaved = map[table.Ino]uint64{}, map[table.Ino]struct{}{}, map[table.Ino]int64{}
	e.because = map[table.Link]struct{}{}
	e.waiters, e.writing = map[*waiter]struct{}{}, map[table.Ino]time.Time{}
	e.resting, e.endRests = context.WithCancel(v.ctx)
	locked := v.lock()
	defer locked.unlock()
	open := locked.table.Get(keySet) != nil // policy was another when it was begun
	if open || v.o.Policy.Atomic || v.caps.Abilities.Has(providers.AbilitySync) {
		e.sets, _ = providers.As[providers.Committer](v.p)
	}
	e.resume(locked)
}

// resume takes up what the last run left.
func (e *engine) resume(v *View) {
	now := v.o.Now()
	e.reached = now
	v.table.Dirty(0, func(seq uint64, l table.Link) bool {
		e.count(v, l)
		rec, _ := v.table.Name(l.Dir, l.Name)
		if rec.Attempt != nil && rec.Attempt.Kind != attemptSet && e.sets != nil {
			e.old = append(e.old, l)
		}
		if rec.Held != nil {
			t := &job{link: l, state: jobHeld, err: heldError(rec.Held), again: now.Add(holdFor)}
			if rec.Held.Conflict {
				t.again = time.Time{}
			}
			t.tried = e.aspect(v, l)
			e.jobs[l] = t
		}
		e.last = seq
		return true
	})
	if e.last > 0 {
		e.ages = append(e.ages, age{e.last, now})
	}
	if v.o.Policy.Commit == DueChange {
		e.due = e.last // nobody knows how long it has waited
	}
	if rev := v.table.Get(keyRevision); rev != nil {
		e.revision = providers.Revision(rev)
	}
}

// wake has the engine look at what is to be done. It never blocks and needs no
// lock.
func (e *engine) wake() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// loop runs until the volume ends.
func (e *engine) loop() {
	if e.v.o.ReadOnly {
		return
	}
	e.wake()
	tick := time.NewTicker(min(e.v.o.Policy.MaxOpen/4, housekeeping))
	defer tick.Stop()
	for {
		select {
		case <-e.v.ctx.Done():
			return
		case <-tick.C:
			e.tidy()
		case <-e.kick:
		}
		if e.sets != nil {
			e.commitSets()
			continue
		}
		locked := e.v.lock()
		e.walk(locked)
		locked.unlock()
	}
}

// noted follows each change of the table, once it is committed.
func (e *engine) noted(v *Tx) {
	if e.v == nil || len(v.Changed())+len(v.Unnamed()) == 0 {
		return
	}
	for _, ino := range v.Unnamed() {
		e.countInode(v.View, ino)
	}
	before := e.last
	for _, l := range v.Changed() {
		seq := e.count(v.View, l)
		if seq > e.last {
			e.last = seq
			e.aged(v.View, seq)
		}
		if seq > before && v.own { // they may have got their numbers in another order
			e.follows(v.View, l, seq)
		}
		if seq == 0 {
			delete(e.because, l)
		}
		if t := e.jobs[l]; t != nil && t.state == jobHeld && (seq == 0 || t.tried != e.aspect(v.View, l)) {
			delete(e.jobs, l) // another state: it may succeed
		}
	}
	e.open(v.View)
	e.namesChanged(v.View, v.Changed()...)
}

// update is Volume.update for what an operation does.
func (e *engine) update(do func(*Tx) error) error {
	return e.v.update(func(v *Tx) error {
		err := do(v)
		v.own = err == nil
		return err
	})
}

// follows says that a name differs because of an operation: whoever waits for that waits
// for it too.
func (e *engine) follows(v *View, l table.Link, seq uint64) {
	e.because[l] = struct{}{}
	e.wake()
	for c := range e.waiters {
		if len(c.names) > 0 {
			c.names[l] = seq
		}
	}
}

// onArrival has f called, one call at a time, when something has arrived at the
// backend, until stop.
func (e *engine) onArrival(f func()) (stop func()) {
	locked := e.v.lock()
	defer locked.unlock()
	var calls sync.Mutex
	over := false // guarded by calls
	e.arrival = func() {
		calls.Lock()
		defer calls.Unlock()
		if !over {
			f()
		}
	}
	return func() {
		locked := e.v.lock()
		e.arrival = nil
		locked.unlock()
		calls.Lock()
		defer calls.Unlock()
		over = true
	}
}

// tidy does what must be done now and then: files that stay open are taken as
// they are, and what was held for a while may be tried again.
func (e *engine) tidy() {
	for _, ino := range e.lingering() {
		if err := e.v.flushMetadata(ino); err != nil {
			e.v.o.Log.Warn("what a program writes cannot be taken into the table", "ino", ino, "err", err)
			continue
		}
		locked := e.v.lock()
		if n := locked.table.Inode(ino); n != nil {
			if e.isUnsaved(locked, ino) {
				e.flushed[ino], e.overdue[ino] = n.ContentVersion, struct{}{}
				e.open(locked)
				e.wake()
			}
		}
		locked.unlock()
	}
	locked := e.v.lock()
	defer locked.unlock()
	if e.blocked != nil {
		e.checked = 0 // what was to be deleted may be back
	}
	now := e.v.o.Now()
	for l, t := range e.jobs {
		if t.state == jobHeld && !t.again.IsZero() && !now.Before(t.again) {
			t.state = jobIdle
			e.jobs[l] = t
			if e.v.o.Policy.Commit == DueChange {
				e.ask(locked)
			}
		}
	}
}
