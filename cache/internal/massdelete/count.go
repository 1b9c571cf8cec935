package massdelete

import (
	"strconv"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// latelyKey holds how many names looks at single directories have deleted since a pull has seen
// the whole: however slowly they come, they do not delete more than half of a tree.
const latelyKey = "pull/lately"

// Lately is how many names looks at single directories have deleted.
func Lately(v interface{ Get(key string) []byte }) (names int) {
	names, _ = strconv.Atoi(string(v.Get(latelyKey)))
	return names
}

// SetLately sets the number that Lately returns.
func SetLately(tx interface {
	Get(key string) []byte
	Set(key string, value []byte)
}, names int) {
	switch {
	case names == Lately(tx):
	case names == 0:
		tx.Set(latelyKey, nil)
	default:
		tx.Set(latelyKey, []byte(strconv.Itoa(names)))
	}
}

// Dirty is the tree with the order of dirty names.
type Dirty interface {
	Inode(ino table.Ino) *table.Inode
	Record(l table.Link) table.Name
	Dirty(after uint64, visit func(seq uint64, l table.Link) bool)
}

// CountDue counts the names up to a place in the order that were removed locally. Those up to
// cleared were confirmed, and do not count; they may take long to go.
func CountDue(v Dirty, due, cleared uint64) (all, inRoot, madeInRoot int) {
	fresh := false // one of those in the root was not confirmed
	v.Dirty(0, func(seq uint64, l table.Link) bool {
		rec := v.Record(l)
		root := l.Dir == table.Root
		switch {
		case seq > due:
			return false
		case rec.Ino != 0 && rec.Remote == nil && root:
			madeInRoot++
		case rec.Ino != 0 || rec.Remote == nil:
		default:
			if n := v.Inode(rec.Remote.Ino); seq > cleared && (n == nil || len(n.Links) == 0) {
				all++
			}
			if root {
				inRoot++
				fresh = fresh || seq > cleared
			}
		}
		return true
	})
	if !fresh {
		inRoot = 0
	}
	return all, inRoot, madeInRoot
}
