package cache

import (
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/local"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// A View is the working copy for the holder of its lock: to read the tree and all other state that
// the lock guards, and to change the part of it that is in memory only. It ends with unlock.
type View struct {
	*Volume
	*guardedState
	lock, update, head taken
}

// taken hides from the lock holder the methods that would wait for that lock for ever.
type taken struct{}

var _ = [...]taken{View{}.lock, View{}.update, View{}.head}

// lock waits for the lock of the volume.
func (v *Volume) lock() *View {
	return v.held.Of(v.tree.Lock())
}

// unlock gives the lock back. The view must not be used any more.
func (v *View) unlock() { v.tree.Unlock() }

// A Tx is a change of the tree under way, with its effects on the rest of the volume. Only a Tx
// leads to methods that change the table.
type Tx struct {
	*View
	*tree.Tx
	wakes bool         // the engine has something to do after it
	light bool         // it changes the state of content alone, see files.TableSync
	by    files.Caller // the caller that asked for it
	notes history.Tx   // its records in the history
	local *local.Tx    // its changes of the local side, with their consequences
}

// update runs do as one change, see tree.Tree.Update.
func (v *Volume) update(do func(*Tx) error) error {
	tx := &Tx{}
	return v.tree.Update(func(t *tree.Tx) error {
		tx.View, tx.Tx, tx.notes = v.held.Of(t.View), t, v.history.In(t, &tx.by)
		tx.local = &local.Tx{Side: v.side, Tx: t, Notes: tx.notes}
		return do(tx)
	}, tx)
}

// updateOwn is update for changes made by an operation of the engine or by a change set.
func (v *Volume) updateOwn(do func(*Tx) error) error {
	return v.update(func(v *Tx) error {
		err := do(v)
		v.local.Own = err == nil
		return err
	})
}

// updateTree is update for functions that need the tree alone.
func (v *Volume) updateTree(do func(*tree.Tx) error) error {
	return v.update(func(v *Tx) error { return do(v.Tx) })
}

// Committed implements tree.Observer.
func (v *Tx) Committed() {
	if v.Wrote() {
		v.updates++
	}
	if v.Wrote() && !v.light {
		v.tableSync.Committed(v.Tx.View)
	}
	if v.o.within != nil {
		v.o.within(v)
	}
	v.send.Jobs().Changed(v.Tx.View, v.Changed())
	v.pending.Committed(v.View.View, v.local.Own, v.Changed(), v.Unnamed())
	v.eviction.WeighChanged(v.Tx)
	if v.wakes {
		v.pending.Kick()
	}
}

// Marked implements tree.Observer.
func (v *Tx) Marked(l table.Link, was, now uint64) {
	v.border.Marked(v.Tx, l, now != 0)
	v.wakes = v.wakes || v.pending.Marked(v.Tx.View, was, now)
}

// Undone implements tree.Observer.
func (v *Tx) Undone() { v.border.Ignores.Undone() }

// Full implements tree.Observer. A transaction may use the room of the ballast, which is meant
// for that: a removal makes room in the end. When there is no ballast, clean content goes.
func (v *Tx) Full(again bool) bool {
	if again {
		return v.room.MakeInCommit(v.Tx)
	}
	return v.store.Relieve()
}
