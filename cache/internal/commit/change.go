package commit

import (
	"slices"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// addAll adds the changes of all names.
func (s *Set) addAll() {
	s.Changes, s.Bodies = nil, nil
	for i, p := range s.Order {
		p.Index = -1
		p.Last = s.isLast(p)
		s.add(p)
		s.was.Progress(i, len(s.Order))
	}
}

// add adds the remote's changes for a name.
func (s *Set) add(p *Planned) {
	base, n := p.Rec.Remote, p.Inode
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

// adopts reports whether a directory is at the remote already: it is its own, or a new local one
// takes over a place where one was removed.
func (s *Set) adopts(p *Planned, n *table.Inode) bool {
	base := p.Rec.Remote
	if base.Kind != providers.KindDir {
		return false
	}
	_, moves := s.rescued(p)
	return base.Ino == p.Ino || len(n.RemoteLinks) == 0 && !moves
}

// inPlace reports whether the new entry of a name replaces the remote's entry directly, without a
// deletion in between.
func (s *Set) inPlace(p *Planned, n *table.Inode) bool {
	was := p.Rec.Remote.Kind == providers.KindDir
	switch {
	case p.Ino == 0 || was != (p.Kind == providers.KindDir):
		return false
	case !was:
		return true
	}
	_, moves := s.rescued(p)
	return moves && len(n.RemoteLinks) > 0 && s.exists(p.Rec.Remote.Ino) && s.exists(p.Ino)
}

// exists reports whether a directory exists at the remote; where the remote has no empty
// directories, those without entries do not.
func (s *Set) exists(dir table.Ino) bool {
	n := s.was.Inode(dir)
	if s.was.Capabilities.EmptyDirs || n == nil || !n.Loaded {
		return true
	}
	found := false
	s.was.Names(dir, "", func(_ string, rec table.Name) bool {
		found = rec.Remote != nil && (rec.Remote.Kind != providers.KindDir || s.exists(rec.Remote.Ino))
		return !found
	})
	return found
}

// remove deletes the remote's entry under a name. Where directories come and go with their
// entries, one need be named only if it is moved elsewhere, or if something takes its place.
func (s *Set) remove(p *Planned) {
	c := providers.Change{Locator: p.BeforeAt, Delete: true, If: upload.Condition(p.Rec.Remote)}
	if p.Rec.Remote.Kind == providers.KindDir {
		_, moves := s.rescued(p)
		if !s.was.Capabilities.EmptyDirs && (!moves && p.Ino == 0 || !s.exists(p.Rec.Remote.Ino)) {
			return
		}
		c.Dir = true
	}
	s.push(c, nil)
}

// push adds a change, with its content.
func (s *Set) push(c providers.Change, body *Planned) {
	s.Changes = append(s.Changes, c)
	s.Bodies = append(s.Bodies, body)
}

func (s *Set) addDir(p *Planned, n *table.Inode, c providers.Change) {
	c.Dir = true
	switch {
	case p.Rec.Remote != nil && s.adopts(p, n):
		return
	case len(n.RemoteLinks) == 0 && !s.was.Capabilities.EmptyDirs:
		return
	case len(n.RemoteLinks) == 0:
		c.Attr, c.Metadata = s.was.AttrOf(n), n.Metadata
	case !s.exists(p.Ino):
		return
	default:
		c.From, _ = s.was.RemotePath(n.RemoteLinks[0])
	}
	p.Index = len(s.Changes)
	s.push(c, nil)
}

func (s *Set) addFile(p *Planned, n *table.Inode, c providers.Change) {
	c.Kind, c.Attr = p.Kind, s.was.AttrOf(n)
	var body *Planned
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
	p.Index = len(s.Changes)
	s.push(c, body)
}

// source is where the remote has the content that a name is to get; there is false when it has to
// be sent.
func (s *Set) source(p *Planned, n *table.Inode) (l table.Link, there bool) {
	from := s.was.Planner.HomeFor(s.was.View, p.Ino, n)
	l, there = from.Link, from.Any
	if p.Rec.Remote != nil && p.Rec.Remote.Ino == p.Ino {
		l, there = p.Link, true
	}
	base := s.was.Record(l).Remote
	return l, there && base != nil && base.ContentVersion == p.Gen
}

// Deletions counts the entries that a set removes, for the rule of package massdelete. Content
// that it makes under another name does not count: after a pull turned commits into changes again,
// only equal content tells which files were renamed. Confirmed deletions do not count: a
// confirmation is for all deletions up to then, in however many sets they go.
func (s *Set) Deletions() (all, inRoot, madeInRoot int) {
	made := map[string]int{}
	for _, p := range s.Order {
		if p.Inode != nil && p.Inode.Origin.Digest != "" && p.Inode.Origin.ContentVersion == p.Inode.ContentVersion && (p.Rec.Remote == nil || p.Rec.Remote.Ino != p.Ino) {
			made[p.Inode.Origin.Digest]++
		}
	}
	fresh := false // a deletion in the root was not confirmed
	for _, p := range s.Order {
		root := p.Link.Dir == table.Root
		confirmed := p.Rec.Seq > 0 && p.Rec.Seq <= s.was.Cleared
		switch {
		case p.Rec.Remote == nil && root:
			madeInRoot++
		case p.Ino != 0 || p.Rec.Remote == nil:
		default:
			content := p.Rec.Remote.Digest
			switch _, moves := s.rescued(p); {
			case moves, confirmed:
			case content != "" && p.Rec.Remote.Ino == 0 && made[content] > 0:
				made[content]--
			default:
				all++
			}
			if root {
				inRoot++
				fresh = fresh || !confirmed
			}
		}
	}
	if !fresh {
		inRoot = 0
	}
	return all, inRoot, madeInRoot
}

// Gives reports whether the inode that the remote had under a name is not under it any more.
func (p *Planned) Gives() bool {
	return p.Rec.Remote != nil && (p.Ino == 0 || p.Rec.Remote.Ino != p.Ino)
}

// isLast reports whether a set removes the last remote copy of content that no local name has.
func (s *Set) isLast(p *Planned) bool {
	if !p.Gives() {
		return false
	}
	n := s.was.Inode(p.Rec.Remote.Ino)
	return n != nil && n.IsRegular() && len(n.Links) == 0 && !s.staysElse(p, n)
}

// guard removes names from a set that the guard does not let pass. The names of a set are in the
// order in which they began to differ.
func (s *Set) guard() {
	total := int64(0)
	s.Order = slices.DeleteFunc(s.Order, func(p *Planned) bool {
		n := p.Inode
		if n == nil || p.Kind == providers.KindDir {
			return false
		}
		if _, there := s.source(p, n); there {
			return false // no content goes
		}
		err := s.was.Guard.weigh(s.was.Found, p.Ino, n, total)
		if err == nil {
			if n.Size <= s.was.Guard.MaxFile {
				total += n.Size
			}
			return false
		}
		s.Stopped = append(s.Stopped, Stopped{p.Link, err})
		delete(s.names, p.Link)
		return true
	})
}
