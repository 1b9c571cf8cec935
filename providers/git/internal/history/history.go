// Package history walks commits along their parents, as git does: it finds the commits that two
// histories share, and those that one has and others lack.
//
// It does not know where commits are kept: the caller's function reads one. It changes nothing.
//
//	base, err := history.Bases(read, ours, theirs)
package history

import (
	"container/heap"
	"math"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/wsmount/wsmount/providers/git/internal/object"
)

// ID names a commit.
type ID = plumbing.Hash

// Read is a commit, or the reason why there is none.
type Read func(ID) (object.Commit, error)

// Marks of a commit in a walk over two histories.
const (
	ofA = 1 << iota
	ofB
	stale // in both, and no base: a later one has it in its history
	known // is a base
)

// walk goes over histories from late to early.
type walk struct {
	read  Read
	marks map[ID]int
	queue queue
}

func newWalk(read Read) *walk { return &walk{read: read, marks: map[ID]int{}} }

// add marks a commit and queues it.
func (w *walk) add(c ID, mark int) error {
	if w.marks[c]&mark == mark {
		return nil
	}
	commit, err := w.read(c)
	if err != nil {
		return err
	}
	w.marks[c] |= mark
	heap.Push(&w.queue, step{c, commit.Committer.When.Unix(), commit.Parents})
	return nil
}

// open reports whether the queue has a commit without the closing marks.
func (w *walk) open(closing int) bool {
	for _, s := range w.queue {
		if w.marks[s.c]&closing == 0 {
			return true
		}
	}
	return false
}

// Bases are the latest commits that are in the histories of both, as git finds
// them: the first is the one to use.
func Bases(read Read, a, b ID) ([]ID, error) {
	w := newWalk(read)
	if err := w.add(a, ofA); err != nil {
		return nil, err
	}
	if err := w.add(b, ofB); err != nil {
		return nil, err
	}
	var found []ID
	first := int64(math.MaxInt64) // when the earliest of them was made
	// Commits of one second come in any order: one that was found may be in the
	// history of another.
	for w.open(stale) || len(found) > 1 && len(w.queue) > 0 && w.queue[0].when >= first {
		s := heap.Pop(&w.queue).(step)
		mark := w.marks[s.c] & (ofA | ofB | stale)
		if mark == ofA|ofB {
			if w.marks[s.c]&known == 0 {
				w.marks[s.c] |= known
				found, first = append(found, s.c), min(first, s.when)
			}
			mark |= stale
		}
		for _, parent := range s.parents {
			if err := w.add(parent, mark); err != nil {
				return nil, err
			}
		}
	}
	var good []ID
	for _, c := range found {
		if w.marks[c]&stale == 0 {
			good = append(good, c)
		}
	}
	return good, nil
}

// IsAncestor reports whether a is in the history of b.
func IsAncestor(read Read, a, b ID) (bool, error) {
	bases, err := Bases(read, a, b)
	return slices.Contains(bases, a), err
}

// New are the commits in the history of c and in none of others, the last first. Others that
// cannot be read are ignored.
func New(read Read, c ID, others []ID) ([]ID, error) {
	w := newWalk(read)
	for _, other := range others {
		if _, missing := read(other); missing == nil {
			if err := w.add(other, ofB); err != nil {
				return nil, err
			}
		}
	}
	if err := w.add(c, ofA); err != nil {
		return nil, err
	}
	var order []ID
	seen := map[ID]bool{}
	first := int64(math.MaxInt64) // time of the earliest commit that seemed to be in no other history
	// Commits of one second come in any order: one that was seen may turn out to
	// be in the history of others.
	for w.open(ofB) || len(w.queue) > 0 && w.queue[0].when >= first {
		s := heap.Pop(&w.queue).(step)
		if !seen[s.c] {
			seen[s.c] = true
			order = append(order, s.c)
		}
		if w.marks[s.c] == ofA {
			first = min(first, s.when)
		}
		for _, parent := range s.parents {
			if err := w.add(parent, w.marks[s.c]&(ofA|ofB)); err != nil {
				return nil, err
			}
		}
	}
	var fresh []ID
	for _, c := range order {
		if w.marks[c] == ofA {
			fresh = append(fresh, c)
		}
	}
	return fresh, nil
}

// Recent are up to n commits of some histories, the last first: those that a server is told of in
// a fetch.
func Recent(read Read, n int, of ...ID) ([]ID, error) {
	w := newWalk(read)
	for _, c := range of {
		if c.IsZero() {
			continue
		}
		if err := w.add(c, ofA); err != nil {
			return nil, err
		}
	}
	var all []ID
	for len(w.queue) > 0 && len(all) < n {
		s := heap.Pop(&w.queue).(step)
		all = append(all, s.c)
		for _, parent := range s.parents {
			if err := w.add(parent, ofA); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// step is a commit that is to be looked at.
type step struct {
	c       ID
	when    int64
	parents []ID
}

// queue gives the latest first.
type queue []step

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].when > q[j].when }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(step)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
