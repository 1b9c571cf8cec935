package files

import (
	"maps"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// OpenSet are the inodes whose content is in use. The lock of the tree guards it.
type OpenSet struct{ all map[table.Ino]*OpenInode }

var _ tree.Pins = (*OpenSet)(nil)

// NewOpenSet makes an empty one.
func NewOpenSet() *OpenSet { return &OpenSet{map[table.Ino]*OpenInode{}} }

// Of is the open inode of a number; nil: it is not open.
func (s *OpenSet) Of(_ *tree.View, ino table.Ino) *OpenInode { return s.all[ino] }

// IsOpen reports whether content of an inode is in use.
func (s *OpenSet) IsOpen(_ *tree.View, ino table.Ino) bool { return s.all[ino] != nil }

// Pinned implements tree.Pins.
func (s *OpenSet) Pinned(v *tree.View, ino table.Ino) bool { return s.IsOpen(v, ino) }

// Inos are the inodes whose content is in use.
func (s *OpenSet) Inos(*tree.View) []table.Ino { return slices.Collect(maps.Keys(s.all)) }

// IsWritten reports whether a program has an inode open for writing.
func (s *OpenSet) IsWritten(_ *tree.View, ino table.Ino) bool {
	oi := s.all[ino]
	return oi != nil && oi.writers > 0
}

// EndIntents ends the dirty intents of all inodes that no program is just changing, so that
// the next change of each begins it again, and gives the others.
func (s *OpenSet) EndIntents(*tree.View) (changing map[table.Ino]struct{}) {
	changing = map[table.Ino]struct{}{}
	for ino, oi := range s.all {
		if oi.writers > 0 && !oi.idle() || oi.IsTouched() {
			changing[ino] = struct{}{}
		}
	}
	return changing
}
