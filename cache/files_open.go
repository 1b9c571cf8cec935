package cache

import (
	"context"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

func newOpener(v *Volume) *files.Opener {
	return files.NewOpener(files.OpenerOptions{
		Tree: v.tree, Set: v.open, Store: v.store, Hydrator: v.hydrator, Eviction: v.eviction, Unlinks: v.unlinks, Syncs: v.tableSync,
		Volume: openFiles{v}, Keeper: openFiles{v}, Now: v.o.Now, Log: v.o.Log, Context: v.ctx, Pause: v.pause,
		Go: func(at *tree.View, f func()) bool {
			if v.held.Of(at).closed {
				return false
			}
			v.work.Go(f)
			return true
		},
	})
}

// openFiles adapts a volume for its open files.
type openFiles struct{ v *Volume }

// Update implements files.Volume.
func (o openFiles) Update(do func(files.Tx) error) error {
	return o.v.update(func(v *Tx) error { return do(contentTx{v}) })
}

// Closed implements files.Volume.
func (o openFiles) Closed(at *tree.View, ino table.Ino) {
	if o.v.pending.IsUnsaved(at, ino) {
		o.v.pending.Open(at) // a new name without content: its close gave no notice
		o.v.pending.Kick()
	}
}

// Abandon implements files.Volume.
func (o openFiles) Abandon(ino table.Ino) { o.v.abandon(ino) }

// KeepForSet implements files.Keeper.
func (o openFiles) KeepForSet(oi files.LockedInode) (isCurrent func(*tree.View) bool) {
	return o.v.kept.KeepState(oi)
}

// KeepBefore implements files.Keeper.
func (o openFiles) KeepBefore(oi files.LockedInode) {
	o.v.history.Before(oi.Ino)
	o.v.exec.Follow(oi)
}

// contentTx is a transaction about the content of an open inode.
type contentTx struct{ v *Tx }

// Tree implements files.Tx.
func (t contentTx) Tree() *tree.Tx { return t.v.Tx }

// Light implements files.Tx.
func (t contentTx) Light() { t.v.light = true }

// Written implements files.Tx.
func (t contentTx) Written(ino table.Ino, n *table.Inode) {
	t.v.local.Written(ino, n)
	if len(n.Links) == 0 && n.LostName != nil {
		t.v.merger.OrphanChanged(t.v.Tx, ino)
	}
}

// Unwritten implements files.Tx. A new empty file is a version too.
func (t contentTx) Unwritten(ino table.Ino, n *table.Inode) {
	if history.IsOfHere(n) {
		t.v.notes.Version(n, ino, "written")
	}
}

// openContent opens the content of an inode, until opener.Close; for use by this program itself
// ([files.ForUs]), until opener.Release.
func (v *Volume) openContent(ino table.Ino, use files.Use) (*files.OpenInode, error) {
	oi, err := v.opener.Open(ino, use)
	return oi, errno.Translate(err)
}

// unasked is the content of a volume for prefetches, which no program asked for.
type unasked struct{ v *Volume }

var _ files.Unasked = unasked{}

// MayPrefetch implements files.Unasked.
func (u unasked) MayPrefetch(at *tree.View) bool {
	return !u.v.held.Of(at).closing && !u.v.belief.IsFailing()
}

// FetchUnasked implements files.Unasked.
func (u unasked) FetchUnasked(ctx context.Context, ino table.Ino) error {
	oi, err := u.v.openContent(ino, files.ForPrefetch)
	if err != nil {
		return err
	}
	err = oi.Content().FetchAhead(ctx, u.v.prefetch)
	if cerr := u.v.opener.Close(oi, false); err == nil {
		err = cerr
	}
	return err
}

// Unread implements files.Unasked.
func (u unasked) Unread(ino table.Ino) { u.v.store.Unread(ino) }
