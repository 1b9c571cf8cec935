package cache

import (
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/offline"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

func newEviction(v *Volume) *files.Eviction {
	return &files.Eviction{Tree: v.tree, Store: v.store, Update: v.updateTree, Open: v.open, Pins: v.o.Pins, Lost: v.o.Lost.Question}
}

func newRoom(v *Volume) *files.Room {
	return &files.Room{Tree: v.tree, Store: v.store, Eviction: v.eviction, Unlinks: v.unlinks, Prune: v.history.PruneBytes, Context: v.ctx, Log: v.o.Log}
}

func newUnlinks(v *Volume) *files.DeferredUnlinks {
	return files.NewDeferredUnlinks(files.UnlinkOptions{Tree: v.tree, Remove: v.store.Remove, History: v.history})
}

func newUnloading(v *Volume) tree.Unloading {
	return tree.Unloading{Tree: v.tree, Update: v.updateTree, EmptyDirs: v.caps.EmptyDirs, HasOwn: v.attrs().HasOwnXattrs, Freed: v.store.Remove}
}

// ContentUsage gives the disk space of content, by the last answer about lost commits.
func (v *Volume) ContentUsage() ContentUsage { return offline.UsageOf(v.store, v.eviction) }

// MakeRoom gives up clean content for n bytes that other writers of the disk could not write, or
// as much as the disk lacks, and reports whether trying again may help. It must not be called from
// a callback of the volume.
func (v *Volume) MakeRoom(n int64) bool { return v.store.MakeRoom(n) }

// ContentOf gives the disk space of content, after asking whether unpushed commits are lost. With
// clear it first gives up all clean content that is neither in use nor pinned, to be fetched again
// when read; freed is the gain.
func (v *Volume) ContentOf(clear bool) (u ContentUsage, freed int64) {
	if clear {
		freed = v.room.Clear()
	} else {
		v.room.Recheck(true)
	}
	return v.ContentUsage(), freed
}
