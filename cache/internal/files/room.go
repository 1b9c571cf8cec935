package files

import (
	"context"
	"log/slog"
	"math"

	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Room makes room on the disk, by evicting content that can be fetched again, and when that
// is not enough by removing the oldest of the history.
type Room struct {
	Tree     *tree.Tree
	Store    Evicting
	Eviction *Eviction
	Unlinks  *DeferredUnlinks
	Prune    func(most int64) bool // has the history keep that many bytes at most, if it can
	Context  context.Context       // ends with the working copy
	Log      *slog.Logger
}

// Evicting is the store of content, which evicts content for which may says yes, least
// recently used first. Both methods give the number of bytes that the disk got back.
type Evicting interface {
	Evict(may func(ino uint64) bool) (freed int64)                // as much as is over the limits
	EvictFor(need int64, may func(ino uint64) bool) (freed int64) // for so many bytes more
	KeptBytes() int64                                             // in the history
}

// Everything is more than any disk has.
const Everything = math.MaxInt64 / 4

// commitRoom is more than a commit sets aside for itself and for the next log.
const commitRoom = 1 << 20

// WeighAll tells the store, until Context ends, of content that was local before this run.
func (r *Room) WeighAll() {
	if err := r.Eviction.WeighAll(r.Context); err != nil {
		r.Log.Warn("evict: the content could not be counted", "err", err)
	}
}

// Recheck asks whether commits that are not pushed are lost, or are not whole; then their
// content stays.
func (r *Room) Recheck(whole bool) {
	if !r.Eviction.Recheck(whole) {
		return
	}
	if why := r.Eviction.Why(); why != nil {
		r.Log.Error("commits that are not pushed cannot be read: what is local of them stays, and no content is given up", "err", why)
	}
	r.WeighAll()
}

// Make evicts clean content when there is more of it than wanted, or too little room on the disk.
// What a program that wants to write need bytes then still lacks is taken from the history.
func (r *Room) Make(need int64) {
	// Content that was just sent is clean once the disk knows of that, too.
	if r.Tree.Sync() != nil {
		return // it failed, and reports that to all callers
	}
	r.Recheck(false)
	freed := r.Unlinks.Run() // else the room would come only later
	freed += r.Store.Evict(r.Eviction.MayEvict)
	for freed < need && r.Context.Err() == nil {
		kept := r.Store.KeptBytes()
		if kept == 0 || !r.Prune(max(kept-(need-freed), 0)) {
			return
		}
		freed += kept - r.Store.KeptBytes()
	}
}

// Clear evicts all clean content that is not in use.
func (r *Room) Clear() (freed int64) {
	r.Recheck(true)
	return r.Unlinks.Run() + r.Store.EvictFor(Everything, r.Eviction.MayEvict)
}

// MakeInCommit evicts clean content for the commit under way, which includes the records of
// that. Should it fail all the same, or the process end in between, the content is missing
// although its record says that it is local: Opener.Open takes that of clean content for
// evicted. So it must be clean by the table on the disk: not by a commit that was not
// synced, nor by this one. It reports whether any content was evicted.
func (r *Room) MakeInCommit(t *tree.Tx) bool {
	if r.Tree.Sync() != nil {
		return false
	}
	return r.Store.EvictFor(commitRoom, r.Eviction.GiveUpBeside(t)) > 0
}
