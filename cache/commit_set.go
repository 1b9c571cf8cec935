package cache

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// A set is all that differs as one change of the backend: how the tree that it
// has becomes the tree that is here. Both trees are in the table, over one set
// of inodes, so a rename of a directory is two entries of the set however much
// is below. What cannot be sent now (held back, being written) keeps its place
// in the tree of the backend, and what depends on that stays out too.
//
// A set is made of the volume as it was at one moment (was), which takes as long
// as there are names in it, and no lock. What is changed meanwhile is left to the
// next set, as what is changed while it is sent.
type set struct {
	c     *setCommitter
	was   *snapshot               // of the moment that it is made of; nil: it is made
	names map[table.Link]*planned // what goes
	order []*planned
	after map[table.Ino]spot // where directories are when the set is done

	until    uint64                  // records from here on tell of what came later
	stopped  []stopped               // what the guard keeps out
	left     []table.Link            // what was due and is not in it
	stays    map[table.Link]struct{} // what is ignored, or no longer, and not marked so yet
	carriers rules.Carriers          // directories that go although they are ignored
	astray   []table.Link            // what the backend cannot have where it is said to
	unsure   bool                    // rules that count were not learned: it is to be collected anew
	bring    []table.Link            // content that is to stay here has to come first

	changes []providers.Change
	bodies  []*planned   // whose content goes with changes of the same index; nil: none
	sent    atomic.Int64 // bodies that were read to their end
}

// planned is what a set does with one name. The exported fields are kept until
// the outcome is known.
type planned struct {
	Link    table.Link
	Ino     table.Ino      `json:",omitempty"` // what the backend has there then; 0: nothing
	Kind    providers.Kind `json:",omitempty"`
	Gen     uint64         `json:",omitempty"`
	AttrGen uint64         `json:",omitempty"`
	Index   int            // of the change that leaves it; -1: none does
	Before  string         // its place in the tree before
	After   string

	rec    table.Name   // as it was collected, like what follows; of a set of another run, as it was before it is noted
	n      *table.Inode // of Ino, until the set is made; nil: none
	before providers.Locator
	there  bool // before means something
	last   bool // the set removes the last remote copy of content that no local name has

	size    int64 // of the content
	writing bool  // somebody had said that he might change it
	loose   bool  // it is taken as it is when it is read
	parcel  *payload
}

type spot struct {
	at providers.Locator
	ok bool
}

// collect makes a set of the names that differ up to a place in the order, and of those
// behind it that they depend on, as they were in the snapshot was.
func (c *setCommitter) collect(ctx context.Context, was *snapshot, due uint64) (*set, error) {
	s := &set{c: c, was: was, names: map[table.Link]*planned{}, stays: map[table.Link]struct{}{}, until: was.next}
	s.carry()
	was.table.Dirty(0, func(seq uint64, l table.Link) bool {
		_, follows := was.because[l]
		switch {
		case seq <= due || follows:
			s.take(l)
		case len(was.because) == 0:
			return false
		}
		c.v.doing.goesOn(doesCollect, len(s.order), was.table.DirtyCount())
		return ctx.Err() == nil
	})
	s.complete()
	s.close()
	if s.guard(); len(s.stopped) > 0 {
		s.close()
	}
	s.addAll()
	s.leave(due)
	return s, errors.Join(ctx.Err(), was.table.Err())
}

// without takes names out of the set that are no more, with what depends on them.
func (s *set) without(gone []table.Link) {
	for _, l := range gone {
		delete(s.names, l)
	}
	s.order = slices.DeleteFunc(s.order, func(p *planned) bool { return s.names[p.Link] == nil })
	s.close()
	s.addAll()
}

// made lets go of what the set was made of.
func (s *set) made() {
	s.was, s.after = nil, nil
	for _, p := range s.order {
		p.n = nil
	}
}

// leave lists what was due and is not in the set.
func (s *set) leave(due uint64) {
	s.was.table.Dirty(0, func(seq uint64, l table.Link) bool {
		if seq <= due && s.names[l] == nil {
			s.left = append(s.left, l)
		}
		return seq <= due
	})
}

// take takes a name into the set, unless it is to stay out.
func (s *set) take(l table.Link) {
	if s.ignores(l) {
		return
	}
	if p := s.planned(l); p != nil {
		s.names[l] = p
		s.order = append(s.order, p)
	}
}

// ignores reports whether a name stays out because it is ignored, or because
// nobody knows yet.
func (s *set) ignores(l table.Link) bool {
	v, rec := s.was, s.was.Record(l)
	if !v.ignoring() || rec.Remote != nil || rec.Ino == 0 || s.was.isWriting(rec) {
		return false
	}
	n := v.table.Inode(rec.Ino)
	stays, ok := v.sorted(l, rec, n, s.carriers)
	switch {
	case !ok:
		_, sure := v.ignores.Ignored(v, l, n.IsDir())
		if s.unsure = s.unsure || !sure; sure {
			s.bring = append(s.bring, l)
		}
	case stays != rec.Local:
		s.stays[l] = struct{}{}
	}
	return stays || !ok
}

// complete takes in what those in the set depend on, although it began to differ
// later: a pull may have set back a directory whose place something else took
// long ago.
func (s *set) complete() {
	asked := map[table.Link]bool{}
	for from := 0; from < len(s.order); {
		s.after = newAfter()
		from = len(s.order)
		for _, p := range s.order[:from] {
			for _, l := range slices.Collect(s.lacks(p)) { // taking changes what is lacking
				if s.names[l] == nil && !asked[l] && s.was.Record(l).Seq != 0 {
					s.take(l)
				}
				asked[l] = true
			}
		}
	}
	slices.SortFunc(s.order, func(a, b *planned) int { return cmp.Compare(a.rec.Seq, b.rec.Seq) })
}

// newAfter knows where the root is.
func newAfter() map[table.Ino]spot { return map[table.Ino]spot{table.Root: {ok: true}} }

// planned is what is to become of a name; nil when it is to stay out.
func (s *set) planned(l table.Link) *planned {
	v := s.was
	rec := v.Record(l)
	if _, held := v.held[l]; held || v.isWriting(rec) {
		return nil
	}
	if rec.Local {
		rec.Ino = 0
	}
	p := &planned{Link: l, Ino: rec.Ino, Index: -1, rec: rec}
	p.before, p.there = v.RemotePath(l)
	p.Before = p.before.String()
	if rec.Remote != nil && !p.there {
		s.astray = append(s.astray, l)
		return nil
	}
	p.n = v.table.Inode(rec.Ino)
	if n := p.n; n != nil {
		if n.Suspect && (pending.Carries(rec, n) || !pending.IsKnown(v.View.View, rec.Ino, n)) {
			return nil
		}
		p.Gen, p.AttrGen, p.Kind = n.ContentVersion, n.AttrGen, providers.KindFile
		p.size, p.writing = n.Size, n.Writing
		_, p.loose = v.loose[rec.Ino]
		switch {
		case n.IsDir():
			p.Kind = providers.KindDir
		case n.IsSymlink():
			p.Kind = providers.KindSymlink
		}
	}
	return p
}

// close leaves out what depends on something that is left out.
func (s *set) close() {
	for {
		s.after = newAfter()
		n, seen := len(s.order), 0
		s.order = slices.DeleteFunc(s.order, func(p *planned) bool {
			seen++
			s.c.v.doing.goesOn(doesCollect, seen, n)
			if s.whole(p) {
				return false
			}
			delete(s.names, p.Link)
			return true
		})
		if len(s.order) == n {
			return
		}
	}
}

// whole reports whether all that a name depends on is in the set.
func (s *set) whole(p *planned) bool {
	at, _ := s.at(p.Link)
	p.After = at.String()
	for range s.lacks(p) {
		return false
	}
	return true
}

// lacks are the names that one depends on, and that are not in the set as they
// would have to be: that of its directory; the old one of a directory that goes
// to another name, for one directory cannot be at two places; the one that takes
// what the backend has in its place; and all in a directory that is to go.
func (s *set) lacks(p *planned) iter.Seq[table.Link] {
	return func(yield func(table.Link) bool) {
		if _, ok := s.at(p.Link); p.Ino != 0 && !ok && !yield(s.way(p.Link.Dir)) {
			return
		}
		moved := p.Kind == providers.KindDir && p.n != nil && len(p.n.RemoteLinks) > 0 && !slices.Contains(p.n.RemoteLinks, p.Link)
		if moved && s.names[p.n.RemoteLinks[0]] == nil && !yield(p.n.RemoteLinks[0]) || p.rec.Remote == nil || p.rec.Remote.Ino == p.Ino {
			return
		}
		if to, moves := s.rescued(p); moves {
			if s.names[to] == nil {
				yield(to)
			}
			return
		}
		if p.rec.Remote.Kind == providers.KindDir {
			s.keeps(p.rec.Remote.Ino)(yield)
		}
	}
}

// way is the name of a directory, for one that is nowhere in the tree after.
func (s *set) way(dir table.Ino) (l table.Link) {
	if n := s.was.table.Inode(dir); n != nil && len(n.Links) > 0 {
		return n.Links[0]
	}
	return l
}

// rescued finds the name that takes what the backend has under p, if the set leaves
// that no other place there.
func (s *set) rescued(p *planned) (to table.Link, moves bool) {
	n := s.was.table.Inode(p.rec.Remote.Ino)
	if n == nil || s.staysElse(p, n) {
		return to, false
	}
	for _, l := range n.Links {
		_, stays := s.stays[l]
		if rec := s.was.Record(l); l != p.Link && !rec.Local && !stays && (rec.Remote == nil || rec.Remote.Ino != p.rec.Remote.Ino) {
			return l, true
		}
	}
	return to, false
}

// staysElse reports whether the set leaves what the backend has under p under another
// name too, as new: of several names that it has there, one set may take all.
func (s *set) staysElse(p *planned, n *table.Inode) bool {
	return slices.ContainsFunc(n.RemoteLinks, func(l table.Link) bool {
		other, taken := s.was.Record(l).Remote, s.names[l]
		return l != p.Link && other != nil && other.ContentVersion >= p.rec.Remote.ContentVersion && (taken == nil || taken.Ino == other.Ino)
	})
}

// keeps are the names in a directory that the set neither deletes nor moves.
func (s *set) keeps(dir table.Ino) iter.Seq[table.Link] {
	return func(yield func(table.Link) bool) {
		s.was.table.Names(dir, "", func(name string, rec table.Name) bool {
			l := table.Link{Dir: dir, Name: name}
			p := s.names[l]
			return rec.Remote == nil || p != nil && p.Ino == 0 || yield(l)
		})
	}
}

// at is where a name is in the tree after.
func (s *set) at(l table.Link) (providers.Locator, bool) {
	dir := s.dirAt(l.Dir)
	if !dir.ok {
		return providers.Locator{}, false
	}
	at, err := dir.at.Child(l.Name)
	return at, err == nil
}

// dirAt is where a directory is in the tree after.
func (s *set) dirAt(dir table.Ino) spot {
	if p, known := s.after[dir]; known {
		return p
	}
	s.after[dir] = spot{} // a ring has no place
	n := s.was.table.Inode(dir)
	var p spot
	if n != nil {
		for _, l := range slices.Concat(n.Links, n.RemoteLinks) {
			here, moved := s.names[l], false
			if here != nil {
				moved = here.Ino != dir
			} else {
				rec := s.was.Record(l)
				moved = rec.Remote == nil || rec.Remote.Ino != dir
			}
			if !moved {
				p.at, p.ok = s.at(l)
				break
			}
		}
	}
	s.after[dir] = p
	return p
}
