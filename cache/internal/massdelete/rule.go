// Package massdelete stops a pull or a commit that would delete suspiciously many of the remote's
// names: a bucket that was emptied, a prefix that moved, an rm that went wrong. None of it is
// applied until a person confirms it.
//
// [TooMuch] is the rule. A [Guard] has the halts and the confirmations, in this run and, through
// the table, in the next. The lock of the tree guards it.
package massdelete

import (
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// floor is the least size of a tree for which the share counts: more than half of it is not
// deleted at once without a confirmation. Nor is the root emptied of any tree with more than one
// entry, wherever they are.
const floor = 20

// MaxUnseen is how many directories are looked into before the names are counted again.
const MaxUnseen = 32

// View is the tree, as a tree.View is.
type View interface {
	Inode(ino table.Ino) *table.Inode
	Names(dir table.Ino, after string, visit func(name string, n table.Name) bool)
}

// Deletion is how much of the remote's names is to be deleted.
type Deletion struct {
	Names                 int
	Done                  int // of them, already gone from the table
	More                  int // names that are left and that the table does not have yet
	RootBefore, RootAfter int // entries of the root, if some of them are among the names
}

// TooMuch says why a deletion needs a confirmation, or "". Directories in unseen may have more
// names than are known: they are to be looked into before the confirmation is asked for.
func TooMuch(v View, d Deletion) (reason string, unseen []table.Ino) {
	switch {
	case d.RootBefore > 1 && d.RootAfter == 0:
		return fmt.Sprintf("all %d entries of the root would be deleted", d.RootBefore), nil
	case d.RootBefore == 1 && d.RootAfter == 0 && d.Names > 1:
		return fmt.Sprintf("the one directory of the root would be deleted, with %d entries", d.Names-1), nil
	}
	if 2*d.Names <= floor {
		return "", nil
	}
	left, unseen := CountBelow(v, table.Root, 2*d.Names+1)
	left += d.More - (d.Names - d.Done)
	if all := d.Names + left; all >= floor && d.Names > left {
		return fmt.Sprintf("%d of %d entries would be deleted", d.Names, all), unseen
	}
	return "", nil
}

// TooMuchForCommit is TooMuch for a commit that deletes so many names at the remote, so many of
// them in the root.
func TooMuchForCommit(v View, deleted, deletedInRoot, madeInRoot int) (reason string, unseen []table.Ino) {
	root := 0
	if deletedInRoot > 0 {
		root = CountRoot(v)
	}
	return TooMuch(v, Deletion{Names: deleted, RootBefore: root, RootAfter: root - deletedInRoot + madeInRoot})
}

// CountBelow counts names that the remote is known to have below a directory, but goes on to limit
// only, and lists directories that are not to be deleted and were never listed.
func CountBelow(v View, top table.Ino, limit int) (total int, unseen []table.Ino) {
	dirs := []table.Ino{top}
	for len(dirs) > 0 && total < limit {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		n := v.Inode(dir)
		if !n.Loaded && len(unseen) < MaxUnseen && (dir == table.Root || len(n.Links) > 0) {
			unseen = append(unseen, dir)
		}
		v.Names(dir, "", func(_ string, rec table.Name) bool {
			if rec.Remote != nil {
				total++
				if n := v.Inode(rec.Remote.Ino); n != nil && n.IsDir() {
					dirs = append(dirs, rec.Remote.Ino)
				}
			}
			return total < limit
		})
	}
	return total, unseen
}

// CountRoot counts the known remote entries of the root.
func CountRoot(v View) int {
	count := 0
	v.Names(table.Root, "", func(_ string, rec table.Name) bool {
		if rec.Remote != nil {
			count++
		}
		return true
	})
	return count
}
