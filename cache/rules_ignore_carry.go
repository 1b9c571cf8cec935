package cache

import "github.com/wsmount/wsmount/cache/internal/table"

// carriers are the directories above one that the backend has and that was moved
// below them, which it does not have there yet. It can only have it there if it has
// them too, so these go although they are ignored; what else is in them stays.
type carriers map[table.Ino]struct{}

func (c carriers) has(dir table.Ino) bool {
	_, is := c[dir]
	return is
}

// carriers finds them, and the names of those that stay here by now.
func (v *View) carriers() (c carriers, stay []table.Link) {
	c = carriers{}
	v.table.Dirty(0, func(_ uint64, l table.Link) bool {
		rec, _ := v.table.Name(l.Dir, l.Name)
		n := v.table.Inode(rec.Ino)
		if rec.Remote != nil || rec.Local || n == nil || !isDir(n) || len(n.RemoteLinks) == 0 {
			return true
		}
		for l.Dir != table.Root && !c.has(l.Dir) {
			above := v.table.Inode(l.Dir)
			if above == nil || len(above.Links) == 0 {
				break
			}
			c[l.Dir] = struct{}{}
			l = above.Links[0]
			if rec, _ := v.table.Name(l.Dir, l.Name); rec.Local {
				stay = append(stay, l)
			}
		}
		return true
	})
	return c, stay
}

// snapshotCarriers is carriers of this moment.
func (v *Volume) snapshotCarriers() carriers {
	was := v.takeSnapshot(false)
	defer was.end()
	c, _ := was.carriers()
	return c
}

// carry finds the carriers of a set. Those that stay here for rules that were looked
// at before the move are sorted again, and the set is made anew.
func (s *set) carry() {
	v := s.was
	if !v.ignoring() {
		return
	}
	var stay []table.Link
	s.carriers, stay = v.carriers()
	for _, l := range stay {
		rec := s.was.Record(l)
		if stays, ok := v.sorted(l, rec, v.table.Inode(rec.Ino), s.carriers); ok && !stays {
			s.stays[l] = struct{}{}
			s.unsure = true
		}
	}
}
