package files

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// SentBack are the opens that were sent back to the name of their inode, because that leads
// elsewhere now. The lock of the tree guards it.
type SentBack struct{ of map[table.Ino]sentBack }

// sentBack is the state of an inode of which a program was sent back.
type sentBack struct {
	Whereabouts
	named bool
	gone  *GoneError // which it had fetched in vain; nil: nothing
}

// mostSentBack is how many are known before those that are no inode any more are forgotten.
const mostSentBack = 4096

// Once reports whether an open of an inode is to be sent back: once, as long as nothing
// becomes of it, or with all the others who waited for the same fetch. A file that a sandbox
// has bind-mounted leads to the old inode however often it is looked up.
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
