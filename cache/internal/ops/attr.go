package ops

import (
	"syscall"
	"time"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// Attr implements fs.Volume.
func (v *Operations) Attr(op *fs.Op, ino fs.Ino, f fs.File) (fs.Attr, error) {
	if f == nil {
		if err := v.refreshAttr(op, table.Ino(ino)); err != nil {
			return fs.Attr{}, err
		}
	}
	var a fs.Attr
	var live *files.OpenInode
	err := v.view(func(v view) error {
		n, err := v.inode(ino)
		if err != nil {
			return err
		}
		a = v.attr(table.Ino(ino), n)
		if v.o.Open.IsWritten(v.View, table.Ino(ino)) && v.o.Open.Of(v.View, table.Ino(ino)).Content() != nil {
			live = v.o.Open.Of(v.View, table.Ino(ino))
			live.Retain(v.View)
		}
		return nil
	})
	if live != nil {
		a.Blocks = uint64(live.Blocks()) // may wait for a write, so without the lock
		v.o.Opener.Release(live)
	}
	return a, err
}

// refreshAttr has the attributes of an inode be fresh enough: they came with the listing of its
// directory.
func (v *Operations) refreshAttr(op *fs.Op, ino table.Ino) error {
	if v.o.Belief.TTL == 0 || ino == table.Root {
		return nil
	}
	locked := v.lock()
	n := locked.Inode(ino)
	if n == nil || len(n.Links) == 0 {
		locked.unlock()
		return nil
	}
	dir := n.Links[0].Dir
	locked.unlock()
	return v.o.Remote.Load(op, dir)
}

// SetAttr implements fs.Volume.
func (v *Operations) SetAttr(op *fs.Op, ino fs.Ino, f fs.File, in *fs.SetAttr) (fs.Attr, error) {
	i := table.Ino(ino)
	var err error
	if in.Size != nil {
		err = v.resize(op, i, f, int64(*in.Size))
	} else if in.Mtime != nil || in.MtimeNow {
		err = v.o.Opener.FlushIfOpen(i) // bytes flushed later would move this time
	}
	if err != nil {
		return fs.Attr{}, err
	}
	var a fs.Attr
	if *in == (fs.SetAttr{Size: in.Size}) {
		err = v.view(func(v view) error {
			n, err := v.inode(ino)
			if err == nil {
				a = v.attr(i, n)
			}
			return err
		})
		return a, err
	}
	err = v.update(nil, func(v *tx) error {
		n, err := v.inode(ino)
		if err != nil {
			return err
		}
		if n.IsSymlink() && in.Mode != nil {
			return syscall.EOPNOTSUPP
		}
		v.setAttr(i, in)
		a = v.attr(i, v.Inode(i))
		return nil
	})
	return a, err
}

// setAttr changes all but the size.
func (v *tx) setAttr(ino table.Ino, in *fs.SetAttr) {
	now := v.Stamp()
	var atime, mtime *table.Time
	switch {
	case in.Atime != nil:
		t := table.TimeOf(*in.Atime)
		atime = &t
	case in.AtimeNow:
		atime = &now
	}
	switch {
	case in.Mtime != nil:
		t := table.TimeOf(*in.Mtime)
		mtime = &t
	case in.MtimeNow:
		mtime = &now
	}
	if in.Mode == nil && in.UID == nil && in.GID == nil && atime == nil && mtime == nil {
		return
	}
	n := v.Edit(ino)
	if in.Mode != nil {
		attrs.Chmod(n, *in.Mode)
	}
	if in.UID != nil || in.GID != nil {
		chown(n, in)
	}
	if atime != nil {
		n.Atime = *atime
	}
	same := mtime == nil || *mtime == n.Mtime
	if mtime != nil {
		n.Mtime = *mtime
	}
	if in.Mode == nil && in.UID == nil && in.GID == nil && same {
		n.Ctime = now // no remote keeps it
		return
	}
	v.AttrChanged(ino)
}

// chown changes the owner. A file loses set-id bits and capabilities: the kernel leaves that to
// the file system (FUSE_HANDLE_KILLPRIV_V2).
func chown(n *table.Inode, in *fs.SetAttr) {
	if in.UID != nil {
		n.UID = *in.UID
	}
	if in.GID != nil {
		n.GID = *in.GID
	}
	if !n.IsDir() && in.Mode == nil {
		dropPrivileges(n)
	}
}

// resize is truncate(2), or ftruncate(2) when f is not nil. Truncating to zero fetches nothing.
func (v *Operations) resize(op *fs.Op, ino table.Ino, f fs.File, size int64) error {
	if size < 0 {
		return syscall.EFBIG
	}
	if open, ok := f.(*file); ok && open.oi.Ino == ino {
		return open.truncate(op, size)
	}
	if err := v.o.Remote.FetchAttrs(op, ino, false); err != nil {
		return err
	}
	oi, err := v.openContent(ino, files.ForWriting)
	if err != nil {
		return err
	}
	by := &file{v: v, oi: oi, flags: syscall.O_RDWR}
	err = by.truncate(op, size)
	if rerr := v.o.Opener.Close(oi, true); err == nil {
		err = rerr
	}
	return err
}

// attr are the attributes that stat shows. For an open file, size and times come from the
// content, whose state the table may not have yet.
func (v view) attr(ino table.Ino, n *table.Inode) fs.Attr {
	a := fs.Attr{Ino: fs.Ino(ino), Size: uint64(n.Size), Blocks: uint64(n.Blocks), Mode: n.Mode,
		Nlink: nlink(ino, n), UID: n.UID, GID: n.GID, Rdev: n.Rdev, Blksize: blockSize,
		Atime: n.Atime.Time(), Mtime: n.Mtime.Time(), Ctime: n.Ctime.Time(), TTL: v.attrTTL(n)}
	if n.IsDir() && a.Nlink > 0 {
		a.Size, a.Blocks = dirSize, dirSize/512
	}
	oi := v.o.Open.Of(v.View, ino)
	if oi == nil {
		return a
	}
	if size, changed, ok := oi.Stat(v.View); ok {
		a.Size = uint64(size)
		if changed != 0 {
			a.Mtime, a.Ctime = time.Unix(0, changed), table.Latest(table.Stamp(changed), n.Ctime).Time()
		}
	}
	return a
}

// nlink is the count of names. Those of a directory are its own, its ".", and
// the ".." of each directory in it; none once it was removed.
func nlink(ino table.Ino, n *table.Inode) uint32 {
	switch {
	case !n.IsDir():
		return uint32(len(n.Links))
	case len(n.Links) == 0 && ino != table.Root:
		return 0
	}
	return uint32(2 + n.Subdirs)
}

// attrTTL is how long the kernel may cache attributes: as long as the listing that they came
// with.
func (v view) attrTTL(n *table.Inode) time.Duration {
	if len(n.Links) == 0 {
		return v.o.Belief.KernelTTL(table.Root, v.Inode(table.Root))
	}
	return v.o.Belief.KernelTTL(n.Links[0].Dir, v.Inode(n.Links[0].Dir))
}

// dirSize is the size that stat shows for a directory. One that was removed has none, as on
// ext4; one that was replaced by another keeps it.
const dirSize = 4096

// blockSize is st_blksize.
const blockSize = 4096

// losesRights is op.KillPriv for the calls in which the kernel does not send it: a caller other
// than root has no right to keep set-user-id bits.
func losesRights(op *fs.Op) bool { return op.KillPriv || op.UID != 0 }

const capXattr = "security.capability"

// privileged reports whether a file has set-id bits that a change of content clears.
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
	attrs.Set(n, capXattr, nil)
}
