package tree

import "github.com/wsmount/wsmount/cache/internal/table"

// A pull gives a name to another inode, and the kernel is told a moment later. While it
// still takes the name for the previous inode, an unlink of it would remove a file that no
// local program has seen, and after a rename the kernel would show the old file under the
// new name. So the first such request is to be answered with ESTALE: the kernel looks the
// name up and asks again by itself.

// maxStaleDentries bounds the record: names that are never used again stay in it.
const maxStaleDentries = 1 << 16

// MarkStaleDentry notes that a name was taken from an inode behind the kernel's back.
func (v *View) MarkStaleDentry(l table.Link, from table.Ino) {
	g := v.guarded
	if g.lookups[from] == 0 {
		return
	}
	if len(g.staleDentries) == maxStaleDentries {
		clear(g.staleDentries) // the kernel knows most of them by now
	}
	g.staleDentries[l] = struct{}{}
}

// ClearStaleDentry is called when the kernel is told the inode of a name.
func (v *View) ClearStaleDentry(l table.Link) { delete(v.guarded.staleDentries, l) }

// TakeStaleDentries reports, once, whether one of some names is a stale dentry.
func (v *View) TakeStaleDentries(all ...table.Link) (stale bool) {
	for _, l := range all {
		if _, there := v.guarded.staleDentries[l]; there {
			delete(v.guarded.staleDentries, l)
			stale = true
		}
	}
	return stale
}
