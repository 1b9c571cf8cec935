package direct

import (
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// How long the kernel may believe an answer.
const (
	// longTTL applies where a watch reports changes. It is not unlimited because we cannot
	// close one race: a change of a name after our stat and before the kernel has our answer is
	// reported too early, and the report forgotten.
	longTTL = 60 * time.Second

	// shortTTL applies where no change is reported.
	shortTTL = time.Second

	// newTTL is for the attributes of a new file, and saves the request that the kernel would
	// send before the creator has it open. The file is empty: until it has a size it cannot be
	// mapped, and a change of the size ends the kernel's belief.
	newTTL = time.Millisecond
)

func (v *Volume) nameTTL(watched bool) time.Duration {
	if watched && v.watch.current() {
		return longTTL
	}
	return shortTTL
}

func (t *table) attrTTL(ino wsfs.Ino, st *stat, covered bool) time.Duration {
	n, ok := t.lock(ino)
	if !ok {
		return 0
	}
	defer n.unlock()
	return n.attrTTL(st, covered)
}

// attrTTL is how long attributes are believed; covered says that the watch sees changes of
// them.
func (n *inode) attrTTL(st *stat, covered bool) time.Duration {
	switch {
	case n.ext != nil && n.ext.pass > 0:
		// The kernel writes without telling us.
		return 0
	case n.flags&(flagMapped|flagProbing) != 0:
		return 0 // perhaps it still does, see probe
	case n.flags&flagUnsure != 0:
		return shortTTL
	case st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR:
		// A change by another name, in another directory, is not reported for
		// this one, nor is the link count itself.
		return shortTTL
	case covered && n.name != "":
		return longTTL
	}
	return shortTTL
}
