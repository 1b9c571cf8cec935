package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// A Set is all differing names as one change of the remote, from the tree that the remote has to
// the local tree. Both trees are in the table, over one set of inodes, so a rename of a directory
// is two entries of the set however much is below. A name that cannot be sent now (held back,
// being written) keeps its place in the tree of the remote, and its dependents stay out too.
//
// A set is made of the volume as it was at one moment. That takes time in proportion to its names,
// and no lock. Later changes are left to the next set, as are changes made while the set is sent.
type Set struct {
	Order []*Planned // the names that go, in the order in which they began to differ

	Until    uint64                  // history records from this id on are later than the set
	Stopped  []Stopped               // names that the guard keeps out
	Left     []table.Link            // names that were due and are not in the set
	Stays    map[table.Link]struct{} // names that are ignored, or no longer, and not marked so yet
	Carriers rules.Carriers          // directories that go although they are ignored
	Astray   []table.Link            // names that the remote cannot have where the table says
	Unsure   bool                    // rules that apply are unknown: it is to be collected anew
	Bring    []table.Link            // names that are to stay local, once their content is fetched

	Changes []providers.Change
	Bodies  []*Planned // whose content goes with changes of the same index; nil: none

	content *Bodies // of the last attempt to send it; nil: there was none

	was   *Moment                 // that it is made of; nil: it is complete
	names map[table.Link]*Planned // of Order
	after map[table.Ino]spot      // the places of directories when the set is done
}

// A Moment is a working copy as it was when a set is made of it.
type Moment struct {
	*tree.View
	At           *tree.Snapshot // the snapshot that View reads, of a set that is to be sent
	Capabilities providers.Capabilities
	Planner      *upload.Planner // one for which no operation is under way
	Next         uint64          // history records from this id on are later

	IsWriting func(rec table.Name) bool // content is left alone because a program was writing it
	Loose     map[table.Ino]struct{}    // content that goes as it is when it is read
	Held      map[table.Link]struct{}   // names that were under way, resting or held back
	Because   map[table.Link]struct{}   // names that are due although they began to differ later
	Cleared   uint64                    // deletions up to this seq were confirmed

	Rules  Rules // nil: nothing is ignored
	Guard  *Guard
	Found  Findings // secrets, in content
	AttrOf func(n *table.Inode) providers.Attr

	Progress func(done, total int)
}

// Rules say which names stay on this machine.
type Rules interface {
	// Carriers are the directories that go although they are ignored, and the names that stay
	// local by now.
	Carriers() (rules.Carriers, []table.Link)
	// Sorted reports whether a name stays; ok is false when that is not known yet.
	Sorted(l table.Link, rec table.Name, n *table.Inode, c rules.Carriers) (stays, ok bool)
	// IsLearned reports whether all rules are known that apply to a name.
	IsLearned(l table.Link, n *table.Inode) bool
}

// Planned is the plan of a set for one name. The fields in its JSON are kept until the outcome is
// known.
type Planned struct {
	Link    table.Link
	Ino     table.Ino      `json:",omitempty"` // of the remote's entry afterwards; 0: no entry
	Kind    providers.Kind `json:",omitempty"`
	Gen     uint64         `json:",omitempty"`
	AttrGen uint64         `json:",omitempty"`
	Index   int            // of the change that makes the entry; -1: none does
	Before  string         // its place in the tree before
	After   string

	Rec      table.Name        `json:"-"` // like the fields below as collected; of an earlier run's set, before the outcome is noted
	Inode    *table.Inode      `json:"-"` // of Ino, until the set is made; nil: none
	BeforeAt providers.Locator `json:"-"`
	Last     bool              `json:"-"` // the set removes the last remote copy of content that no local name has
	Size     int64             `json:"-"` // of the content
	Writing  bool              `json:"-"` // a dirty intent was recorded
	Loose    bool              `json:"-"` // the content is taken in the state in which it is read
}

// Stopped is a name that a set leaves out, and why.
type Stopped struct {
	Link table.Link
	Err  error
}

// Collect makes a set of the names that differ up to a place in the order, and of later names that
// they depend on. Made lets go of the moment.
func Collect(ctx context.Context, was *Moment, due uint64) (*Set, error) {
	s := &Set{was: was, names: map[table.Link]*Planned{}, Stays: map[table.Link]struct{}{}, Until: was.Next}
	s.carry()
	was.Dirty(0, func(seq uint64, l table.Link) bool {
		_, follows := was.Because[l]
		switch {
		case seq <= due || follows:
			s.take(l)
		case len(was.Because) == 0:
			return false
		}
		was.Progress(len(s.Order), was.DirtyCount())
		return ctx.Err() == nil
	})
	s.complete()
	s.close()
	if s.guard(); len(s.Stopped) > 0 {
		s.close()
	}
	s.addAll()
	s.leave(due)
	return s, errors.Join(ctx.Err(), was.Err())
}

// Without takes names out of the set that do not exist any more, with their dependents.
func (s *Set) Without(gone []table.Link) {
	for _, l := range gone {
		delete(s.names, l)
	}
	s.Order = slices.DeleteFunc(s.Order, func(p *Planned) bool { return s.names[p.Link] == nil })
	s.close()
	s.addAll()
}

// Made lets go of the moment that the set was made of.
func (s *Set) Made() {
	s.was, s.after = nil, nil
	for _, p := range s.Order {
		p.Inode = nil
	}
}

// leave lists the names that were due and are not in the set.
func (s *Set) leave(due uint64) {
	s.was.Dirty(0, func(seq uint64, l table.Link) bool {
		if seq <= due && s.names[l] == nil {
			s.Left = append(s.Left, l)
		}
		return seq <= due
	})
}

// take takes a name into the set, unless it is to stay out.
func (s *Set) take(l table.Link) {
	if s.ignores(l) {
		return
	}
	if p := s.planned(l); p != nil {
		s.names[l] = p
		s.Order = append(s.Order, p)
	}
}

// ignores reports whether a name stays out because it is ignored, or because that is not known
// yet.
func (s *Set) ignores(l table.Link) bool {
	v, rec := s.was, s.was.Record(l)
	if v.Rules == nil || rec.Remote != nil || rec.Ino == 0 || s.was.IsWriting(rec) {
		return false
	}
	n := v.Inode(rec.Ino)
	stays, ok := v.Rules.Sorted(l, rec, n, s.Carriers)
	switch {
	case !ok:
		sure := v.Rules.IsLearned(l, n)
		if s.Unsure = s.Unsure || !sure; sure {
			s.Bring = append(s.Bring, l)
		}
	case stays != rec.Local:
		s.Stays[l] = struct{}{}
	}
	return stays || !ok
}

// complete adds the names that those in the set depend on, although they began to differ later: a
// pull may have set back a directory whose place another took long ago.
func (s *Set) complete() {
	asked := map[table.Link]bool{}
	for from := 0; from < len(s.Order); {
		s.after = newAfter()
		from = len(s.Order)
		for _, p := range s.Order[:from] {
			for _, l := range slices.Collect(s.lacks(p)) { // take changes the result of lacks
				if s.names[l] == nil && !asked[l] && s.was.Record(l).Seq != 0 {
					s.take(l)
				}
				asked[l] = true
			}
		}
	}
	slices.SortFunc(s.Order, func(a, b *Planned) int { return cmp.Compare(a.Rec.Seq, b.Rec.Seq) })
}

// planned is the plan for a name; nil when it is to stay out.
func (s *Set) planned(l table.Link) *Planned {
	v := s.was
	rec := v.Record(l)
	if _, held := v.Held[l]; held || v.IsWriting(rec) {
		return nil
	}
	if rec.Local {
		rec.Ino = 0
	}
	p := &Planned{Link: l, Ino: rec.Ino, Index: -1, Rec: rec}
	at, there := v.RemotePath(l)
	p.BeforeAt = at
	p.Before = p.BeforeAt.String()
	if rec.Remote != nil && !there {
		s.Astray = append(s.Astray, l)
		return nil
	}
	p.Inode = v.Inode(rec.Ino)
	if n := p.Inode; n != nil {
		if n.Suspect && (pending.Carries(rec, n) || !pending.IsKnown(v.View, rec.Ino, n)) {
			return nil
		}
		p.Gen, p.AttrGen, p.Kind = n.ContentVersion, n.AttrGen, providers.KindFile
		p.Size, p.Writing = n.Size, n.Writing
		_, p.Loose = v.Loose[rec.Ino]
		switch {
		case n.IsDir():
			p.Kind = providers.KindDir
		case n.IsSymlink():
			p.Kind = providers.KindSymlink
		}
	}
	return p
}

// close removes names whose dependencies are left out.
func (s *Set) close() {
	for {
		s.after = newAfter()
		n, seen := len(s.Order), 0
		s.Order = slices.DeleteFunc(s.Order, func(p *Planned) bool {
			seen++
			s.was.Progress(seen, n)
			if s.whole(p) {
				return false
			}
			delete(s.names, p.Link)
			return true
		})
		if len(s.Order) == n {
			return
		}
	}
}

// whole reports whether all names that a name depends on are in the set.
func (s *Set) whole(p *Planned) bool {
	at, _ := s.at(p.Link)
	p.After = at.String()
	for range s.lacks(p) {
		return false
	}
	return true
}

// lacks are the names that one depends on, and that are not in the set as required: that of its
// directory; the old one of a directory that goes to another name, for one directory cannot be at
// two places; the one that takes the inode that the remote has in its place; and all in a
// directory that is to go.
func (s *Set) lacks(p *Planned) iter.Seq[table.Link] {
	return func(yield func(table.Link) bool) {
		if _, ok := s.at(p.Link); p.Ino != 0 && !ok && !yield(s.way(p.Link.Dir)) {
			return
		}
		moved := p.Kind == providers.KindDir && p.Inode != nil && len(p.Inode.RemoteLinks) > 0 && !slices.Contains(p.Inode.RemoteLinks, p.Link)
		if moved && s.names[p.Inode.RemoteLinks[0]] == nil && !yield(p.Inode.RemoteLinks[0]) || p.Rec.Remote == nil || p.Rec.Remote.Ino == p.Ino {
			return
		}
		if to, moves := s.rescued(p); moves {
			if s.names[to] == nil {
				yield(to)
			}
			return
		}
		if p.Rec.Remote.Kind == providers.KindDir {
			s.keeps(p.Rec.Remote.Ino)(yield)
		}
	}
}

// carry finds the carriers of a set. If some stay local by rules that were applied before the
// move, they are sorted again, and the set is made anew.
func (s *Set) carry() {
	v := s.was
	if v.Rules == nil {
		return
	}
	var stay []table.Link
	s.Carriers, stay = v.Rules.Carriers()
	for _, l := range stay {
		rec := s.was.Record(l)
		if stays, ok := v.Rules.Sorted(l, rec, v.Inode(rec.Ino), s.Carriers); ok && !stays {
			s.Stays[l] = struct{}{}
			s.Unsure = true
		}
	}
}

// About finds the names that an error refers to.
func (s *Set) About(err error) (names []*Planned) {
	var at *providers.Error
	if !errors.As(err, &at) || at.Locator.IsRoot() {
		return nil
	}
	where := at.Locator.String()
	for _, p := range s.Order {
		from := ""
		if p.Index >= 0 {
			from = s.Changes[p.Index].From.String()
		}
		if p.Before == where || p.After == where || from == where {
			names = append(names, p)
		}
	}
	return names
}

// Message describes a set.
func (s *Set) Message() string {
	paths := map[string]bool{}
	for _, p := range s.Order {
		if p.Ino != 0 {
			paths[p.After] = true
		} else {
			paths[p.Before] = true
		}
	}
	list := make([]string, 0, len(paths))
	for path := range paths {
		list = append(list, path)
	}
	slices.Sort(list)
	if len(list) > 3 {
		return fmt.Sprintf("%s, %s and %d more", list[0], list[1], len(list)-2)
	}
	return strings.Join(list, ", ")
}
