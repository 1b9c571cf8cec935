package cache

import "github.com/wsmount/wsmount/fs"

// beginDirty commits the intent to change content, before the first byte does, and has
// the state before kept for a set that is under way.
func (v *Volume) beginDirty(oi lockedInode) error {
	for {
		k := v.keepState(oi)
		if err := v.noteDirtyIntent(oi); err != nil {
			return err
		}
		locked := v.lock()
		same := locked.kept == k || locked.kept == nil
		locked.unlock()
		if same {
			return nil
		}
	}
}

// noteDirtyIntent has the table say that content may change, unless it does already.
func (v *Volume) noteDirtyIntent(oi lockedInode) error {
	locked := v.lock()
	n := locked.table.Inode(oi.ino)
	there, fresh := n != nil, n != nil && !n.Writing
	locked.unlock()
	switch {
	case !there:
		return fs.ErrStale
	case !fresh:
		oi.intent.Store(true)
		return nil
	}
	v.keepBefore(oi.ino)
	v.follow(oi)
	err := v.update(func(v *Tx) error {
		n := v.table.Edit(oi.ino)
		if n == nil {
			return fs.ErrStale
		}
		v.setWriting(oi.ino, n, true)
		return nil
	})
	oi.intent.Store(err == nil)
	return err
}

// beginChange makes sure that the intent is in the table before content changes.
func (v *Volume) beginChange(oi *openInode) error {
	oi.changing.Add(1)
	if oi.intent.Load() {
		return nil
	}
	held := oi.lock()
	defer held.unlock()
	return v.beginDirty(held)
}

// endChange undoes beginChange.
func (oi *openInode) endChange() { oi.changing.Add(-1) }

// idle ends the intent to change, unless a change is under way, and reports whether it
// did: then the next change begins with beginDirty. It needs no lock, since a change counts
// itself before it looks at the intent. Nothing but beginDirty may begin it again: a set
// relies on hearing of the next change.
func (oi *openInode) idle() bool {
	oi.intent.Store(false)
	if oi.changing.Load() > 0 {
		oi.intent.Store(true)
		return false
	}
	return true
}
