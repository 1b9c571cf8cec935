package files

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// SentBack are the opens that were sent back to the name of their inode, because it leads
// to another inode now. The lock of the tree guards it.
type SentBack struct{ of map[table.Ino]sentBack }

// sentBack is the state of an inode at the time an open of it was sent back.
type sentBack struct {
	Whereabouts
	named bool
	gone  *GoneError // which the open had fetched in vain; nil: nothing
}

// mostSentBack is how many are known before those without an inode are forgotten.
const mostSentBack = 4096

// Once reports whether an open of an inode is to be sent back: once per state of the inode,
// or with all others that waited for the same fetch. A file that a sandbox has bind-mounted
// leads to the old inode however often it is looked up.
func (s *SentBack) Once(v *tree.View, x table.Ino, gone *GoneError) bool {
	n := v.Inode(x)
	state := sentBack{WhereaboutsOf(v, x), n != nil && len(n.Links) > 0, gone}
	if before, was := s.of[x]; was && before.Whereabouts == state.Whereabouts && before.named == state.named {
		return gone != nil && before.gone == gone
	}
	if s.of == nil {
		s.of = map[table.Ino]sentBack{}
	}
	if len(s.of) > mostSentBack {
		for ino := range s.of {
			if v.Inode(ino) == nil {
				delete(s.of, ino)
			}
		}
	}
	s.of[x] = state
	return true
}
