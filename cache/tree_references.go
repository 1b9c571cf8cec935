package cache

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// refer is the kernel's entry for an inode, with a reference.
func (v *View) refer(dir, ino table.Ino) fs.Entry {
	v.Refer(ino)
	return fs.Entry{Ino: fs.Ino(ino), Attr: v.attr(ino, v.table.Inode(ino)), TTL: v.kernelTTL(dir)}
}

// unrefer takes back the reference of an entry that nobody gets: the change
// that made it could not be committed.
func (v *Volume) unrefer(e fs.Entry, err error) (fs.Entry, error) {
	if err == nil {
		return e, nil
	}
	if e.Ino != 0 {
		locked := v.lock()
		locked.DropReferences(table.Ino(e.Ino), 1)
		locked.unlock()
	}
	return fs.Entry{}, err
}

// Forget implements fs.Volume.
func (v *Volume) Forget(ino fs.Ino, count uint64) {
	i := table.Ino(ino)
	locked := v.lock()
	gone := locked.DropReferences(i, count) && i != table.Root && locked.IsForsaken(i)
	locked.unlock()
	if gone {
		v.abandon(i)
	}
}

// pins are the open files of a volume.
type pins struct{ v *Volume }

// Pinned implements tree.Pins.
func (p pins) Pinned(ino table.Ino) bool { return p.v.held.open[ino] != nil }

// abandon forgets inodes that lost their last names, if nobody holds them any more.
// It cannot fail in a way that anybody waits for: what stays is freed at the
// next start.
func (v *Volume) abandon(inos ...table.Ino) {
	err := v.update(func(v *Tx) error {
		for _, ino := range inos {
			v.shed(ino)
		}
		return nil
	})
	if err != nil {
		v.o.Log.Error("inodes without names stay until the next start", "inodes", inos, "err", err)
	}
}

// orphanKey marks an inode that has no name and is still held, for whoever
// frees what a run left (recoverLast).
func orphanKey(ino table.Ino) string { return orphans + itoa(ino) }

const orphans = "orphan/"

// shed forgets an inode without a name, or marks it when it is still held. One that the
// backend still has under some name stays as a record, without its content. A directory
// stays while it hands names over, while an operation is under way for a name in it, and
// as long as it is open what became of one: the backend may have that, and it would have
// no place here.
func (v *Tx) shed(ino table.Ino) {
	n := v.table.Inode(ino)
	if n == nil || len(n.Links) > 0 || ino == table.Root {
		return
	}
	v.filePrefetch.end(ino)
	key := orphanKey(ino)
	busy := n.IsDir() && len(n.RemoteLinks) == 0 && (n.From != "" || v.table.HasNames(ino) || v.engine.works(v.View, ino))
	if v.keepNameless(ino, n) || !v.IsForsaken(ino) || v.isOrphanConflict(ino) || busy {
		if v.table.Get(key) == nil {
			v.table.Set(key, []byte{1})
		}
		return
	}
	if v.table.Get(key) != nil {
		v.table.Set(key, nil)
	}
	if len(n.RemoteLinks) > 0 && n.State != table.None {
		v.table.Edit(ino).State = table.None
		v.letGo(ino, n)
	}
	v.reap(ino)
}

// reap forgets an inode that nothing leads to any more: no name here or at the backend,
// no reference of the kernel, no open file.
func (v *Tx) reap(ino table.Ino) {
	n := v.table.Inode(ino)
	if n == nil || ino == table.Root || len(n.Links) > 0 || len(n.RemoteLinks) > 0 || v.IsHeld(ino) {
		return
	}
	v.table.Drop(ino)
	if n.State != table.None {
		v.letGo(ino, n)
	}
}
