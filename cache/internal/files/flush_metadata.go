package files

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// FlushIfOpen is Flush for an inode that may be open.
func (o *Opener) FlushIfOpen(ino table.Ino) error {
	oi := o.IfOpen(ino)
	if oi == nil {
		return nil
	}
	err := o.Flush(oi, false)
	o.Release(oi)
	return err
}

// Flush brings the changes of an open inode into the table, in one commit: size, time, and
// that the content is in a new state. Nothing happens when nothing was written since the
// last flush. The dirty intent ends with it, until the next change, unless it is to stay.
func (o *Opener) Flush(oi *OpenInode, stays bool) error {
	held := oi.lock()
	defer held.unlock()
	if oi.f == nil {
		return nil
	}
	t := metadataFlush{oi: held, mapped: oi.wasMapped(), idle: !stays && oi.idle(), stamp: oi.stamp.Load()}
	count := oi.f.Writes() // waits for a write that is under way
	t.wrote = t.mapped || count != oi.seen
	quiet := !oi.unseen.Load() || oi.f.Quiet()
	v := o.o.Tree.Lock()
	n := v.Inode(oi.Ino)
	t.idle = t.idle && quiet && !oi.lingered
	ends := n != nil && n.Writing && t.idle && (oi.writers == 0 || t.wrote)
	o.o.Tree.Unlock()
	if n == nil || !t.wrote && t.stamp == 0 && !ends {
		if n == nil || !n.Writing {
			oi.intent.Store(false)
		}
		return nil
	}
	t.size = oi.f.Size()
	if t.wrote {
		t.blocks = oi.Blocks()
	}
	err := o.o.Volume.Update(func(tx Tx) error {
		o.noteFlushed(tx, &t)
		return nil
	})
	switch {
	case err == nil:
		oi.seen = count
		oi.stamp.CompareAndSwap(t.stamp, 0)
	case t.mapped:
		oi.disk.Store(-1) // the next look finds it again
	}
	return err
}

// metadataFlush is the changes to be recorded in the table.
type metadataFlush struct {
	oi            LockedInode
	wrote, mapped bool // bytes have changed; through a mapping, unseen
	idle          bool // the dirty intent ends
	stamp         int64
	size, blocks  int64
}

// noteFlushed records them.
func (o *Opener) noteFlushed(tx Tx, f *metadataFlush) {
	oi, t := f.oi, tx.Tree()
	n := t.Edit(oi.Ino)
	if n == nil {
		return
	}
	if f.wrote {
		if f.stamp == 0 {
			f.stamp = o.o.Now().UnixNano()
		}
		if isDirty(t.View, n) {
			tx.Light()
		}
		before, ctime := n.ContentVersion, n.Ctime
		stamp := table.Stamp(f.stamp)
		t.ContentChanged(oi.Ino, f.size, stamp)
		n = t.Edit(oi.Ino)
		n.Blocks, n.Ctime = f.blocks, table.Latest(ctime, stamp) // as stat has shown it
		if !f.mapped && !oi.passed.Load() && t.KernelPages(oi.Ino) == before {
			t.SetKernelPages(oi.Ino, n.ContentVersion) // the kernel's pages have the change too
		}
		tx.Written(oi.Ino, n)
	} else if f.stamp != 0 {
		stamp, ctime := table.Stamp(f.stamp), n.Ctime
		t.AttrChanged(oi.Ino)
		n = t.Edit(oi.Ino)
		n.Mtime, n.Ctime = stamp, table.Latest(ctime, stamp)
	}
	if n.Writing && f.idle {
		SetDirtyIntent(t, oi.Ino, n, false)
		if o.notes.isNoted(t.View, oi.Ino, n.ContentVersion) {
			n.Synced = n.ContentVersion
		}
		if !f.wrote {
			tx.Unwritten(oi.Ino, n)
		}
	}
}

// isDirty reports whether every name of an inode is known to differ from the remote
// already.
func isDirty(v *tree.View, n *table.Inode) bool {
	for _, l := range n.Links {
		if !v.IsDirty(l) {
			return false
		}
	}
	return len(n.Links) > 0
}
