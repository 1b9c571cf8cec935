package pending

import (
	"maps"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Newest is the newest place in the order of dirty names.
func (q *Queue) Newest(*tree.View) uint64 { return q.newest }

// Due is the place in the order up to which everything is due.
func (q *Queue) Due(v *tree.View) uint64 {
	if q.IsHeld(v) {
		return 0
	}
	return q.due
}

// IsHeld reports whether no change is due by itself at this moment.
func (q *Queue) IsHeld(v *tree.View) bool { return q.o.Held != nil && q.o.Held(v) }

// Ask makes all names due that are dirty now.
func (q *Queue) Ask(*tree.View) {
	q.due = max(q.due, q.newest)
	q.stirs++
	q.Kick()
}

// Defer makes no name due until there is a new reason: the due names cannot go now.
func (q *Queue) Defer(*tree.View) { q.due = 0 }

// Stirs counts how often there was a new change, or one became due.
func (q *Queue) Stirs(*tree.View) uint64 { return q.stirs }

// Stir says that changes that could not go may go by now.
func (q *Queue) Stir(*tree.View) { q.stirs++ }

// Because are the names that an operation made dirty, for a caller that goes through the due names
// up to a place in the order of its own.
func (q *Queue) Because(*tree.View) map[table.Link]struct{} { return maps.Clone(q.because) }

// EachDue visits the due names, the oldest first.
func (q *Queue) EachDue(v *tree.View, visit func(l table.Link) bool) {
	q.EachUpTo(v, q.Due(v), func(_ uint64, l table.Link) bool { return visit(l) })
}

// EachUpTo visits the dirty names up to a place in the order, and names that an operation made
// dirty, wherever they are: the change that it was begun for may be up to there, and these are the
// rest of it.
func (q *Queue) EachUpTo(v *tree.View, due uint64, visit func(seq uint64, l table.Link) bool) {
	v.Dirty(0, func(seq uint64, l table.Link) bool {
		if seq > due {
			if len(q.because) == 0 {
				return false
			}
			if _, follows := q.because[l]; !follows {
				return true
			}
		}
		return visit(seq, l)
	})
}

// isHurried reports whether a caller waits for due changes, so that they may need a change that is
// not due yet.
func (q *Queue) isHurried(v *tree.View) bool { return len(q.waiters) > 0 || q.o.Sender.IsAsked(v) }

// Open opens a window for changes that are not due yet, or makes them due.
func (q *Queue) Open(v *tree.View) {
	q.stirs++
	switch {
	case !q.o.OnChange || q.due >= q.newest:
		return
	case q.o.Window <= 0 || q.total >= q.o.MaxUnsaved:
		q.due = q.newest
		q.Kick()
	case !q.windowed:
		q.windowed = true
		q.o.After(v, q.o.Window, func(v *tree.View) {
			q.windowed = false
			q.Ask(v)
		})
	}
}

// age says that places in the order up to seq were there at a time.
type age struct {
	seq uint64
	at  time.Time
}

const mostAges = 4096

// aged notes when a change began, a second apart at least so that there are few.
func (q *Queue) aged(_ *tree.View, seq uint64) {
	now := q.o.Now()
	if n := len(q.ages); n > 0 && now.Sub(q.ages[n-1].at) < time.Second {
		q.ages[n-1].seq = seq
		return
	}
	if len(q.ages) >= mostAges {
		q.ages = append(q.ages[:1], q.ages[2:]...)
	}
	q.ages = append(q.ages, age{seq, now})
}

// Oldest is when the oldest change began that the remote does not have.
func (q *Queue) Oldest(v *tree.View) (since time.Time, any bool) {
	v.Dirty(0, func(seq uint64, _ table.Link) bool {
		for len(q.ages) > 1 && q.ages[0].seq < seq {
			q.ages = q.ages[1:]
		}
		any = true
		return false
	})
	if !any || len(q.ages) == 0 {
		return time.Time{}, false
	}
	return q.ages[0].at, true
}

// Content that is unsaved for maxLag windows and minLag more is too old, if there is much of it.
const (
	maxLag        = 10
	minLag        = 5 * time.Minute
	longestWindow = time.Hour // that counts for this
)

// IsFull reports whether so much is unsaved that a program that writes more must wait. Where
// changes are sent only when asked for, or not at all for now, waiting would not help: then the
// disk's room is the bound.
func (q *Queue) IsFull(v *tree.View) bool {
	if !q.o.OnChange || q.o.Sender.IsStopped(v) || q.IsHeld(v) {
		return false
	}
	if q.total > 2*q.o.MaxUnsaved {
		return true
	}
	since, any := q.Oldest(v)
	return any && q.o.Window > 0 && q.o.Now().Sub(since) > maxLag*min(q.o.Window, longestWindow)+minLag && q.total > q.o.MaxUnsaved/8
}
