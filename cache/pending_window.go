package cache

import (
	"errors"
	"time"

	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// aged notes when a change began, about a minute apart at least so that it
// stays short.
func (e *engine) aged(v *View, seq uint64) {
	now := v.o.Now()
	if n := len(e.ages); n > 0 && now.Sub(e.ages[n-1].at) < time.Second {
		e.ages[n-1].seq = seq
		return
	}
	if len(e.ages) >= 4096 {
		e.ages = append(e.ages[:1], e.ages[2:]...)
	}
	e.ages = append(e.ages, age{seq, now})
}

// oldest is when the oldest change began that the backend does not have.
func (e *engine) oldest(v *View) (since time.Time, any bool) {
	v.table.Dirty(0, func(seq uint64, _ table.Link) bool {
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

// count keeps the sum of what is unsaved, and gives the name's Seq.
func (e *engine) count(v *View, l table.Link) uint64 {
	rec, _ := v.table.Name(l.Dir, l.Name)
	if rec.Remote != nil && rec.Remote.Ino != rec.Ino {
		e.countInode(v, rec.Remote.Ino)
	}
	e.countInode(v, rec.Ino)
	return rec.Seq
}

// isUnsaved reports whether the backend lacks content of an inode.
func (e *engine) isUnsaved(v *View, ino table.Ino) bool {
	_, unsaved := e.unsaved[ino]
	return unsaved
}

func (e *engine) countInode(v *View, ino table.Ino) {
	n := v.table.Inode(ino)
	size := int64(-1)
	if n != nil && n.IsRegular() {
		for _, l := range n.Links {
			if rec, _ := v.table.Name(l.Dir, l.Name); rec.Seq != 0 && (carries(rec, n) || !e.knows(v, ino, n)) {
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
func (e *engine) knows(v *View, ino table.Ino, n *table.Inode) bool {
	for _, h := range n.RemoteLinks {
		if rec, _ := v.table.Name(h.Dir, h.Name); rec.Remote != nil && rec.Remote.Ino == ino && rec.Remote.ContentVersion == n.ContentVersion {
			return true
		}
	}
	return false
}

// carries reports whether what a name needs is content of n: the backend does
// not have this state of it anywhere.
func carries(rec table.Name, n *table.Inode) bool {
	if rec.Remote != nil && rec.Remote.Ino == rec.Ino {
		return rec.Remote.ContentVersion != n.ContentVersion
	}
	return len(n.RemoteLinks) == 0
}

// open opens a window when there is something to wait for.
func (e *engine) open(v *View) {
	p := &v.o.Policy
	e.stirred = true
	switch {
	case p.Commit != DueChange || e.due >= e.last:
		return
	case p.Window <= 0 || e.total >= p.MaxUnsaved:
		e.due = e.last
		e.wake()
	case !e.windowed && !v.closed:
		e.windowed = true
		v.background(func() {
			_ = e.v.pause(e.v.ctx, p.Window)
			locked := e.v.lock()
			e.windowed = false
			e.ask(locked)
			locked.unlock()
		})
	}
}

// hurried reports whether somebody waits for what was due to arrive, so that a change
// that is not due yet may be what that needs.
func (e *engine) hurried(v *View) bool { return len(e.waiters) > 0 || len(e.requests) > 0 }

// ask makes due all that differs now.
func (e *engine) ask(v *View) {
	e.due, e.stirred = max(e.due, e.last), true
	e.wake()
}

// checkBlocked asks the rule of massdelete.go before names go one by one, each time that
// more is due.
func (e *engine) checkBlocked(v *View) error {
	switch {
	case e.isUnguarded():
		return nil
	case e.checked >= e.due && (e.blocked == nil || !v.massDelete.IsConfirmed(massdelete.Commit)):
		return e.blocked // as it was when this was looked at, over all that is due
	}
	deleted, inRoot, madeInRoot := massdelete.CountDue(v, e.due, e.cleared)
	err := v.judgeCommit(massdelete.TooMuchForCommit(v, deleted, inRoot, madeInRoot))
	if unseen := (*massdelete.UnseenError)(nil); errors.As(err, &unseen) {
		return err
	}
	e.checked = e.due
	if v.massDelete.IsConfirmed(massdelete.Commit) {
		e.cleared = max(e.cleared, e.due)
		v.passed(massdelete.Commit)
	}
	if err == nil {
		e.harmless(v, e.due)
	}
	return err
}

// isUnguarded reports whether no commit is ever too much: each change goes by itself.
func (e *engine) isUnguarded() bool {
	p := &e.v.o.Policy
	return e.sets == nil && p.Commit == DueChange && p.Window <= 0
}

// harmless ends a halt when what is due is not too much, and nothing else differs: what
// was deleted is here again.
func (e *engine) harmless(v *View, due uint64) {
	if due >= e.last && !v.massDelete.IsConfirmed(massdelete.Commit) {
		v.passed(massdelete.Commit)
	}
}

// age says that Seqs up to seq were there at a time.
type age struct {
	seq uint64
	at  time.Time
}

// lingering lists the files that have been open for writing for Policy.MaxOpen.
func (e *engine) lingering() (due []table.Ino) {
	v := e.v
	locked := v.lock()
	defer locked.unlock()
	now := v.o.Now()
	for ino := range e.writing {
		if oi := locked.open[ino]; oi == nil || oi.writers == 0 {
			delete(e.writing, ino)
		}
	}
	for ino, oi := range locked.open {
		if oi.writers == 0 {
			continue
		}
		since, known := e.writing[ino]
		switch {
		case !known:
			e.writing[ino] = now
		case now.Sub(since) >= v.o.Policy.MaxOpen:
			e.writing[ino] = now
			due = append(due, ino)
		}
	}
	return due
}

// isOpen reports whether a program is still writing a state that nobody has closed, and
// nobody waits for. What was closed and is being written once more is one, too: its
// first state is gone, and the next is half made. After Policy.MaxOpen that counts no
// more.
func (e *engine) isOpen(v *View, ino table.Ino, n *table.Inode) bool {
	oi := v.open[ino]
	if oi == nil || oi.writers == 0 || e.awaited(v, ino) {
		return false
	}
	_, overdue := e.overdue[ino]
	return !overdue && (e.flushed[ino] < n.ContentVersion || oi.isTouched())
}

// awaited reports whether somebody waits for content of an inode: who closed it while
// another went on writing gets what is there by now.
func (e *engine) awaited(v *View, ino table.Ino) bool {
	for c := range e.waiters {
		if c.ino == ino {
			return true
		}
	}
	return false
}
