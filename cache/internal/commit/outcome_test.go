package commit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// begun is a set of all that differs, which the table has, and which was sent.
func (s *scene) begun() (u Unresolved, entries []providers.Info) {
	s.Helper()
	s.collect(func(set *Set) {
		u = set.Unresolved("op")
		for i := range set.Changes {
			entries = append(entries, providers.Info{Version: providers.Version{ETag: fmt.Sprint("of ", i)}})
		}
	})
	piece := assert.Of(NewPiece(0, u.Names)).OK(s)
	s.notes(func(tx upload.Tx) {
		assert.OK(s, u.Record(tx))
		u.Add(tx, piece)
	})
	return u, entries
}

// note notes an outcome in transactions of one name each, as far as it may, and returns how
// many there were.
func (s *scene) note(u Unresolved, entries []providers.Info, most int) (n int, noted []string) {
	s.Helper()
	o := Outcome{Unresolved: u, Entries: entries, Confirm: func(tx upload.Tx, l table.Link, base *table.Remote) {
		was := tx.Record(l).Remote
		if tx.SetRemote(l, base); was != nil && (base == nil || base.Ino != was.Ino) {
			tx.Shed(was.Ino)
		}
	}, Noted: func(_ upload.Tx, l table.Link) { noted = append(noted, l.Name) }}
	for _, step := range o.Steps() {
		size := 1
		if step.Whole {
			size = len(step.Names)
		}
		for piece := range slices.Chunk(step.Names, max(size, 1)) {
			if n++; n > most {
				return n, noted
			}
			s.notes(func(tx upload.Tx) { step.Note(tx, piece) })
		}
	}
	return n, noted
}

// remote is what the table says that the remote has: paths, and the inodes under them.
func (s *scene) remote() string {
	var all []string
	v := s.tree.Lock()
	defer s.tree.Unlock()
	var walk func(dir table.Ino, at string)
	walk = func(dir table.Ino, at string) {
		v.Names(dir, "", func(name string, rec table.Name) bool {
			if rec.Remote == nil {
				return true
			}
			text := fmt.Sprintf("%s%s=%d", at, name, rec.Remote.Ino)
			if rec.Attempt != nil {
				text += " (attempt)"
			}
			all = append(all, text)
			if rec.Remote.Kind == providers.KindDir {
				walk(rec.Remote.Ino, at+name+"/")
			}
			return true
		})
	}
	walk(table.Root, "")
	return strings.Join(all, " ")
}

// What a set left is noted so that no name differs after it, and that the remote has just
// what is here. A kill between any two transactions costs nothing: the next run, which knows
// the names and what they were before no more, notes the rest.
func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		what, want string
		make       func(*scene)
	}{
		{"a new file", "f=10", func(s *scene) { s.makes(10, file, root("f")) }},
		{"a tree that is new", "d=10 d/e=11 d/e/f=12", func(s *scene) {
			s.makes(10, dir, root("d"))
			s.makes(11, dir, at(10, "e"))
			s.makes(12, file, at(11, "f"))
		}},
		{"a tree that was removed", "", func(s *scene) {
			s.has(10, dir, root("d"))
			s.has(11, dir, at(10, "e"))
			s.has(12, file, at(11, "f"))
			s.removes(at(11, "f"))
			s.removes(at(10, "e"))
			s.removes(root("d"))
		}},
		{"a file that was renamed", "b=10", func(s *scene) { s.has(10, file, root("a")); s.moves(root("a"), root("b")) }},
		{"a file that was renamed and changed", "b=10", func(s *scene) {
			s.has(10, file, root("a"))
			s.moves(root("a"), root("b"))
			s.changes(10)
		}},
		{"a directory that was renamed", "b=10 b/f=11 b/n=12", func(s *scene) {
			s.has(10, dir, root("a"))
			s.has(11, file, at(10, "f"))
			s.moves(root("a"), root("b"))
			s.makes(12, file, at(10, "n"))
		}},
		{"an exchange", "a=11 a/g=13 b=10 b/f=12", func(s *scene) {
			s.has(10, dir, root("a"))
			s.has(11, dir, root("b"))
			s.has(12, file, at(10, "f"))
			s.has(13, file, at(11, "g"))
			s.does(func(tx *tree.Tx) { name(tx, root("a"), 11); name(tx, root("b"), 10) })
		}},
		{"a directory in another's place, which is in it now", "a=11 a/b=10", func(s *scene) {
			s.has(10, dir, root("a"))
			s.has(11, dir, root("b"))
			s.removes(root("b"))
			s.does(func(tx *tree.Tx) { name(tx, root("a"), 11) })
			s.does(func(tx *tree.Tx) { name(tx, at(11, "b"), 10) })
		}},
		{"a file in the place of another", "f=11", func(s *scene) {
			s.has(10, file, root("f"))
			s.removes(root("f"))
			s.makes(11, file, root("f"))
		}},
		{"a file in the place of a directory", "d=11", func(s *scene) {
			s.has(10, dir, root("d"))
			s.removes(root("d"))
			s.makes(11, file, root("d"))
		}},
		{"a directory in the place of a file", "f=11 f/g=12", func(s *scene) {
			s.has(10, file, root("f"))
			s.removes(root("f"))
			s.makes(11, dir, root("f"))
			s.makes(12, file, at(11, "g"))
		}},
	} {
		steps := 1
		for kill := 0; kill < steps; kill++ {
			what := fmt.Sprintf("%s, killed after %d of %d", c.what, kill, steps)
			s := newScene(t)
			s.was.Capabilities.EmptyDirs = true
			c.make(s)
			_, entries := s.begun()
			steps, _ = s.note(s.read(), entries, kill)
			_, noted := s.note(s.read(), entries, 1<<20)
			assert.Equal(t, s.remote(), c.want, what)
			u := s.read()
			assert.Equal(t, len(noted), len(u.Names), what, "told of")
			v := s.tree.Lock()
			v.Dirty(0, func(_ uint64, l table.Link) bool { t.Errorf("%s: %v differs", what, l); return true })
			s.tree.Unlock()
		}
	}
}

// read is the set as a run finds it that comes after a kill.
func (s *scene) read() Unresolved {
	s.Helper()
	u, ok, err := s.unresolved()
	assert.True(s, ok && err == nil, "unresolved", err)
	v := s.tree.Lock()
	defer s.tree.Unlock()
	for _, p := range u.Names {
		p.Rec = v.Record(p.Link)
	}
	return u
}

// What the remote has of content is known from the answer, unless that content has changed
// since: then nothing is said of the new.
func TestOriginOfWhatWasSent(t *testing.T) {
	s := newScene(t)
	s.makes(10, file, root("same"))
	s.makes(11, file, root("changed"))
	u, entries := s.begun()
	s.changes(11)
	s.note(u, entries, 1<<20)
	v := s.tree.Lock()
	defer s.tree.Unlock()
	for i, p := range u.Names {
		version := entries[p.Index].Version
		assert.Equal(t, v.Record(p.Link).Remote.Version, version, p.Link.Name)
		assert.Equal(t, v.Inode(p.Ino).Origin.Version == version, i == 0, p.Link.Name)
	}
}
