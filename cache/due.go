package cache

import (
	"errors"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// aged notes when a change began, about a minute apart at least so that it
// stays short.
func (e *engine) aged(seq uint64) {
	now := e.v.o.Now()
	if n := len(e.ages); n > 0 && now.Sub(e.ages[n-1].at) < time.Second {
		e.ages[n-1].seq = seq
		return
	}
	if len(e.ages) >= 4096 {
		e.ages = append(e.ages[:1], e.ages[2:]...)
	}
	e.ages = append(e.ages, age{seq, now})
}

// oldest is when the oldest change began that the backend does not have. mu is
// held.
func (e *engine) oldest() (since time.Time, any bool) {
	e.v.table.Dirty(0, func(seq uint64, _ table.Link) bool {
		for len(e.ages) > 1 && e.ages[0].seq < seq {
			e.ages = e.ages[1:]
		}
		any = true
		return false
	})
	if !any || len(e.ages) == 0 {
		return time.Time{}, false
	}
	return e.ages[0].at, true
}

// count keeps the sum of what is unsaved, and gives the name's Seq. mu is held.
func (e *engine) count(l table.Link) uint64 {
	rec, _ := e.v.table.Name(l.Dir, l.Name)
	if rec.Base != nil && rec.Base.Ino != rec.Ino {
		e.countInode(rec.Base.Ino)
	}
	e.countInode(rec.Ino)
	return rec.Seq
}

// isUnsaved reports whether the backend lacks content of an inode. mu is held.
func (e *engine) isUnsaved(ino table.Ino) bool {
	_, unsaved := e.unsaved[ino]
	return unsaved
}

func (e *engine) countInode(ino table.Ino) {
	n := e.v.table.Inode(ino)
	size := int64(-1)
	if n != nil && isRegular(n) {
		for _, l := range n.Links {
			if rec, _ := e.v.table.Name(l.Dir, l.Name); rec.Seq != 0 && (carries(rec, n) || !e.knows(ino, n)) {
				size = n.Size
				break
			}
		}
	}
	was, counted := e.unsaved[ino]
	switch {
	case size < 0 && !counted:
		return
	case size < 0:
		delete(e.unsaved, ino)
		delete(e.flushed, ino)
		delete(e.overdue, ino)
		size = 0
	default:
		e.unsaved[ino] = size
	}
	e.total += size - was
}

// knows reports whether the backend has this state of an inode under any name.
func (e *engine) knows(ino table.Ino, n *table.Inode) bool {
	for _, h := range n.Homes {
		if rec, _ := e.v.table.Name(h.Dir, h.Name); rec.Base != nil && rec.Base.Ino == ino && rec.Base.Gen == n.Gen {
			return true
		}
	}
	return false
}

// carries reports whether what a name needs is content of n: the backend does
// not have this state of it anywhere.
func carries(rec table.Name, n *table.Inode) bool {
	if rec.Base != nil && rec.Base.Ino == rec.Ino {
		return rec.Base.Gen != n.Gen
	}
	return len(n.Homes) == 0
}

// open opens a window when there is something to wait for. mu is held.
func (e *engine) open() {
	p := &e.v.o.Policy
	e.stirred = true
	switch {
	case p.Commit != DueChange || e.due >= e.last:
		return
	case p.Window <= 0 || e.total >= p.MaxUnsaved:
		e.due = e.last
		e.wake()
	case !e.windowed && !e.v.closed:
		e.windowed = true
		e.v.background(func() {
			_ = e.v.pause(e.v.ctx, p.Window)
			e.v.mu.Lock()
			e.windowed = false
			e.ask()
			e.v.mu.Unlock()
		})
	}
}

// hurried reports whether somebody waits for what was due to arrive, so that a
// change that is not due yet may be what that needs. mu is held.
func (e *engine) hurried() bool { return len(e.closers) > 0 || len(e.requests) > 0 }

// ask makes due all that differs now. mu is held.
func (e *engine) ask() {
	e.due, e.stirred = max(e.due, e.last), true
	e.wake()
}

// checkHalt asks the rule of halt.go before names go one by one, each time that
// more is due. mu is held.
func (e *engine) checkHalt() error {
	v := e.v
	switch {
	case e.haltless():
		return nil
	case e.checked >= e.due && (e.halt == nil || !v.puller.confirmed[commitSide]):
		return e.halt // as it was when this was looked at, over all that is due
	}
	err := v.checkCommit(e.countDeletions())
	if unseen := (*unseenError)(nil); errors.As(err, &unseen) {
		return err
	}
	e.checked = e.due
	if v.puller.confirmed[commitSide] {
		e.cleared = max(e.cleared, e.due)
		v.passed(commitSide)
	}
	if err == nil {
		e.harmless(e.due)
	}
	return err
}

// haltless reports whether no commit is ever too much: each change goes by itself.
func (e *engine) haltless() bool {
	p := &e.v.o.Policy
	return e.sets == nil && p.Commit == DueChange && p.Window <= 0
}

// harmless ends a halt when what is due is not too much, and nothing else
// differs: what was deleted is here again. mu is held.
func (e *engine) harmless(due uint64) {
	if due >= e.last && !e.v.puller.confirmed[commitSide] {
		e.v.passed(commitSide)
	}
}

// countDeletions counts the names that are due and no more here. Those that were
// confirmed do not count; they may take long to go.
func (e *engine) countDeletions() (all, inRoot, madeInRoot int) {
	fresh := false // one of those in the root was not confirmed
	e.v.table.Dirty(0, func(seq uint64, l table.Link) bool {
		rec := e.record(l)
		root := l.Dir == table.Root
		switch {
		case seq > e.due:
			return false
		case rec.Ino != 0 && rec.Base == nil && root:
			madeInRoot++
		case rec.Ino != 0 || rec.Base == nil:
		default:
			if n := e.v.table.Inode(rec.Base.Ino); seq > e.cleared && (n == nil || len(n.Links) == 0) {
				all++
			}
			if root {
				inRoot++
				fresh = fresh || seq > e.cleared
			}
		}
		return true
	})
	if !fresh {
		inRoot = 0
	}
	return all, inRoot, madeInRoot
}
