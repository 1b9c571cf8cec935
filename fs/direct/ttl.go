package direct

import (
	"time"

	"golang.org/x/sys/unix"
)

// How long the kernel may believe what it was told.
const (
	// longTTL holds where a watch reports changes. It is not for ever because
	// one race cannot be closed from here: a name that changes after we looked
	// and before the kernel has our answer is reported too early, and the
	// report forgotten.
	longTTL = 60 * time.Second

	// shortTTL holds where nobody reports.
	shortTTL = time.Second
)

func (v *Volume) nameTTL(watched bool) time.Duration {
	if watched && !v.watch.behind.Load() {
		return longTTL
	}
	return shortTTL
}

// attrTTL is for an inode whose shard is locked; covered says that the watch
// sees changes of its attributes.
func (n *inode) attrTTL(st *stat, covered bool) time.Duration {
	switch {
	case n.ext != nil && n.ext.pass > 0:
		// The kernel writes without telling us.
		return 0
	case n.flags&flagMapped != 0:
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
