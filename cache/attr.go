package cache

import (
	"syscall"

	"github.com/wsmount/wsmount/fs"
)

// Attr implements fs.Volume.
func (v *Volume) Attr(_ *fs.Op, ino fs.Ino, _ fs.File) (fs.Attr, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	if n == nil {
		return fs.Attr{}, fs.ErrStale
	}
	return v.attr(ino, n), nil
}

// dirSize is what stat shows as the size of a directory.
const dirSize = 4096

// attr is what stat shows. v.mu is held.
func (v *Volume) attr(ino fs.Ino, n *node) fs.Attr {
	a := fs.Attr{Ino: ino, Size: uint64(n.size), Blocks: uint64(n.blocks), Mode: n.mode,
		Nlink: n.nlink(ino), UID: n.uid, GID: n.gid, Rdev: n.rare().rdev, Blksize: 4096,
		Atime: n.atime.time(), Mtime: n.mtime.time(), Ctime: n.ctime.time(), TTL: ttl}
	if n.isDir() {
		a.Size, a.Blocks = dirSize, dirSize/512
	}
	if c := v.files[ino]; c != nil {
		a.Blocks = uint64(blocksOf(c.f))
	}
	return a
}

// SetAttr implements fs.Volume.
func (v *Volume) SetAttr(op *fs.Op, ino fs.Ino, f fs.File, in *fs.SetAttr) (fs.Attr, error) {
	if in.Size != nil {
		if err := v.resize(op, ino, f, int64(*in.Size)); err != nil {
			return fs.Attr{}, err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	if n == nil {
		return fs.Attr{}, fs.ErrStale
	}
	if n.isSymlink() && in.Mode != nil {
		return fs.Attr{}, syscall.EOPNOTSUPP
	}
	if v.setAttr(n, in) {
		v.table.save(ino, n)
		if paths := v.locators(ino, n); len(paths) > 0 && v.sendable(n) && !paths[0].IsRoot() {
			v.enqueue(verbAttr, ino, n, paths...)
		}
	}
	return v.attr(ino, n), nil
}

// setAttr changes all but the size and says whether anything was asked. v.mu
// is held.
func (v *Volume) setAttr(n *node, in *fs.SetAttr) bool {
	now := v.now()
	if in.Mode != nil {
		n.mode = n.kind() | *in.Mode&^syscall.S_IFMT
	}
	if in.UID != nil || in.GID != nil {
		n.chown(in)
	}
	if in.Atime != nil {
		n.atime = stampOf(*in.Atime)
	} else if in.AtimeNow {
		n.atime = now
	}
	if in.Mtime != nil {
		n.mtime = stampOf(*in.Mtime)
	} else if in.MtimeNow {
		n.mtime = now
	}
	asked := in.Mode != nil || in.UID != nil || in.GID != nil || in.Atime != nil ||
		in.Mtime != nil || in.AtimeNow || in.MtimeNow
	if asked {
		n.changed(now)
	}
	return asked
}

// chown changes the owner. A file loses the rights that it would give in the
// name of another: the kernel leaves that to us (FUSE_HANDLE_KILLPRIV_V2).
func (n *node) chown(in *fs.SetAttr) {
	if in.UID != nil {
		n.uid = *in.UID
	}
	if in.GID != nil {
		n.gid = *in.GID
	}
	if !n.isDir() && in.Mode == nil {
		n.dropPrivileges()
	}
}

// dropPrivileges clears set-user-id, set-group-id where it means execution,
// and capabilities.
func (n *node) dropPrivileges() {
	n.mode &^= syscall.S_ISUID
	if n.mode&0o010 != 0 {
		n.mode &^= syscall.S_ISGID
	}
	if n.more != nil {
		delete(n.more.xattrs, "security.capability")
	}
}

// resize is truncate(2), or ftruncate(2) when f is not nil. Cutting a file to
// nothing fetches nothing.
func (v *Volume) resize(op *fs.Op, ino fs.Ino, f fs.File, size int64) error {
	if open, ok := f.(*file); ok && open.c.ino == ino {
		return open.truncate(op, size)
	}
	c, err := v.acquire(op, ino, size == 0)
	if err != nil {
		return err
	}
	defer v.release(c)
	by := &file{v: v, c: c}
	if err := by.truncate(op, size); err != nil {
		return err
	}
	// No close will follow that could send it.
	v.mu.Lock()
	defer v.mu.Unlock()
	v.enqueueSend(ino, v.table.node(ino))
	return nil
}
