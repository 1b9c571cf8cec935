package pending

import (
	"errors"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// A Waiter waits for the remote: a close, an fsync, a commit. It ends when all that it waits for
// has arrived or has failed for good; each change of a name and each failure is looked at once.
// Until Add it belongs to its maker alone. From then to its end the lock of the tree guards it:
// its fields are read, and written by its Queue alone, under a View.
type Waiter struct {
	Ino     table.Ino // whose content is to arrive; 0: none
	Version uint64    // in this state, or a newer one
	// Names have to agree, as they were at this place in the order.
	Names map[table.Link]uint64

	// Commit says that it is a commit: names that programs are writing are left alone,
	// and the conflicts of the others are collected in Conflicts.
	Commit    bool
	Conflicts []string

	Room  bool      // it waits for less to be unsaved, and for nothing else
	Place table.Ino // or until the remote place of this inode is known

	moved func() // see OnMoved; nil: nothing is called
	done  chan struct{}
	err   error
	over  bool
	last  error // a failure that may pass
}

// OnMoved has f called when the remote has received a change, or bytes of one.
func (w *Waiter) OnMoved(_ *tree.View, f func()) { w.moved = f }

// Done is closed when the waiter has ended.
func (w *Waiter) Done() <-chan struct{} { return w.done }

// IsOver reports whether the waiter has ended.
func (w *Waiter) IsOver(*tree.View) bool { return w.over }

// Err is the failure that the waiter ended with. It is for after Done, when it does not change any
// more.
func (w *Waiter) Err() error { return w.err }

// Last is the last failure that may pass of a name that it waits for, if any.
func (w *Waiter) Last(*tree.View) error { return w.last }

// ErrHeldUp ends waiters when no change is on its way any more.
var ErrHeldUp = errors.New("waits for a change that is held back")

// Add has a waiter wait.
func (q *Queue) Add(v *tree.View, w *Waiter) {
	w.done = make(chan struct{})
	q.waiters[w] = struct{}{}
	q.review(v, w)
}

// Remove has a waiter wait no more.
func (q *Queue) Remove(_ *tree.View, w *Waiter) { delete(q.waiters, w) }

// End ends a waiter, if it has not ended.
func (q *Queue) End(_ *tree.View, w *Waiter, err error) {
	if w.over {
		return
	}
	w.err, w.over = err, true
	delete(q.waiters, w)
	close(w.done)
}

// Waiting is the number of waiters.
func (q *Queue) Waiting(*tree.View) int { return len(q.waiters) }

// NamesChanged looks at all waiters, after names have changed or failed.
func (q *Queue) NamesChanged(v *tree.View, names ...table.Link) {
	for w := range q.waiters {
		for _, l := range names {
			if limit, waits := w.Names[l]; waits && q.hasArrived(v, w, l, limit) {
				delete(w.Names, l)
			}
		}
		q.judge(v, w)
	}
}

// Advance tells all waiters that the remote has received a change, or bytes of one: it goes on,
// and their turn comes. A change that failed once more does not count, or they would wait for ever
// at a remote that refuses at once.
func (q *Queue) Advance(*tree.View) {
	for w := range q.waiters {
		if w.moved != nil {
			w.moved()
		}
	}
}

// Review looks at everything that is waited for.
func (q *Queue) Review(v *tree.View) {
	for w := range q.waiters {
		q.review(v, w)
	}
}

func (q *Queue) review(v *tree.View, w *Waiter) {
	for l, limit := range w.Names {
		if q.hasArrived(v, w, l, limit) {
			delete(w.Names, l)
		}
	}
	q.judge(v, w)
}

// judge ends a waiter when it need not wait any more.
func (q *Queue) judge(v *tree.View, w *Waiter) {
	switch {
	case w.Room:
		if !q.IsFull(v) {
			q.End(v, w, nil)
		}
		return
	case w.Place != 0:
		if q.o.Sender.IsPlaceKnown(v, w.Place) {
			q.End(v, w, nil)
		}
		return
	}
	if done, err := q.hasContent(v, w); err != nil || done && len(w.Names) == 0 {
		q.End(v, w, err)
	}
}

// Stall ends all waiting when no change is sent, and none could begin: the rest waits for a change
// that is held back, because of cause if that is known.
func (q *Queue) Stall(v *tree.View, cause error) {
	for w := range q.waiters {
		if w.Room || w.Place != 0 {
			continue
		}
		q.review(v, w)
		if w.over {
			continue
		}
		done, err := q.hasContent(v, w)
		if !done && err == nil {
			err = errors.Join(ErrHeldUp, cause)
		}
		q.End(v, w, err)
	}
}

// hasArrived reports whether a name need not be waited for any more: both sides agree, or another
// change has begun since, or it is held back, and waiting does not help.
func (q *Queue) hasArrived(v *tree.View, w *Waiter, l table.Link, limit uint64) bool {
	rec := v.Record(l)
	if rec.Seq == 0 || rec.Seq > limit || w.Commit && q.IsLeftAlone(v, l) {
		return true
	}
	err, final := q.o.Sender.Failure(v, l)
	if err != nil && !final {
		w.last = err
	}
	return final
}

// hasContent reports whether the remote has the content that is waited for, under each of
// its names.
func (q *Queue) hasContent(v *tree.View, w *Waiter) (done bool, err error) {
	n := v.Inode(w.Ino)
	if n == nil || w.Ino == 0 {
		return true, nil
	}
	done = true
	for _, l := range n.Links {
		rec := v.Record(l)
		if rec.Local || rec.Remote != nil && rec.Remote.Ino == w.Ino && rec.Remote.ContentVersion >= w.Version {
			continue
		}
		done = false
		if err, final := q.o.Sender.Failure(v, l); final {
			return false, err
		} else if err != nil {
			w.last = err
		}
	}
	return done, nil
}

// Structural lists the names that are to change at the remote, other than by new content: that has
// another waiter, or none.
func (q *Queue) Structural(v *tree.View) map[table.Link]uint64 {
	names := map[table.Link]uint64{}
	v.Dirty(0, func(seq uint64, l table.Link) bool {
		rec := v.Record(l)
		if n := v.Inode(rec.Ino); n != nil && n.IsRegular() && Carries(rec, n) {
			if open, _ := q.o.Writers.Writing(v, rec.Ino); open || n.Size > 0 {
				return true
			}
		}
		names[l] = seq
		return true
	})
	return names
}

// Conflict tells the waiters for a name, which is at a path, that it is in conflict: a name that
// is decided at once is not held back, and yet they are to report it. It reports whether a commit
// was among them.
func (q *Queue) Conflict(_ *tree.View, l table.Link, path string) (heard bool) {
	for w := range q.waiters {
		if _, waits := w.Names[l]; waits {
			w.Conflicts = append(w.Conflicts, path)
			heard = heard || w.Commit
		}
	}
	return heard
}
