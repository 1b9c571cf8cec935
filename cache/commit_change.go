package cache

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// addAll says what is to become of all names.
func (s *set) addAll() {
	s.changes, s.bodies = nil, nil
	for i, p := range s.order {
		p.Index = -1
		p.last = s.isLast(p)
		s.add(p)
		s.c.v.doing.goesOn(doesCollect, i, len(s.order))
	}
}

// add says what is to become of a name in terms of the backend.
func (s *set) add(p *planned) {
	base, n := p.rec.Remote, p.n
	c := providers.Change{If: providers.IfAbsent()}
	c.Locator, _ = s.at(p.Link)
	switch {
	case base == nil || p.Kind == providers.KindDir && s.adopts(p, n):
	case s.inPlace(p, n):
		c.If = upload.Condition(base)
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
	base := p.rec.Remote
	if base.Kind != providers.KindDir {
		return false
	}
	_, moves := s.rescued(p)
	return base.Ino == p.Ino || len(n.RemoteLinks) == 0 && !moves
}

// inPlace reports whether what a name gets takes the place of what is there,
// without anything in between.
func (s *set) inPlace(p *planned, n *table.Inode) bool {
	was := p.rec.Remote.Kind == providers.KindDir
	switch {
	case p.Ino == 0 || was != (p.Kind == providers.KindDir):
		return false
	case !was:
		return true
	}
	_, moves := s.rescued(p)
	return moves && len(n.RemoteLinks) > 0 && s.exists(p.rec.Remote.Ino) && s.exists(p.Ino)
}

// exists reports whether a directory is there at the backend, where those
// without entries are not.
func (s *set) exists(dir table.Ino) bool {
	n := s.was.table.Inode(dir)
	if s.was.caps.EmptyDirs || n == nil || !n.Loaded {
		return true
	}
	found := false
	s.was.table.Names(dir, "", func(_ string, rec table.Name) bool {
		found = rec.Remote != nil && (rec.Remote.Kind != providers.KindDir || s.exists(rec.Remote.Ino))
		return !found
	})
	return found
}

// remove deletes what the backend has under a name. Where directories come and
// go with their entries, one need be named only if it is taken elsewhere, or if
// something takes its place.
func (s *set) remove(p *planned) {
	c := providers.Change{Locator: p.before, Delete: true, If: upload.Condition(p.rec.Remote)}
	if p.rec.Remote.Kind == providers.KindDir {
		_, moves := s.rescued(p)
		if !s.was.caps.EmptyDirs && (!moves && p.Ino == 0 || !s.exists(p.rec.Remote.Ino)) {
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
	case p.rec.Remote != nil && s.adopts(p, n):
		return
	case len(n.RemoteLinks) == 0 && !s.was.caps.EmptyDirs:
		return
	case len(n.RemoteLinks) == 0:
		c.Attr, c.Metadata = s.was.attrOf(n), n.Metadata
	case !s.exists(p.Ino):
		return
	default:
		c.From, _ = s.was.RemotePath(n.RemoteLinks[0])
	}
	p.Index = len(s.changes)
	s.push(c, nil)
}

func (s *set) addFile(p *planned, n *table.Inode, c providers.Change) {
	c.Kind, c.Attr = p.Kind, s.was.attrOf(n)
	var body *planned
	if home, there := s.source(p, n); there {
		base := s.was.Record(home).Remote
		c.From, _ = s.was.RemotePath(home)
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
	from := s.was.planner.HomeFor(s.was.View.View, p.Ino, n)
	l, there = from.Link, from.Any
	if p.rec.Remote != nil && p.rec.Remote.Ino == p.Ino {
		l, there = p.Link, true
	}
	base := s.was.Record(l).Remote
	return l, there && base != nil && base.ContentVersion == p.Gen
}

// deletions counts what a set takes away, for the rule of massdelete.go. What it makes
// under another name it does not: of a commit that a pull has made changes again,
// nobody knows any more what was renamed, but by its content.
func (s *set) deletions() (all, inRoot, madeInRoot int) {
	made := map[string]int{}
	for _, p := range s.order {
		if p.n != nil && p.n.Origin.Digest != "" && p.n.Origin.ContentVersion == p.n.ContentVersion && (p.rec.Remote == nil || p.rec.Remote.Ino != p.Ino) {
			made[p.n.Origin.Digest]++
		}
	}
	for _, p := range s.order {
		root := p.Link.Dir == table.Root
		switch {
		case p.rec.Remote == nil && root:
			madeInRoot++
		case p.Ino != 0 || p.rec.Remote == nil:
		default:
			content := p.rec.Remote.Digest
			switch _, moves := s.rescued(p); {
			case moves:
			case content != "" && p.rec.Remote.Ino == 0 && made[content] > 0:
				made[content]--
			default:
				all++
			}
			if root {
				inRoot++
			}
		}
	}
	return all, inRoot, madeInRoot
}
