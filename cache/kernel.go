package cache

import (
	"math"
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// timeOf is the time that a clock's nanoseconds since 1970 stand for.
func timeOf(ns int64) time.Time { return time.Unix(0, ns) }

// nanoseconds is the way back, for times that did not come from a clock: one that 64
// bits cannot say, which is before 1678 or after 2262, is the nearest that they can.
func nanoseconds(t time.Time) int64 {
	switch {
	case t.Before(timeOf(math.MinInt64)):
		return math.MinInt64
	case t.After(timeOf(math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// dirSize is what stat shows as the size of a directory. One that was removed
// has none, as on ext4; one that was replaced by another keeps it.
const dirSize = 4096

// blockSize is st_blksize.
const blockSize = 4096

// attr is what stat shows. Of an open file it is what the content is now, which
// the table may not have yet. mu is held.
func (v *Volume) attr(ino table.Ino, n *table.Inode) fs.Attr {
	a := fs.Attr{Ino: fs.Ino(ino), Size: uint64(n.Size), Blocks: uint64(n.Blocks), Mode: n.Mode,
		Nlink: nlink(ino, n), UID: n.UID, GID: n.GID, Rdev: n.Rdev, Blksize: blockSize,
		Atime: n.Atime.Time(), Mtime: n.Mtime.Time(), Ctime: n.Ctime.Time(), TTL: v.attrTTL(n)}
	if isDir(n) && a.Nlink > 0 {
		a.Size, a.Blocks = dirSize, dirSize/512
	}
	if oi := v.open[ino]; oi != nil && oi.f != nil && !oi.untold {
		a.Size = uint64(oi.f.Size())
		if stamp := oi.stamp.Load(); stamp != 0 {
			a.Mtime, a.Ctime = timeOf(stamp), table.Latest(table.Stamp(stamp), n.Ctime).Time()
		}
	}
	return a
}

// nlink is the count of names. Those of a directory are its own, its ".", and
// the ".." of each directory in it; none once it was removed.
func nlink(ino table.Ino, n *table.Inode) uint32 {
	switch {
	case !isDir(n):
		return uint32(len(n.Links))
	case len(n.Links) == 0 && ino != table.Root:
		return 0
	}
	return uint32(2 + n.Subdirs)
}

// attrTTL is how long the kernel may believe attributes: as long as the listing
// that they came with. mu is held.
func (v *Volume) attrTTL(n *table.Inode) time.Duration {
	if len(n.Links) == 0 {
		return v.kernelTTL(table.Root)
	}
	return v.kernelTTL(n.Links[0].Dir)
}

// refer is the kernel's entry for an inode, with a reference. mu is held.
func (v *Volume) refer(dir, ino table.Ino) fs.Entry {
	v.refs[ino]++
	return fs.Entry{Ino: fs.Ino(ino), Attr: v.attr(ino, v.table.Inode(ino)), TTL: v.kernelTTL(dir)}
}

// unrefer takes back the reference of an entry that nobody gets: the change
// that made it could not be committed.
func (v *Volume) unrefer(e fs.Entry, err error) (fs.Entry, error) {
	if err == nil {
		return e, nil
	}
	if e.Ino != 0 {
		v.mu.Lock()
		v.dropRefs(table.Ino(e.Ino), 1)
		v.mu.Unlock()
	}
	return fs.Entry{}, err
}

// dropRefs gives references back and reports whether none is left. mu is held.
func (v *Volume) dropRefs(ino table.Ino, count uint64) bool {
	if left := v.refs[ino]; left > count {
		v.refs[ino] = left - count
		return false
	}
	delete(v.refs, ino)
	delete(v.shown, ino)
	delete(v.renewed, ino)
	return true
}

// Forget implements fs.Volume.
func (v *Volume) Forget(ino fs.Ino, count uint64) {
	i := table.Ino(ino)
	v.mu.Lock()
	gone := v.dropRefs(i, count) && i != table.Root && v.unheld(i)
	v.mu.Unlock()
	if gone {
		v.abandon(i)
	}
}

// unheld reports whether an inode has no name, and nobody holds it. mu is held.
func (v *Volume) unheld(ino table.Ino) bool {
	n := v.table.Inode(ino)
	return n != nil && len(n.Links) == 0 && v.refs[ino] == 0 && v.open[ino] == nil && ino != table.Root
}

// abandon forgets inodes that lost their last names, if nobody holds them any more.
// It cannot fail in a way that anybody waits for: what stays is freed at the
// next start.
func (v *Volume) abandon(inos ...table.Ino) {
	err := v.update(func() error {
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

// shed forgets an inode without a name, or marks it when it is still held. One
// that the backend still has under some name stays as a record, without its
// content. A directory stays while it hands names over, while a step is under way
// for a name in it, and as long as it is open what became of one: the backend may
// have that, and it would have no place here. mu is held, in an update.
func (v *Volume) shed(ino table.Ino) {
	n := v.table.Inode(ino)
	if n == nil || len(n.Links) > 0 || ino == table.Root {
		return
	}
	v.siblings.end(ino)
	key := orphanKey(ino)
	busy := isDir(n) && len(n.Homes) == 0 && (n.From != "" || v.table.HasNames(ino) || v.engine.works(ino))
	if v.keepNameless(ino, n) || !v.unheld(ino) || v.owed(ino) || busy {
		if v.table.Get(key) == nil {
			v.table.Set(key, []byte{1})
		}
		return
	}
	if v.table.Get(key) != nil {
		v.table.Set(key, nil)
	}
	if len(n.Homes) > 0 && n.State != table.None {
		v.table.Edit(ino).State = table.None
		v.letGo(ino, n)
	}
	v.reap(ino)
}

// losesRights is op.KillPriv for the calls with which the kernel does not say
// it: who is not root has no right to keep set-user-id bits.
func losesRights(op *fs.Op) bool { return op.KillPriv || op.UID != 0 }

const capXattr = "security.capability"

// privileged reports whether a change of content by somebody else takes rights
// from a file.
func privileged(n *table.Inode) bool {
	return n.Mode&syscall.S_ISUID != 0 || n.Mode&syscall.S_ISGID != 0 && n.Mode&0o010 != 0
}

// dropPrivileges clears set-user-id, set-group-id where it means execution,
// and capabilities.
func dropPrivileges(n *table.Inode) {
	n.Mode &^= syscall.S_ISUID
	if n.Mode&0o010 != 0 {
		n.Mode &^= syscall.S_ISGID
	}
	setXattr(n, capXattr, nil)
}
