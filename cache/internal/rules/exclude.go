package rules

import (
	"encoding/binary"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Excluder says which paths stay on this machine whatever an ignore file says.
type Excluder interface {
	// Match reports whether a path, or a directory above it, is excluded.
	Match(path string, isDir bool) bool
	// SameBelow reports whether Match says the same of each name below two directories;
	// false if that is not known.
	SameBelow(a, b string) bool
	// String tells rules apart: those of one text say the same of every path.
	String() string
}

// Paths is the tree with the local paths of names.
type Paths interface {
	Inode(ino table.Ino) *table.Inode
	Names(dir table.Ino, after string, visit func(name string, n table.Name) bool)
	LocalPath(l table.Link) (providers.Locator, bool)
}

// Crosses reports whether a directory, or anything known in it, would be excluded under
// another name and is not under its own, or the other way round: a rule may name a path
// below. It looks only as far as a rule reaches, not through a million names.
func Crosses(v Paths, x Excluder, from, to table.Link, dir table.Ino) bool {
	was, ok := v.LocalPath(from)
	is, ok2 := v.LocalPath(to)
	return ok && ok2 && crosses(v, x, was, is, dir)
}

func crosses(v Paths, x Excluder, was, is providers.Locator, ino table.Ino) bool {
	n := v.Inode(ino)
	if n == nil {
		return false
	}
	out := x.Match(was.String(), n.IsDir())
	if out != x.Match(is.String(), n.IsDir()) {
		return true
	}
	if !n.IsDir() || out || x.SameBelow(was.String(), is.String()) {
		return false // all below an excluded directory is excluded
	}
	found := false
	v.Names(ino, "", func(name string, rec table.Name) bool {
		below, err := was.Child(name)
		target, err2 := is.Child(name)
		found = rec.Ino != 0 && err == nil && err2 == nil && crosses(v, x, below, target, rec.Ino)
		return !found
	})
	return found
}

// hiddenKey begins the records of how many entries of the remote a directory does not show: their
// names are excluded, or taken by names that stay on this machine.
const hiddenKey = "hidden/"

// SetHidden sets that number.
func SetHidden(tx Tx, dir table.Ino, count int) {
	key := table.KeyOf(hiddenKey, dir)
	switch old := tx.Get(key); {
	case count == 0 && old != nil:
		tx.Set(key, nil)
	case count > 0:
		tx.Set(key, binary.AppendUvarint(nil, uint64(count)))
	}
}

// Hiding are the directories that do not show all of their entries.
func Hiding(v View) []table.Ino { return table.InosOf(v, hiddenKey) }

// Hidden is how many entries are not shown in all directories that are known.
func Hidden(v View) int {
	total := uint64(0)
	v.Scan(hiddenKey, "", func(_ string, value []byte) bool {
		n, _ := binary.Uvarint(value)
		total += n
		return true
	})
	return int(total)
}
