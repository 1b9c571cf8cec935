package providers

import (
	"fmt"
	"iter"
	"slices"
)

// ChangePlaces indexes a ChangeSet by its places, for providers that build the tree after it
// themselves: it has those rules of a set that need no tree. The zero value is an empty set. It
// is for one goroutine.
type ChangePlaces struct {
	changes []Change
	deleted map[Locator]bool
	taken   map[Locator]bool // From of a change
	made    map[Locator]int  // changes that are no deletions
}

// Add takes the next change into the set: ErrInvalid for one of the root, and for
// a second of the same kind at one place.
func (p *ChangePlaces) Add(c Change) error {
	if p.made == nil {
		p.deleted, p.taken, p.made = map[Locator]bool{}, map[Locator]bool{}, map[Locator]int{}
	}
	i := len(p.changes)
	p.changes = append(p.changes, c)
	_, twice := p.made[c.Locator]
	switch {
	case c.Locator.IsRoot():
		return fmt.Errorf("the root stays: %w", ErrInvalid)
	case c.Delete && p.deleted[c.Locator], !c.Delete && twice:
		return fmt.Errorf("two changes of it: %w", ErrInvalid)
	case c.Delete:
		p.deleted[c.Locator] = true
		return nil
	case !c.From.IsRoot():
		p.taken[c.From] = true
	}
	p.made[c.Locator] = i
	return nil
}

// IsDeleted reports whether the set deletes the entry that was at l.
func (p *ChangePlaces) IsDeleted(l Locator) bool { return p.deleted[l] }

// IsTaken reports whether l is the From of a change.
func (p *ChangePlaces) IsTaken(l Locator) bool { return p.taken[l] }

// Deleted are the places of the entries that the set deletes, in any order.
func (p *ChangePlaces) Deleted() iter.Seq[Locator] {
	return func(yield func(Locator) bool) {
		for l := range p.deleted {
			if !yield(l) {
				return
			}
		}
	}
}

// Made are the changes that are no deletions, with their indexes in the set, parents before
// their children.
func (p *ChangePlaces) Made() iter.Seq2[int, Change] {
	order := make([]Locator, 0, len(p.made))
	for l := range p.made {
		order = append(order, l)
	}
	slices.SortFunc(order, Locator.Compare)
	return func(yield func(int, Change) bool) {
		for _, l := range order {
			if i := p.made[l]; !yield(i, p.changes[i]) {
				return
			}
		}
	}
}

// Origin is the place, in the tree before, of the entry that a change at l replaces. gone: the
// set deletes it, or a directory on the way to it.
func (p *ChangePlaces) Origin(l Locator) (origin Locator, gone bool, err error) {
	root := Locator{} // deletions of it, and above, do not count
	origin = l
	for up := l.Parent(); !up.IsRoot(); up = up.Parent() {
		if i, ok := p.made[up]; ok && !p.changes[i].From.IsRoot() {
			root = p.changes[i].From
			if origin, err = root.Child(l.Parts()[len(up.Parts()):]...); err != nil {
				return origin, false, err
			}
			break
		}
	}
	for at := origin; at != root; at = at.Parent() {
		if p.deleted[at] {
			return origin, true, nil
		}
	}
	return origin, false, nil
}
