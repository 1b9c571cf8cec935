package cache

import (
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
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
// With a provider that commits whole sets see commit_sets.go instead.
type engine struct {
	v    *Volume
	exec *upload.Executor
	beat atomic.Int64 // when it last told that bytes move

	// What follows is guarded by the volume's lock.

	jobs    upload.Jobs
	planner *upload.Planner
	backoff backoff
	halt    commitHalt
	looking bool                  // no start before more of the tree is known, see massdelete.go
	larger  map[table.Link]string // what was told of files that the provider does not take
}

const (
	maxRunning   = 16
	maxTries     = 4 // changes of one name lost to others in a row
	housekeeping = 15 * time.Second
)

func (e *engine) init(v *Volume) {
	e.v = v
	e.jobs = upload.NewJobs()
	e.planner = upload.NewPlanner(upload.Options{Capabilities: v.caps, Jobs: &e.jobs, IsOpen: v.pending.IsOpen, NewID: v.held.operations.Next})
	e.larger = map[table.Link]string{}
	e.backoff = newBackoff(v)
	locked := v.lock()
	defer locked.unlock()
	open := locked.table.Get(keySet) != nil // policy was another when it was begun
	if open || v.o.Policy.Atomic || v.caps.Abilities.Has(providers.AbilitySync) {
		if remote, can := providers.As[providers.Committer](v.p); can {
			v.sets = &setCommitter{v: v, remote: remote, found: map[table.Ino]finding{}}
			v.committer = v.sets
		}
	}
	e.resume(locked)
}

// resume takes up what the last run left.
func (e *engine) resume(v *View) {
	now := v.o.Now()
	v.pending.Resume(v.View, func(l table.Link, rec table.Name) {
		if rec.Attempt != nil && rec.Attempt.Kind != upload.AttemptSet && v.sets != nil {
			v.sets.old = append(v.sets.old, l)
		}
		if rec.Held != nil {
			e.jobs.Hold(v.View, l, heldError(rec.Held), now, !rec.Held.Conflict)
		}
	})
	if rev := v.table.Get(keyRevision); rev != nil {
		v.pushes.revision = providers.Revision(rev)
	}
}

// loop runs until the volume ends.
func (e *engine) loop() {
	if e.v.o.ReadOnly {
		return
	}
	e.v.pending.Kick()
	tick := time.NewTicker(min(e.v.o.Policy.MaxOpen/4, housekeeping))
	defer tick.Stop()
	for {
		select {
		case <-e.v.ctx.Done():
			return
		case <-tick.C:
			e.tidy()
		case <-e.v.pending.Kicked():
		}
		e.v.committer.look()
	}
}

// look implements committer.
func (e *engine) look() {
	locked := e.v.lock()
	defer locked.unlock()
	e.walk(locked, false)
}

// tidy does what must be done now and then: files that stay open are taken as
// they are, and what was held for a while may be tried again.
func (e *engine) tidy() {
	locked := e.v.lock()
	lingering := e.v.pending.Lingering()
	locked.unlock()
	for _, ino := range lingering {
		if err := e.v.opener.FlushIfOpen(ino); err != nil {
			e.v.o.Log.Warn("what a program writes cannot be taken into the table", "ino", ino, "err", err)
			continue
		}
		locked := e.v.lock()
		if n := locked.table.Inode(ino); n != nil && e.v.pending.IsUnsaved(ino) {
			e.v.pending.SendOpen(ino, n)
			e.v.pending.Open()
			e.v.pending.Kick()
		}
		locked.unlock()
	}
	locked = e.v.lock()
	defer locked.unlock()
	if e.halt.err != nil {
		e.halt.checked = 0 // what was to be deleted may be back
	}
	if e.jobs.TryAgain(e.v.o.Now()) && e.v.o.Policy.Commit == DueChange {
		e.v.pending.Ask()
	}
}
