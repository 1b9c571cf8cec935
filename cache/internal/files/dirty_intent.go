package files

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// dirtyPrefix begins the keys of inodes with a dirty intent, for the next start.
const dirtyPrefix = "writing/"

// DirtyIntents are the inodes whose content may be changing, by the table.
func DirtyIntents(v *tree.View) []table.Ino { return table.InosOf(v, dirtyPrefix) }

// SetDirtyIntent notes, or takes back, that the content of an inode may be changed. n is
// the inode as Edit or Put have it; nil: there is no such inode.
func SetDirtyIntent(t *tree.Tx, ino table.Ino, n *table.Inode, on bool) {
	if n != nil {
		if n.Writing == on {
			return
		}
		n.Writing = on
	}
	if on {
		t.Set(table.KeyOf(dirtyPrefix, ino), []byte{1})
	} else {
		t.Set(table.KeyOf(dirtyPrefix, ino), nil)
	}
}

// beginDirty commits the intent to change content before the first byte changes, and has
// the state before kept for a change set that is under way.
func (o *Opener) beginDirty(oi LockedInode) error {
	for {
		isCurrent := o.o.Keeper.KeepForSet(oi)
		if err := o.noteDirtyIntent(oi); err != nil {
			return err
		}
		v := o.o.Tree.Lock()
		kept := isCurrent(v)
		o.o.Tree.Unlock()
		if kept {
			return nil
		}
	}
}

// noteDirtyIntent records in the table that content may change, unless it says so already.
func (o *Opener) noteDirtyIntent(oi LockedInode) error {
	v := o.o.Tree.Lock()
	n := v.Inode(oi.Ino)
	there, fresh := n != nil, n != nil && !n.Writing
	o.o.Tree.Unlock()
	switch {
	case !there:
		return ErrNoInode
	case !fresh:
		oi.intent.Store(true)
		return nil
	}
	o.o.Keeper.KeepBefore(oi)
	err := o.o.Volume.Update(func(t Tx) error {
		n := t.Tree().Edit(oi.Ino)
		if n == nil {
			return ErrNoInode
		}
		SetDirtyIntent(t.Tree(), oi.Ino, n, true)
		return nil
	})
	oi.intent.Store(err == nil)
	return err
}

// Change runs do, which changes the content, and notes the time. The dirty intent is in the
// table before do runs.
func (o *Opener) Change(oi *OpenInode, do func() error) error {
	oi.changing.Add(1)
	defer oi.changing.Add(-1)
	if !oi.intent.Load() {
		held := oi.lock()
		err := o.beginDirty(held)
		held.unlock()
		if err != nil {
			return err
		}
	}
	err := do()
	if err == nil {
		oi.changed(o.o.Now().UnixNano())
	}
	return err
}

// changed notes the time of a change that was just made.
func (oi *OpenInode) changed(now int64) {
	oi.stamp.Store(now)
	if oi.passed.Load() {
		oi.disk.Store(oi.f.Mtime())
	}
}

// idle ends the intent to change, unless a change is under way, and reports whether it
// did: then the next change begins with beginDirty. It needs no lock, since a change counts
// itself before it looks at the intent. Nothing but beginDirty may begin it again: a
// change set relies on beginDirty to keep the state before the next change.
func (oi *OpenInode) idle() bool {
	oi.intent.Store(false)
	if oi.changing.Load() > 0 {
		oi.intent.Store(true)
		return false
	}
	return true
}
