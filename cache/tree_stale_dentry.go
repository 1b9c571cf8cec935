package cache

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// A pull gives a name to another file, and the kernel is told a moment later:
// while it still takes the name for the file that had it before, an unlink of it
// would remove what nobody here has seen, and after a rename the kernel would show
// the old file under the new name. So the first such request is answered with
// ESTALE: the kernel looks the name up and asks again by itself.

// maxStaleDentries bounds what is noted: names that nobody uses again stay.
const maxStaleDentries = 1 << 16

// markStaleDentry notes that a name was taken from an inode behind the kernel's back.
func (v *View) markStaleDentry(l table.Link, from table.Ino) {
	if v.refs[from] == 0 {
		return
	}
	if len(v.staleDentries) == maxStaleDentries {
		clear(v.staleDentries) // the kernel knows most of them by now
	}
	v.staleDentries[l] = struct{}{}
}

// checkDentries reports fs.ErrStale, once, if the kernel does not know what is behind
// one of some names.
func (v *View) checkDentries(all ...table.Link) (err error) {
	for _, l := range all {
		if _, there := v.staleDentries[l]; there {
			delete(v.staleDentries, l)
			err = fs.ErrStale
		}
	}
	return err
}
