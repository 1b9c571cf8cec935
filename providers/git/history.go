package git

import (
	"container/heap"
	"math"
	"slices"
)

// Marks of a commit in a walk over two histories.
const (
	ofA = 1 << iota
	ofB
	stale // in both, and no base: a later one has it in its history
	known // is a base
)

// walk goes over histories from late to early.
type walk struct {
	r     *repository
	marks map[id]int
	queue queue
}

func newWalk(r *repository) *walk { return &walk{r: r, marks: map[id]int{}} }

// add marks a commit and has it looked at.
func (w *walk) add(c id, mark int) error {
	if w.marks[c]&mark == mark {
		return nil
	}
	commit, err := w.r.commit(c)
	if err != nil {
		return err
	}
	w.marks[c] |= mark
	heap.Push(&w.queue, step{c, commit.Committer.When.Unix(), commit.Parents})
	return nil
}

// open reports whether a commit is in the queue that can still tell something.
func (w *walk) open(closing int) bool {
	for _, s := range w.queue {
		if w.marks[s.c]&closing == 0 {
			return true
		}
	}
	return false
}

// bases are the latest commits that are in the histories of both, as git finds
// them: the first is the one to use.
func (r *repository) bases(a, b id) ([]id, error) {
	w := newWalk(r)
	if err := w.add(a, ofA); err != nil {
		return nil, err
	}
	if err := w.add(b, ofB); err != nil {
		return nil, err
	}
	var found []id
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
	var good []id
	for _, c := range found {
		if w.marks[c]&stale == 0 {
			good = append(good, c)
		}
	}
	return good, nil
}

// isAncestor reports whether a is in the history of b.
func (r *repository) isAncestor(a, b id) (bool, error) {
	bases, err := r.bases(a, b)
	return slices.Contains(bases, a), err
}

// newCommits are those in the history of c and in none of others, the last
// first. Others that are not here say nothing.
func (r *repository) newCommits(c id, others []id) ([]id, error) {
	w := newWalk(r)
	for _, other := range others {
		if r.hasCommit(other) {
			if err := w.add(other, ofB); err != nil {
				return nil, err
			}
		}
	}
	if err := w.add(c, ofA); err != nil {
		return nil, err
	}
	var order []id
	seen := map[id]bool{}
	first := int64(math.MaxInt64) // when the earliest was made that nobody else seemed to have
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
	var fresh []id
	for _, c := range order {
		if w.marks[c] == ofA {
			fresh = append(fresh, c)
		}
	}
	return fresh, nil
}

// recent are up to n commits of the histories of some, the last first: what a
// server is told of what is here.
func (r *repository) recent(n int, of ...id) ([]id, error) {
	w := newWalk(r)
	for _, c := range of {
		if c.IsZero() {
			continue
		}
		if err := w.add(c, ofA); err != nil {
			return nil, err
		}
	}
	var all []id
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
	c       id
	when    int64
	parents []id
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
