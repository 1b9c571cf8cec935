package cache

import (
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// snapshotCarriers are the carriers of this moment.
func (v *Volume) snapshotCarriers() rules.Carriers {
	was := v.takeSnapshot(false)
	defer was.end()
	c, _ := rules.CarriersOf(was)
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
	s.carriers, stay = rules.CarriersOf(v)
	for _, l := range stay {
		rec := s.was.Record(l)
		if stays, ok := v.sorted(l, rec, v.table.Inode(rec.Ino), s.carriers); ok && !stays {
			s.stays[l] = struct{}{}
			s.unsure = true
		}
	}
}
