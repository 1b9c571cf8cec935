package commit

import (
	"iter"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

type spot struct {
	at providers.Locator
	ok bool
}

// newAfter knows the place of the root only.
func newAfter() map[table.Ino]spot { return map[table.Ino]spot{table.Root: {ok: true}} }

// way is the name of a directory, for one without a place in the tree after the set.
func (s *Set) way(dir table.Ino) (l table.Link) {
	if n := s.was.Inode(dir); n != nil && len(n.Links) > 0 {
		return n.Links[0]
	}
	return l
}

// rescued finds the name that takes the inode which the remote has under p, if the set leaves that
// inode no other place at the remote.
func (s *Set) rescued(p *Planned) (to table.Link, moves bool) {
	n := s.was.Inode(p.Rec.Remote.Ino)
	if n == nil || s.staysElse(p, n) {
		return to, false
	}
	for _, l := range n.Links {
		_, stays := s.Stays[l]
		if rec := s.was.Record(l); l != p.Link && !rec.Local && !stays && (rec.Remote == nil || rec.Remote.Ino != p.Rec.Remote.Ino) {
			return l, true
		}
	}
	return to, false
}

// staysElse reports whether the set leaves the remote's inode of p under another name too, with no
// older content: if the remote has several names of it, one set may take all.
func (s *Set) staysElse(p *Planned, n *table.Inode) bool {
	return slices.ContainsFunc(n.RemoteLinks, func(l table.Link) bool {
		other, taken := s.was.Record(l).Remote, s.names[l]
		return l != p.Link && other != nil && other.ContentVersion >= p.Rec.Remote.ContentVersion && (taken == nil || taken.Ino == other.Ino)
	})
}

// keeps are the names in a directory that the set neither deletes nor moves.
func (s *Set) keeps(dir table.Ino) iter.Seq[table.Link] {
	return func(yield func(table.Link) bool) {
		s.was.Names(dir, "", func(name string, rec table.Name) bool {
			l := table.Link{Dir: dir, Name: name}
			p := s.names[l]
			return rec.Remote == nil || p != nil && p.Ino == 0 || yield(l)
		})
	}
}

// at is the place of a name in the tree after the set.
func (s *Set) at(l table.Link) (providers.Locator, bool) {
	dir := s.dirAt(l.Dir)
	if !dir.ok {
		return providers.Locator{}, false
	}
	at, err := dir.at.Child(l.Name)
	return at, err == nil
}

// dirAt is the place of a directory in the tree after the set.
func (s *Set) dirAt(dir table.Ino) spot {
	if p, known := s.after[dir]; known {
		return p
	}
	s.after[dir] = spot{} // a ring has no place
	n := s.was.Inode(dir)
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
