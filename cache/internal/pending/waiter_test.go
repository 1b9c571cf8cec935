package pending

import (
	"fmt"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
)

// waits adds a waiter.
func (s *scene) waits(w *Waiter) *Waiter {
	s.under(func(v *tree.View) { s.q.Add(v, w) })
	return w
}

func (s *scene) wantWaits(w *Waiter) {
	s.Helper()
	select {
	case <-w.Done():
		s.Errorf("it waits no more: %v", w.Err())
	default:
		s.under(func(v *tree.View) { assert.False(s, w.IsOver(v), "it is over") })
	}
}

func (s *scene) wantOver(w *Waiter, err error) {
	s.Helper()
	select {
	case <-w.Done():
		s.under(func(v *tree.View) { assert.True(s, w.IsOver(v), "it is not over") })
		assert.Is(s, w.Err(), err)
	default:
		s.Error("it still waits")
	}
}

func (s *scene) wantLast(w *Waiter, err error) {
	s.Helper()
	s.under(func(v *tree.View) { assert.Is(s, w.Last(v), err, "the last failure") })
}

// failed says that names have failed.
func (s *scene) failed(to map[table.Link]error, cause error, names ...string) {
	for _, name := range names {
		to[at(name)] = cause
		s.under(func(v *tree.View) { s.q.NamesChanged(v, at(name)) })
	}
}

// A close waits for its content under each name of it, in that state or a newer one, and for
// the changes of names before.
func TestWaitForContent(t *testing.T) {
	s := newScene(t)
	s.does(makes(10, "a", 3))
	s.does(func(tx *tree.Tx) { tx.SetLocal(at("b"), 10, false, false); link(tx, 10, at("b")) })
	w := s.waits(&Waiter{Ino: 10, Version: 1})
	s.does(arrives("a"))
	s.wantWaits(w)
	s.does(writes(10, 4))
	s.does(arrives("b"))
	s.wantOver(w, nil)

	w = s.waits(&Waiter{Ino: 10, Version: 2})
	s.wantWaits(w) // of "a" the remote has the state before
	s.failed(s.passing, errPassing, "a")
	s.wantWaits(w)
	s.wantLast(w, errPassing)
	s.failed(s.final, errFinal, "a")
	s.wantOver(w, errFinal)

	s.wantOver(s.waits(&Waiter{Ino: 99, Version: 1}), nil) // it is no more
	s.does(func(tx *tree.Tx) {
		tx.Put(11, &table.Inode{ContentVersion: 1})
		tx.SetLocal(at("local"), 11, true, false)
		link(tx, 11, at("local"))
	})
	s.wantOver(s.waits(&Waiter{Ino: 11, Version: 1}), nil) // it never goes
}

// A name is waited for until both sides agree, another change has begun, or it is held back.
func TestWaitForNames(t *testing.T) {
	s := newScene(t)
	for i, name := range []string{"a", "b", "c", "d"} {
		s.does(makes(table.Ino(10+i), name, 0))
	}
	var w *Waiter
	s.under(func(v *tree.View) { w = &Waiter{Names: s.q.Structural(v)} })
	assert.Equal(t, len(w.Names), 4, "names")
	s.waits(w)
	s.does(arrives("a"))
	s.failed(s.final, errFinal, "b")
	s.does(removes("c")) // the remote has never had it
	s.does(makes(20, "c", 0))
	s.wantWaits(w)
	s.failed(s.passing, errPassing, "d")
	s.wantWaits(w)
	s.wantLast(w, errPassing)
	s.does(arrives("d"))
	s.wantOver(w, nil)
}

// Names whose content is all that differs have another waiter, or none.
func TestStructural(t *testing.T) {
	s := newScene(t)
	s.does(makes(10, "new", 3))
	s.does(makes(11, "new, empty", 0))
	s.does(makes(12, "new, empty, open", 0))
	s.open[12] = false
	s.does(makes(13, "changed", 3))
	s.does(makes(14, "removed", 3))
	s.does(arrives("changed"))
	s.does(arrives("removed"))
	s.does(writes(13, 4))
	s.does(removes("removed"))
	var names []string
	s.under(func(v *tree.View) {
		structural := s.q.Structural(v)
		v.Dirty(0, func(seq uint64, l table.Link) bool {
			if at, is := structural[l]; is {
				assert.Equal(t, at, seq, "the place of", l.Name)
				names = append(names, l.Name)
			}
			return true
		})
	})
	assert.Slice(t, names, []string{"new, empty", "removed"}, "names")
}

// A commit leaves alone what programs are writing, unless it is on its way, and hears of
// conflicts that are decided at once. Of those a close hears too, but says nothing.
func TestWaitForCommit(t *testing.T) {
	s := newScene(t)
	s.does(makes(10, "a", 3))
	s.does(makes(11, "b", 3))
	names := func() map[table.Link]uint64 { return map[table.Link]uint64{at("a"): 1, at("b"): 2} }
	s.open[10], s.open[11] = false, false
	s.sending[at("b")] = true
	w := s.waits(&Waiter{Commit: true, Names: names()})
	s.wantWaits(w) // for "b"
	assert.Equal(t, fmt.Sprint(w.Names), fmt.Sprint(map[table.Link]uint64{at("b"): 2}), "it waits for")
	s.under(func(v *tree.View) {
		assert.True(t, s.q.Conflict(v, at("b"), "where/b"), "a commit was told")
		assert.False(t, s.q.Conflict(v, at("a"), "where/a"), "a commit was told")
	})
	assert.Slice(t, w.Conflicts, []string{"where/b"}, "conflicts")
	s.does(arrives("b"))
	s.wantOver(w, nil)

	s.does(writes(11, 1))
	s.waits(&Waiter{Names: map[table.Link]uint64{at("b"): 3}})
	s.under(func(v *tree.View) {
		assert.False(t, s.q.Conflict(v, at("b"), "where/b"), "a commit was told")
	})
}

// Room is waited for until less is unsaved, and a place until it is known; no failure ends
// either.
func TestWaitForRoomAndPlace(t *testing.T) {
	s := newScene(t)
	s.does(makes(10, "a", 201))
	s.elsewhere[10] = true
	room, place := s.waits(&Waiter{Room: true}), s.waits(&Waiter{Place: 10})
	s.failed(s.final, errFinal, "a")
	s.under(func(v *tree.View) { s.q.Stall(v, errFinal) })
	s.wantWaits(room)
	s.wantWaits(place)
	delete(s.elsewhere, 10)
	s.under(func(v *tree.View) { s.q.Review(v) })
	s.wantWaits(room)
	s.wantOver(place, nil)
	s.does(writes(10, 200))
	s.wantOver(room, nil)
	s.under(func(v *tree.View) { assert.Equal(t, s.q.Waiting(v), 0, "waiters") })
}

// When nothing moves any more a waiter for content ends with why, and one for names alone
// without an error: those are told of elsewhere.
func TestStall(t *testing.T) {
	s := newScene(t)
	s.does(makes(10, "a", 3))
	s.does(makes(11, "b", 3))
	content, names := s.waits(&Waiter{Ino: 10, Version: 1}), s.waits(&Waiter{Names: map[table.Link]uint64{at("b"): 2}})
	cause := fmt.Errorf("of a directory: %w", errFinal)
	s.under(func(v *tree.View) { s.q.Stall(v, cause) })
	s.wantOver(content, ErrHeldUp)
	assert.Is(t, content.Err(), errFinal, "why")
	s.wantOver(names, nil)
}

// Progress gives waiters more time, and one that gives up ends once.
func TestAdvanceAndEnd(t *testing.T) {
	s, moved := newScene(t), 0
	s.does(makes(10, "a", 3))
	patient := s.waits(&Waiter{Ino: 10, Version: 1})
	other := s.waits(&Waiter{Ino: 10, Version: 1})
	s.under(func(v *tree.View) {
		patient.OnMoved(v, func() { moved++ })
		s.q.Advance(v)
		s.q.End(v, other, errPassing)
		s.q.End(v, other, errFinal)
		s.q.Advance(v)
	})
	assert.Equal(t, moved, 2, "told of progress")
	s.wantOver(other, errPassing)
	s.wantWaits(patient)
	s.does(arrives("a"))
	s.wantOver(patient, nil)
	s.under(s.q.Advance)
	assert.Equal(t, moved, 2, "told of progress")
}
