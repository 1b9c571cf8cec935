package cache

import (
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Names that were listed once and not looked at for long are forgotten when there are too
// many of them.
const (
	maxKnown    = 4 << 20 // inodes
	unloadEvery = 10 * time.Minute
)

func (v *Volume) unloadLoop() {
	counted, given := -1, v.lastIno()
	for sleep(v.ctx, unloadEvery) == nil {
		now := v.lastIno()
		if counted < 0 && now <= maxKnown || counted >= 0 && counted+int(now-given) <= maxKnown {
			continue
		}
		counted, given = v.unload(maxKnown), now
	}
}

// lastIno is a number that no inode made so far is above.
func (v *Volume) lastIno() table.Ino {
	locked := v.lock()
	defer locked.unlock()
	return locked.table.Alloc()
}

// unload forgets what is clean and unused until no more than limit inodes are
// known, and says how many are.
func (v *Volume) unload(limit int) (known int) {
	known, dropped, err := tree.Unloading{
		Tree:      v.tree,
		Update:    v.updateTree,
		EmptyDirs: v.caps.EmptyDirs,
		HasOwn:    v.attrs().HasOwnXattrs,
		Freed:     v.store.Remove,
	}.Run(v.ctx, limit)
	if err != nil {
		v.o.Log.Warn("names could not be forgotten", "err", err)
	}
	if dropped > 0 {
		v.o.Log.Info("forgot names that were not used", "names", dropped, "known", known)
	}
	return known
}
