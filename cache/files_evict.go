package cache

import (
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

func newEviction(v *Volume) *files.Eviction {
	return &files.Eviction{
		Tree: v.tree, Store: v.store,
		Update: func(do func(*tree.Tx) error) error { return v.update(func(v *Tx) error { return do(v.Tx) }) },
		IsOpen: func(_ *tree.View, ino table.Ino) bool { return v.held.open[ino] != nil },
	}
}

// beginEvicting has clean content given up, what was not used for longest
// first, when there is more than Options.CacheSize of it, or too little room on
// the disk. When that is not enough for what a program wants to write, the
// oldest of the history goes too.
func (v *Volume) beginEvicting() {
	v.store.SetEvictor(func(need int64) {
		// Content that was just sent is clean once the disk knows of that, too.
		if v.tree.Sync() != nil {
			return // it failed, and says so to all who ask
		}
		freed := v.unlinkDue() // else it would be there only later
		freed += v.store.Evict(v.eviction.MayEvict)
		for freed < need && v.ctx.Err() == nil {
			kept := v.store.KeptBytes()
			if kept == 0 || !v.pruneBytes(max(kept-(need-freed), 0)) {
				return
			}
			freed += kept - v.store.KeptBytes()
		}
	})
	v.background(v.weighAll)
	v.background(v.unloadLoop)
	if v.state.share != nil {
		v.background(v.shareLoop)
	}
}

// shareEvery is how often a working copy tells others what it holds, and looks
// what they do.
const shareEvery = time.Second

// shareLoop keeps what all working copies hold below Options.TotalSize.
func (v *Volume) shareLoop() {
	for sleep(v.ctx, shareEvery) == nil {
		v.Ended(chores.Share, v.state.share.Look(v.store.Weigh()))
		v.store.Weigh() // by what they said now
	}
}

// weighAll tells the store of what was here before this run.
func (v *Volume) weighAll() {
	if err := v.eviction.WeighAll(v.ctx); err != nil {
		v.o.Log.Warn("evict: the content could not be counted", "err", err)
	}
}
