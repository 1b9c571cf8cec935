package cache

import "github.com/wsmount/wsmount/cache/internal/table"

// What a change of ours is under way for, the backend may show as it was or as
// it will be. It is left to the engine, which finds out.

// skipInFlight reports whether a change of ours of this name is under way: the engine
// finds out what became of it.
func (m *merge) skipInFlight(v *Tx, l table.Link, rec *table.Name) bool {
	if m.mine != nil {
		if _, ours := m.mine.touched[l]; ours {
			return true
		}
	}
	if m.late[l] {
		rec.Attempt = nil
		return false
	}
	return v.attempted(*rec, m.late)
}

// attempted reports whether a change of ours of a name, or the move of what has it at
// the backend, is under way.
func (v *View) attempted(rec table.Name, late map[table.Link]bool) bool {
	if rec.Attempt != nil && rec.Seq != 0 {
		return true
	}
	if rec.Remote == nil || rec.Remote.Ino == rec.Ino {
		return false
	}
	n := v.table.Inode(rec.Remote.Ino)
	if n == nil {
		return false
	}
	if n.From != "" {
		return true
	}
	for _, other := range n.Links {
		if to, _ := v.table.Name(other.Dir, other.Name); to.Attempt != nil && to.Seq != 0 && !late[other] {
			return true
		}
	}
	return false
}

// moving reports whether a directory, or one above it, may be at another place of the
// backend than is known: nobody can say whether what is listed under the old path is its
// own.
func (v *View) moving(dir table.Ino) bool {
	for dir != table.Root {
		n := v.table.Inode(dir)
		if n == nil || len(n.RemoteLinks) == 0 {
			return false
		}
		if n.From != "" {
			return true // names are handed over to it, or from it
		}
		if rec, _ := v.table.Name(n.RemoteLinks[0].Dir, n.RemoteLinks[0].Name); v.attempted(rec, nil) {
			return true
		}
		dir = n.RemoteLinks[0].Dir
	}
	return false
}
