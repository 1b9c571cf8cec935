package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// waiter is somebody who waits for the backend: a close, an fsync, a Commit. It
// is told when all that it waits for is there or has failed for good; each
// change of the table and each failure is looked at once. The volume's lock guards it.
type waiter struct {
	ino   table.Ino // whose content; 0: of no one's
	gen   uint64
	names map[table.Link]uint64 // that have to agree, as they were at this Seq

	commit  bool     // it is a Commit, which reports the conflicts of those names
	clashes []string // that were found meanwhile

	room  bool      // it waits for the unsaved to be less
	place table.Ino // or until it is known where the backend has this

	done chan struct{}
	err  error
	over bool
	last error // a failure that may pass
	wait *waiting
}

// waitForContent returns when the backend has the content that an inode has now, and
// every change of names and attributes before. It is called at each close and
// fsync with new bytes. With Policy.NoWait it returns at once, except when too
// much is unsaved: then the backend must catch up first, for as long as
// Options.Patience; the bytes are safe here already, so that this never fails.
func (v *Volume) waitForContent(op *fs.Op, ino table.Ino) error {
	e := &v.engine
	locked := v.lock()
	n := locked.table.Inode(ino)
	if n == nil || v.o.ReadOnly {
		locked.unlock()
		return nil
	}
	if e.isUnsaved(locked, ino) {
		e.flushed[ino] = n.ContentVersion
	}
	if v.o.Policy.NoWait {
		c := &waiter{room: true}
		e.open(locked)
		e.wake()
		full := e.full(locked)
		if full {
			e.addWaiter(locked, c)
			e.ask(locked)
		}
		locked.unlock()
		if full {
			_ = v.waitFor(op, c)
		}
		return nil
	}
	c := &waiter{ino: ino, gen: n.ContentVersion, names: e.structural(locked)}
	for _, l := range n.Links {
		e.forgive(locked, l)
	}
	e.ask(locked)
	e.addWaiter(locked, c)
	locked.unlock()
	return v.waitFor(op, c)
}

// waitForNames returns when the backend has all changes of names and attributes so
// far. It fails when one of them is held back.
func (v *Volume) waitForNames(op *fs.Op) error {
	if v.o.ReadOnly {
		return nil
	}
	e := &v.engine
	locked := v.lock()
	c := &waiter{names: e.structural(locked)}
	var refused error
	for l := range c.names {
		if t := e.jobs[l]; t != nil && t.state == jobHeld {
			refused = fmt.Errorf("%s: %w", locked.PathFor(l), t.err)
			delete(c.names, l)
		}
	}
	e.ask(locked)
	e.addWaiter(locked, c)
	locked.unlock()
	if err := v.waitFor(op, c); err != nil {
		return err
	}
	return translate(refused)
}

// waitFor waits for a waiter, for as long as Options.Patience each time that
// nothing moves, and for a moment only when its caller ends.
func (v *Volume) waitFor(op *fs.Op, c *waiter) error {
	locked := v.lock()
	if c.over {
		locked.unlock()
		return translate(c.err)
	}
	w := v.wait(op, v.o.Patience)
	c.wait = w
	locked.unlock()
	defer w.close()
	if op != nil && op.PID != 0 {
		go v.watchExit(op, w)
	}
	var err error
	select {
	case <-c.done:
		err = c.err
	case <-w.Done():
		locked = v.lock()
		err = context.Cause(w)
		if c.last != nil {
			err = fmt.Errorf("%w: %w", err, c.last)
		}
		delete(v.engine.waiters, c)
		locked.unlock()
	}
	return translate(err)
}

// waitForPlace waits until no change of ours is under way, or without an answer, where
// the backend has an inode: what was not found there may be found after that.
// It reports whether there was anything to wait for.
func (v *Volume) waitForPlace(ctx context.Context, x table.Ino) (waited bool) {
	e := &v.engine
	locked := v.lock()
	if e.isPlaceKnown(locked, x) {
		locked.unlock()
		return false
	}
	c := &waiter{place: x}
	e.addWaiter(locked, c)
	locked.unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		locked = v.lock()
		delete(e.waiters, c)
		locked.unlock()
	}
	return true
}

// isPlaceKnown reports whether it is known where the backend has an inode.
func (e *engine) isPlaceKnown(v *View, x table.Ino) bool {
	n := v.table.Inode(x)
	if n == nil {
		return true
	}
	for _, h := range n.RemoteLinks {
		if rec := v.Record(h); rec.Attempt != nil || v.Attempted(rec, nil) {
			return false
		}
		if _, moving := e.unsettled(v, h.Dir); moving != (table.Link{}) {
			return false
		}
	}
	return true
}

// addWaiter registers a waiter.
func (e *engine) addWaiter(v *View, c *waiter) {
	c.done = make(chan struct{})
	e.waiters[c] = struct{}{}
	e.review(v, c)
}

// namesChanged looks at everybody who waits, after names have changed or failed.
func (e *engine) namesChanged(v *View, names ...table.Link) {
	for c := range e.waiters {
		for _, l := range names {
			if limit, waits := c.names[l]; waits && e.arrivedName(v, c, l, limit) {
				delete(c.names, l)
			}
		}
		e.judge(v, c)
	}
}

// advanced tells everybody who waits that the backend got something, or more of it: it
// goes on, and their turn comes. A change that failed once more is no such news, or they
// would wait for ever at a backend that refuses at once.
func (e *engine) advanced(v *View) {
	e.doing.beat.Add(1)
	for c := range e.waiters {
		if c.wait != nil {
			c.wait.moved()
		}
	}
}

// reviewAll looks at all that everybody waits for.
func (e *engine) reviewAll(v *View) {
	for c := range e.waiters {
		e.review(v, c)
	}
}

func (e *engine) review(v *View, c *waiter) {
	for l, limit := range c.names {
		if e.arrivedName(v, c, l, limit) {
			delete(c.names, l)
		}
	}
	e.judge(v, c)
}

// judge tells a waiter when it need not wait any more.
func (e *engine) judge(v *View, c *waiter) {
	switch {
	case c.room:
		if !e.full(v) {
			e.tell(v, c, nil)
		}
		return
	case c.place != 0:
		if e.isPlaceKnown(v, c.place) {
			e.tell(v, c, nil)
		}
		return
	}
	done, err := e.hasContent(v, c)
	if err != nil || done && len(c.names) == 0 {
		e.tell(v, c, err)
	}
}

// stalled ends all waiting when nothing runs, rests, or could begin: what is left waits
// for something that is held.
func (e *engine) stalled(v *View) {
	if len(e.waiters) == 0 || len(e.running) > 0 || e.paused {
		return
	}
	var cause error
	for _, t := range e.jobs {
		switch {
		case t.state == jobResting:
			return
		case t.state == jobHeld && cause == nil:
			cause = t.err
		}
	}
	for c := range e.waiters {
		if c.room || c.place != 0 {
			continue
		}
		e.review(v, c)
		if c.over {
			continue
		}
		done, err := e.hasContent(v, c)
		if !done && err == nil {
			err = errors.Join(errHeldUp, cause)
		}
		e.tell(v, c, err)
	}
}

var errHeldUp = errors.New("waits for a change that is held back")

func (e *engine) tell(v *View, c *waiter, err error) {
	c.err, c.over = err, true
	delete(e.waiters, c)
	close(c.done)
}

// arrivedName reports whether a name need not be waited for any more: both
// sides agree, or another change has begun since, or it is held, which others
// cannot help.
func (e *engine) arrivedName(v *View, c *waiter, l table.Link, limit uint64) bool {
	rec, _ := v.table.Name(l.Dir, l.Name)
	if rec.Seq == 0 || rec.Seq > limit || c.commit && e.isLeftAlone(v, l) {
		return true
	}
	err, final := e.failure(v, l)
	if err != nil && !final {
		c.last = err
	}
	return final
}

// hasContent reports whether the backend has the content that is waited for,
// under each of its names.
func (e *engine) hasContent(v *View, c *waiter) (done bool, err error) {
	n := v.table.Inode(c.ino)
	if n == nil || c.ino == 0 {
		return true, nil
	}
	done = true
	for _, l := range n.Links {
		rec, _ := v.table.Name(l.Dir, l.Name)
		if rec.Local || rec.Remote != nil && rec.Remote.Ino == c.ino && rec.Remote.ContentVersion >= c.gen {
			continue
		}
		done = false
		if err, final := e.failure(v, l); final {
			return false, err
		} else if err != nil {
			c.last = err
		}
	}
	return done, nil
}

// failure is what keeps a name from being sent, if it has been tried: its own
// failure, or that of a directory above. final says that trying again will not
// help.
func (e *engine) failure(v *View, l table.Link) (err error, final bool) { // the error is the subject here
	for {
		if t := e.jobs[l]; t != nil && t.err != nil && (t.state == jobHeld || t.state == jobResting) {
			return t.err, t.state == jobHeld
		}
		dir := v.table.Inode(l.Dir)
		if l.Dir == table.Root || dir == nil || len(dir.RemoteLinks) > 0 || len(dir.Links) == 0 {
			break
		}
		l = dir.Links[0]
	}
	switch {
	case e.blocked != nil:
		return e.blocked, true
	case e.setErr != nil:
		return e.setErr, !passing(e.setErr)
	}
	return nil, false
}

// forgive has a name that is held tried again, and the directories above it.
func (e *engine) forgive(v *View, l table.Link) {
	for {
		if t := e.jobs[l]; t != nil && t.state == jobHeld {
			t.state, t.err, t.losses = jobIdle, nil, 0
		}
		dir := v.table.Inode(l.Dir)
		if l.Dir == table.Root || dir == nil || len(dir.RemoteLinks) > 0 || len(dir.Links) == 0 {
			return
		}
		l = dir.Links[0]
	}
}

// structural lists the names that are to change at the backend, beside by new content:
// those have somebody else who waits for them, or nobody.
func (e *engine) structural(v *View) map[table.Link]uint64 {
	names := map[table.Link]uint64{}
	v.table.Dirty(0, func(seq uint64, l table.Link) bool {
		rec, _ := v.table.Name(l.Dir, l.Name)
		if n := v.table.Inode(rec.Ino); n != nil && n.IsRegular() && carries(rec, n) {
			oi := v.open[rec.Ino]
			if n.Size > 0 || oi != nil && oi.writers > 0 {
				return true
			}
		}
		names[l] = seq
		return true
	})
	return names
}

// full reports whether so much is unsaved that whoever makes more must wait. Where
// nothing is sent without being asked for, or the backend cannot be reached, waiting
// would not help: then the disk's room is the bound.
func (e *engine) full(v *View) bool {
	p := &v.o.Policy
	if p.Commit != DueChange || e.failures > 0 || e.blocked != nil || v.closed {
		return false
	}
	if e.total > 2*p.MaxUnsaved {
		return true
	}
	since, any := e.oldest(v)
	return any && p.Window > 0 && v.o.Now().Sub(since) > maxLag*min(p.Window, longestHold)+minLag && e.total > p.MaxUnsaved/8
}

// What is unsaved for maxLag windows and minLag more is too old, if there is
// much of it.
const (
	maxLag = 10
	minLag = 5 * time.Minute
)

// isConflict reports whether err is another's change in the way.
func isConflict(err error) bool { return errors.Is(err, providers.ErrConflict) }

// giveUp ends the waiting of a waiter.
func (e *engine) giveUp(c *waiter, err error) {
	locked := e.v.lock()
	defer locked.unlock()
	if !c.over {
		e.tell(locked, c, err)
	}
}

// late says why what was waited for was not done in time.
func (v *Volume) late(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("not all was sent in time: %s (%w)", cmp.Or(v.Status().LastError, "the backend has not answered yet"), err)
}
