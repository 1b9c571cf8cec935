package cache

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// engine sends what differs name by name: it has an upload.Sender do that, and decides what
// that must not. With a provider that commits whole sets a commit.Committer sends instead.
type engine struct {
	v    *Volume
	exec *upload.Executor
	send *upload.Sender
	beat atomic.Int64 // when it last told that bytes move

	// What follows is guarded by the volume's lock.

	halt    commitHalt
	looking bool                  // no start before more of the tree is known, see massdelete.go
	larger  map[table.Link]string // what was told of files that the provider does not take
}

const (
	maxTries     = 4 // changes lost to others in a row
	housekeeping = 15 * time.Second
)

func (e *engine) init(v *Volume) {
	e.v = v
	e.larger = map[table.Link]string{}
	locked := v.lock()
	defer locked.unlock()
	open := commit.IsUnresolved(locked.View) // policy was another when it was begun
	if open || v.o.Policy.Atomic || v.caps.Abilities.Has(providers.AbilitySync) {
		if remote, can := providers.As[providers.Committer](v.p); can {
			v.sets = newSetCommitter(v, remote)
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
			v.sets.TakeUp(l)
		}
		if rec.Held != nil {
			e.send.Jobs().Hold(v.View, l, heldError(rec.Held), now, !rec.Held.Conflict)
		}
	})
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
		locked := e.v.lock()
		e.v.committer.Look(locked.View)
		locked.unlock()
	}
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
	if e.send.Jobs().TryAgain(e.v.o.Now()) && e.v.o.Policy.Commit == DueChange {
		e.v.pending.Ask()
	}
}

// mayBegin reports whether anything may be sent that is due. What is not known well enough
// to say so is found out.
func (e *engine) mayBegin(v *View) bool {
	if e.looking || v.closed {
		return false
	}
	err := e.halt.check(v)
	if unseen := (*massdelete.UnseenError)(nil); errors.As(err, &unseen) {
		e.lookInto(v, unseen.Dirs)
		return false
	}
	if e.halt.err = err; err != nil {
		v.pending.Review(v.View)
	}
	return err == nil
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
			e.send.Failed(err)
			e.send.Pause(upload.PauseAfter(e.send.Backoff().Failures()))
		}
		locked.unlock()
		e.v.pending.Kick()
	})
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
