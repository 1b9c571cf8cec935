package cache

import (
	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// attrs maps attributes of the remote to those of inodes, and back.
func (v *Volume) attrs() attrs.Mapping {
	return attrs.Mapping{
		UID: v.o.Owner.UID, GID: v.o.Owner.GID, Umask: v.o.Umask, MapIDs: v.o.MapIDs,
		Kept: v.caps.Attributes, Listed: v.caps.ListComplete,
	}
}

// gone reports whether no local name leads to an inode any more: then its content may be
// gone too.
func (v *Volume) gone(ino table.Ino) bool {
	locked := v.lock()
	defer locked.unlock()
	return locked.IsGone(ino)
}

// abandon forgets inodes that lost their last names, if nothing holds them any more. No caller
// waits for its result: inodes that stay after an error are freed at the next start.
func (v *Volume) abandon(inos ...table.Ino) {
	err := v.update(func(v *Tx) error {
		for _, ino := range inos {
			v.Shed(ino)
		}
		return nil
	})
	if err != nil {
		v.o.Log.Error("inodes without names stay until the next start", "inodes", inos, "err", err)
	}
}

// Nameless implements tree.Keeper. An inode stays for a set that is under way, until a
// conflict about it is resolved, and as the directory of a name that is being sent.
func (v *Tx) Nameless(ino table.Ino, n *table.Inode) (stays bool) {
	v.prefetch.End(v.Tx.View, ino)
	return v.kept.Nameless(v.Tx.View, ino, n) || merge.IsOrphanConflict(v.Tx.View, ino) ||
		n.IsDir() && len(n.RemoteLinks) == 0 && v.send.Jobs().WorksIn(v.Tx.View, ino)
}

// Freed implements tree.Keeper.
func (v *Tx) Freed(ino table.Ino, n *table.Inode) {
	goes := v.notes.Freed(ino, n)
	v.Later(func() { v.unlinks.Add(ino, goes) })
}
