package cache

import (
	"cmp"
	"iter"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// A set is all that differs as one change of the backend: how the tree that it
// has becomes the tree that is here. Both trees are in the table, over one set
// of inodes, so a rename of a directory is two entries of the set however much
// is below. What cannot be sent now (held back, being written) keeps its place
// in the tree of the backend, and what depends on that stays out too.
type set struct {
	e     *engine
	names map[table.Link]*planned // what goes
	order []*planned
	after map[table.Ino]spot // where directories are when the set is done

	until   uint64       // records from here on tell of what came later
	stopped []stopped    // what the guard keeps out
	unsure  bool         // rules that count were not learned: it is to be collected anew
	bring   []table.Link // content that is to stay here has to come first

	changes []providers.Change
	bodies  []*planned // whose content goes with changes of the same index; nil: none
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

	rec    table.Name
	before providers.Locator
	there  bool // before means something
	parcel *parcel
}

type spot struct {
	at providers.Locator
	ok bool
}

// collect makes a set of the names that differ up to a place in the order, and
// of those behind it that they depend on; mu is held.
func (e *engine) collect(due uint64) *set {
	s := &set{e: e, names: map[table.Link]*planned{}, until: e.v.table.NextSeq()}
	e.v.table.Dirty(0, func(seq uint64, l table.Link) bool {
		if seq > due && len(e.because) == 0 {
			return false
		}
		if _, follows := e.because[l]; seq > due && !follows {
			return true
		}
		s.take(l)
		return true
	})
	s.complete()
	s.close()
	e.memo = newMemo()
	defer func() { e.memo = nil }()
	if s.guard(); len(s.stopped) > 0 {
		s.close()
	}
	for _, p := range s.order {
		s.add(p)
	}
	return s
}

// take takes a name into the set, unless it is to stay out.
func (s *set) take(l table.Link) {
	if s.ignores(l) {
		return
	}
	if p := s.e.planned(l); p != nil {
		s.names[l] = p
		s.order = append(s.order, p)
	}
}

// ignores reports whether a name stays out because it is ignored, or because
// nobody knows yet.
func (s *set) ignores(l table.Link) bool {
	v, rec := s.e.v, s.e.record(l)
	if !v.ignoring() || rec.Base != nil || rec.Ino == 0 || s.e.beingWritten(rec) {
		return false
	}
	stays, ok := v.resort(l, rec, v.table.Inode(rec.Ino))
	if !ok {
		_, sure := v.ignored(l, isDir(v.table.Inode(rec.Ino)))
		if s.unsure = s.unsure || !sure; sure {
			s.bring = append(s.bring, l)
		}
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
			for _, l := range slices.Collect(s.lacks(p)) { // taking changes the table
				if s.names[l] == nil && !asked[l] && s.e.record(l).Seq != 0 {
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
func (e *engine) planned(l table.Link) *planned {
	rec := e.record(l)
	if t := e.tasks[l]; t != nil && t.state != taskIdle || e.beingWritten(rec) {
		return nil
	}
	if rec.Local {
		rec.Ino = 0
	}
	p := &planned{Link: l, Ino: rec.Ino, Index: -1, rec: rec}
	p.before, p.there = e.v.home(l)
	p.Before = p.before.String()
	if rec.Base != nil && !p.there {
		// The backend cannot have a name in a directory that it does not have:
		// if it has, it will say so when this is sent as new.
		e.v.o.Log.Warn("a name without its directory at the backend is sent as new", "name", l.Name)
		e.v.setBase(l, nil)
		return nil
	}
	if n := e.v.table.Inode(rec.Ino); n != nil {
		if n.Suspect && (carries(rec, n) || !e.knows(rec.Ino, n)) {
			return nil
		}
		p.Gen, p.AttrGen, p.Kind = n.Gen, n.AttrGen, providers.KindFile
		switch {
		case isDir(n):
			p.Kind = providers.KindDir
		case isSymlink(n):
			p.Kind = providers.KindSymlink
		}
	}
	return p
}

// close leaves out what depends on something that is left out.
func (s *set) close() {
	for {
		s.after = newAfter()
		n := len(s.order)
		s.order = slices.DeleteFunc(s.order, func(p *planned) bool {
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
		n := s.e.v.table.Inode(p.Ino)
		moved := p.Kind == providers.KindDir && n != nil && len(n.Homes) > 0 && !slices.Contains(n.Homes, p.Link)
		if moved && s.names[n.Homes[0]] == nil && !yield(n.Homes[0]) || p.rec.Base == nil || p.rec.Base.Ino == p.Ino {
			return
		}
		if to, moves := s.rescued(p); moves {
			if s.names[to] == nil {
				yield(to)
			}
			return
		}
		if p.rec.Base.Kind == providers.KindDir {
			s.keeps(p.rec.Base.Ino)(yield)
		}
	}
}

// way is the name of a directory, for one that is nowhere in the tree after.
func (s *set) way(dir table.Ino) (l table.Link) {
	if n := s.e.v.table.Inode(dir); n != nil && len(n.Links) > 0 {
		return n.Links[0]
	}
	return l
}

// rescued finds the name that takes what the backend has under p, if that has no
// other place there.
func (s *set) rescued(p *planned) (to table.Link, moves bool) {
	n := s.e.v.table.Inode(p.rec.Base.Ino)
	if n == nil || len(n.Homes) > 1 {
		return to, false
	}
	for _, l := range n.Links {
		if rec := s.e.record(l); l != p.Link && !rec.Local && (rec.Base == nil || rec.Base.Ino != p.rec.Base.Ino) {
			return l, true
		}
	}
	return to, false
}

// keeps are the names in a directory that the set neither deletes nor moves.
func (s *set) keeps(dir table.Ino) iter.Seq[table.Link] {
	return func(yield func(table.Link) bool) {
		s.e.v.table.Names(dir, "", func(name string, rec table.Name) bool {
			l := table.Link{Dir: dir, Name: name}
			p := s.names[l]
			return rec.Base == nil || p != nil && p.Ino == 0 || yield(l)
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
	n := s.e.v.table.Inode(dir)
	var p spot
	if n != nil {
		for _, l := range slices.Concat(n.Links, n.Homes) {
			here, moved := s.names[l], false
			if here != nil {
				moved = here.Ino != dir
			} else {
				rec := s.e.record(l)
				moved = rec.Base == nil || rec.Base.Ino != dir
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

// add says what is to become of a name in terms of the backend.
func (s *set) add(p *planned) {
	base := p.rec.Base
	n := s.e.v.table.Inode(p.Ino)
	c := providers.Change{If: providers.IfAbsent()}
	c.Locator, _ = s.at(p.Link)
	switch {
	case base == nil || p.Kind == providers.KindDir && s.adopts(p, n):
	case s.inPlace(p, n):
		c.If = condition(base)
	default:
		s.remove(p)
	}
	switch {
	case p.Ino == 0:
	case p.Kind == providers.KindDir:
		s.addDir(p, n, c)
	default:
		s.addFile(p, n, c)
	}
}

// adopts reports whether a directory is at the backend already: it is its own,
// or a new one here takes over a place where one was removed.
func (s *set) adopts(p *planned, n *table.Inode) bool {
	base := p.rec.Base
	if base.Kind != providers.KindDir {
		return false
	}
	_, moves := s.rescued(p)
	return base.Ino == p.Ino || len(n.Homes) == 0 && !moves
}

// inPlace reports whether what a name gets takes the place of what is there,
// without anything in between.
func (s *set) inPlace(p *planned, n *table.Inode) bool {
	was := p.rec.Base.Kind == providers.KindDir
	switch {
	case p.Ino == 0 || was != (p.Kind == providers.KindDir):
		return false
	case !was:
		return true
	}
	_, moves := s.rescued(p)
	return moves && len(n.Homes) > 0 && s.exists(p.rec.Base.Ino) && s.exists(p.Ino)
}

// exists reports whether a directory is there at the backend, where those
// without entries are not.
func (s *set) exists(dir table.Ino) bool {
	n := s.e.v.table.Inode(dir)
	if s.e.v.caps.EmptyDirs || n == nil || !n.Loaded {
		return true
	}
	found := false
	s.e.v.table.Names(dir, "", func(_ string, rec table.Name) bool {
		found = rec.Base != nil && (rec.Base.Kind != providers.KindDir || s.exists(rec.Base.Ino))
		return !found
	})
	return found
}

// remove deletes what the backend has under a name. Where directories come and
// go with their entries, one need be named only if it is taken elsewhere, or if
// something takes its place.
func (s *set) remove(p *planned) {
	c := providers.Change{Locator: p.before, Delete: true, If: condition(p.rec.Base)}
	if p.rec.Base.Kind == providers.KindDir {
		_, moves := s.rescued(p)
		if !s.e.v.caps.EmptyDirs && (!moves && p.Ino == 0 || !s.exists(p.rec.Base.Ino)) {
			return
		}
		c.Dir = true
	}
	s.push(c, nil)
}

// push adds a change, with its content.
func (s *set) push(c providers.Change, body *planned) {
	s.changes = append(s.changes, c)
	s.bodies = append(s.bodies, body)
}

func (s *set) addDir(p *planned, n *table.Inode, c providers.Change) {
	c.Dir = true
	switch {
	case p.rec.Base != nil && s.adopts(p, n):
		return
	case len(n.Homes) == 0 && !s.e.v.caps.EmptyDirs:
		return
	case len(n.Homes) == 0:
		c.Attr, c.Metadata = s.e.v.attrOf(n), n.Metadata
	case !s.exists(p.Ino):
		return
	default:
		c.From, _ = s.e.v.home(n.Homes[0])
	}
	p.Index = len(s.changes)
	s.push(c, nil)
}

func (s *set) addFile(p *planned, n *table.Inode, c providers.Change) {
	c.Kind, c.Attr = p.Kind, s.e.v.attrOf(n)
	var body *planned
	if home, there := s.source(p, n); there {
		base := s.e.record(home).Base
		c.From, _ = s.e.v.home(home)
		c.FromVersion = base.Version
		if base.AttrGen == p.AttrGen {
			c.Attr = providers.Attr{}
		}
	} else {
		c.Metadata, body = n.Metadata, p
	}
	p.Index = len(s.changes)
	s.push(c, body)
}

// source is where the backend has the content that a name is to get; there is
// false when it has to be sent.
func (s *set) source(p *planned, n *table.Inode) (l table.Link, there bool) {
	from := s.e.homeFor(p.Ino, n)
	l, there = from.Link, from.any
	if p.rec.Base != nil && p.rec.Base.Ino == p.Ino {
		l, there = p.Link, true
	}
	base := s.e.record(l).Base
	return l, there && base != nil && base.Gen == p.Gen
}

// deletions counts what a set takes away, for the rule of halt.go.
func (s *set) deletions() (all, inRoot, madeInRoot int) {
	for _, p := range s.order {
		root := p.Link.Dir == table.Root
		switch {
		case p.rec.Base == nil && root:
			madeInRoot++
		case p.Ino != 0 || p.rec.Base == nil:
		default:
			if _, moves := s.rescued(p); !moves {
				all++
			}
			if root {
				inRoot++
			}
		}
	}
	return all, inRoot, madeInRoot
}
