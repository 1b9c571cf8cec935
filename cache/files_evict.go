package cache

import (
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
)

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
		freed += v.store.Evict(v.mayEvict)
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

// mayEvict notes that the content of an inode is not here any more, if it can
// be fetched again and nobody uses it. The table forgets it first, then the
// disk: so that no crash leaves a record of content that is not there.
func (v *Volume) mayEvict(ino table.Ino) bool {
	may := false
	err := v.update(func(v *Tx) error {
		may = v.giveUp(ino)
		return nil
	})
	return err == nil && may
}

// giveUp is mayEvict under the lock.
func (v *Tx) giveUp(ino table.Ino) bool {
	n := v.table.Inode(ino)
	if n == nil || v.open[ino] != nil || !v.replaceable(n) {
		return false
	}
	if n.State != table.None {
		n = v.table.Edit(ino)
		n.State, n.Origin = table.None, table.Origin{}
	}
	return true
}

// replaceable reports whether the content of an inode can be fetched again: the backend
// has just that under every name of it.
func (v *View) replaceable(n *table.Inode) bool {
	return n.IsRegular() && !n.Writing && !n.Suspect && len(n.Links) > 0 && !slices.ContainsFunc(n.Links, func(l table.Link) bool {
		rec, _ := v.table.Name(l.Dir, l.Name)
		return rec.Local || v.Differs(rec)
	})
}

// weigh tells the store how much the content of an inode takes, and whether it may be
// given up. It follows each change of that, except while the inode is open: then it
// comes when that ends.
func (v *View) weigh(ino table.Ino) {
	if v.open[ino] != nil {
		return
	}
	if n := v.table.Inode(ino); n != nil && n.State != table.None && n.IsRegular() {
		size := n.Blocks * 512
		if n.State == table.Partial { // the inode has what all of it takes
			size = content.Measured
		}
		v.store.Clean(ino, size, v.replaceable(n))
	}
}

// weighChanged weighs what the change just committed was about.
func (v *Tx) weighChanged() {
	for _, l := range v.Changed() {
		if rec, ok := v.table.Name(l.Dir, l.Name); ok && rec.Ino != 0 {
			v.weigh(rec.Ino)
		}
	}
}

// weighAll tells the store of what was here before this run.
func (v *Volume) weighAll() {
	err := v.store.Each(func(ino uint64, _ string, _ int64, _ bool) {
		if v.ctx.Err() != nil {
			return
		}
		locked := v.lock()
		defer locked.unlock()
		locked.weigh(ino)
	})
	if err != nil {
		v.o.Log.Warn("evict: the content could not be counted", "err", err)
	}
}
