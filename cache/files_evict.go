package cache

import (
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/offline"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
)

func newEviction(v *Volume) *files.Eviction {
	return &files.Eviction{Tree: v.tree, Store: v.store, Update: v.updateTree, Open: v.held.open, Pins: v.o.Pins}
}

func newRoom(v *Volume) *files.Room {
	return &files.Room{Tree: v.tree, Store: v.store, Eviction: v.eviction, Unlinks: v.unlinks, Prune: v.history.PruneBytes, Context: v.ctx}
}

func newUnlinks(v *Volume) *files.DeferredUnlinks {
	return files.NewDeferredUnlinks(files.UnlinkOptions{Tree: v.tree, Remove: v.store.Remove, History: v.history})
}

// beginEvicting has clean content given up, what was not used for longest
// first, when there is more of it than Options.CacheSize, or too little room on
// the disk. When that is not enough for what a program wants to write, the
// oldest of the history goes too.
func (v *Volume) beginEvicting() {
	v.store.SetEvictor(v.room.Make)
	v.background(v.weighAll)
	v.background(func() { v.unloading().Loop(v.ctx, waiting.Sleep) })
	if v.state.Share != nil {
		v.background(v.shareLoop)
	}
}

// shareEvery is how often a working copy tells others what it holds, and looks
// what they do.
const shareEvery = time.Second

// shareLoop keeps what all working copies hold below Options.TotalSize.
func (v *Volume) shareLoop() {
	for waiting.Sleep(v.ctx, shareEvery) == nil {
		v.chores.Ended(chores.Share, v.state.Share.Look(v.store.Weigh()))
		v.store.Weigh() // by what they said now
	}
}

// unloading forgets names that were listed once and not looked at for long.
func (v *Volume) unloading() tree.Unloading {
	return tree.Unloading{Tree: v.tree, Update: v.updateTree, EmptyDirs: v.caps.EmptyDirs, HasOwn: v.attrs().HasOwnXattrs, Freed: v.store.Remove}
}

// weighAll tells the store of what was here before this run.
func (v *Volume) weighAll() {
	if err := v.eviction.WeighAll(v.ctx); err != nil {
		v.o.Log.Warn("evict: the content could not be counted", "err", err)
	}
}

// ContentUsage says what content takes.
func (v *Volume) ContentUsage() ContentUsage { return offline.UsageOf(v.store) }

// MakeRoom gives up clean content for n bytes that others could not write, or as much
// as the disk lacks, because they found it full, and reports whether trying again may
// help. It must not be called from a callback of the volume.
func (v *Volume) MakeRoom(n int64) bool { return v.store.MakeRoom(n) }

// ClearContent gives up all clean content that is neither in use nor pinned, and says how many
// bytes the disk got back. It is fetched again when it is read.
func (v *Volume) ClearContent() (freed int64) { return v.room.Clear() }
