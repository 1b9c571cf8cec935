package ops

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// maxXattrs bounds names and values of an inode together, in bytes.
const maxXattrs = 1 << 20

// keepsXattr refuses names of a name space that is not kept.
func keepsXattr(name string) error {
	if !attrs.HasSpace(name) {
		return fs.ErrUnsupported
	}
	return nil
}

// GetXattr implements fs.Volume.
func (v *Operations) GetXattr(op *fs.Op, ino fs.Ino, name string) (value []byte, err error) {
	if err := keepsXattr(name); err != nil {
		return nil, err
	}
	if err := v.askXattrs(op, table.Ino(ino), name, false); err != nil {
		return nil, err
	}
	err = v.view(func(v view) error {
		n, err := v.inode(ino)
		if err != nil {
			return err
		}
		stored, ok := n.Xattrs[name]
		if !ok {
			return syscall.ENODATA
		}
		value = bytes.Clone(stored)
		return nil
	})
	return value, err
}

// SetXattr implements fs.Volume.
func (v *Operations) SetXattr(op *fs.Op, ino fs.Ino, name string, value []byte, flags uint32) error {
	return v.changeXattr(op, ino, name, func(v *tx, i table.Ino, n *table.Inode) error {
		old, there := n.Xattrs[name]
		switch {
		case there && flags&unix.XATTR_CREATE != 0:
			return syscall.EEXIST
		case !there && flags&unix.XATTR_REPLACE != 0:
			return syscall.ENODATA
		case sizeOf(n.Xattrs)-len(old)+len(name)+len(value) > maxXattrs:
			return syscall.ENOSPC
		case attrs.IsACL(name):
			return v.setACL(op, i, name, value)
		}
		if err := v.hasRoom(n, name, value); err != nil {
			return err
		}
		attrs.Set(v.Edit(i), name, append([]byte{}, value...))
		v.xattrChanged(i, name)
		return nil
	})
}

// changeXattr runs change, which sets or removes an attribute, once all attributes of the inode
// are known.
func (v *Operations) changeXattr(op *fs.Op, ino fs.Ino, name string, change func(v *tx, i table.Ino, n *table.Inode) error) error {
	if err := keepsXattr(name); err != nil {
		return err
	}
	i := table.Ino(ino)
	if err := v.askXattrs(op, i, name, true); err != nil {
		return err
	}
	return v.update(nil, func(v *tx) error {
		n, err := v.inode(ino)
		if err != nil {
			return err
		}
		return change(v, i, n)
	})
}

func sizeOf(xattrs map[string][]byte) int {
	sum := 0
	for name, value := range xattrs {
		sum += len(name) + len(value)
	}
	return sum
}

// ListXattr implements fs.Volume.
func (v *Operations) ListXattr(op *fs.Op, ino fs.Ino) (names []string, err error) {
	if err := v.askXattrs(op, table.Ino(ino), "", false); err != nil {
		return nil, err
	}
	err = v.view(func(v view) error {
		n, err := v.inode(ino)
		if err == nil {
			names = slices.Sorted(maps.Keys(n.Xattrs))
		}
		return err
	})
	return slices.DeleteFunc(names, attrs.IsForeign), err
}

// RemoveXattr implements fs.Volume.
func (v *Operations) RemoveXattr(op *fs.Op, ino fs.Ino, name string) error {
	return v.changeXattr(op, ino, name, func(v *tx, i table.Ino, n *table.Inode) error {
		if _, there := n.Xattrs[name]; !there {
			if attrs.IsACL(name) {
				return nil // as a disk does: the mode is the ACL of every file
			}
			return syscall.ENODATA
		}
		attrs.Set(v.Edit(i), name, nil)
		v.xattrChanged(i, name)
		return nil
	})
}

// setACL stores an ACL, or turns a minimal one into the mode.
func (v *tx) setACL(op *fs.Op, ino table.Ino, name string, value []byte) error {
	if !attrs.ValidACL(value) {
		return syscall.EINVAL
	}
	n := v.Edit(ino)
	if n.IsSymlink() {
		return syscall.EOPNOTSUPP
	}
	if err := v.hasRoom(n, name, value); err != nil {
		return err
	}
	value = append([]byte{}, value...)
	if name == attrs.DefaultACL {
		if !n.IsDir() {
			return syscall.EACCES
		}
		attrs.Set(n, name, value)
		v.xattrChanged(ino, name)
		return nil
	}
	mode := n.Mode&^0o777 | attrs.ACL(value).Mode()
	if op.KillPriv {
		mode &^= syscall.S_ISGID // the caller is not in the group
	}
	if attrs.ACL(value).Minimal() {
		value = nil
	}
	attrs.Set(n, name, value)
	if mode == n.Mode {
		v.xattrChanged(ino, name)
		return nil
	}
	n.Mode = mode
	v.AttrChanged(ino)
	return nil
}

// xattrChanged marks the inode as changed after a program changed an extended attribute.
func (v *tx) xattrChanged(ino table.Ino, name string) {
	if v.o.Side.Attributes.KeepsXattrs() && attrs.IsShared(name) {
		v.AttrChanged(ino)
		return
	}
	v.Edit(ino).Ctime = v.Stamp()
}

// hasRoom refuses an attribute for which the remote has no room. A new directory may have its
// parent's default ACL twice.
func (v view) hasRoom(n *table.Inode, name string, value []byte) error {
	setter, ok := providers.As[providers.AttrSetter](v.o.Provider)
	if !ok || !v.o.Side.Attributes.KeepsXattrs() || !attrs.IsShared(name) || v.StaysLocal(n) {
		return nil
	}
	all := attrs.Sent(n.Xattrs)
	all[name] = value
	if name == attrs.DefaultACL && all[attrs.AccessACL] == nil {
		all[attrs.AccessACL] = value
	}
	if err := setter.Fits(providers.Attr{Valid: providers.AttrXattrs, Xattrs: all}, n.Metadata); err != nil {
		return fmt.Errorf("%w: the store has no room for it: %w", syscall.ENOSPC, err)
	}
	return nil
}

// askXattrs waits until the extended attributes of an inode are known: where a listing said
// that there are some, and before a change always.
func (v *Operations) askXattrs(op *fs.Op, x table.Ino, name string, change bool) error {
	if !v.o.Side.Attributes.KeepsXattrs() || name != "" && !attrs.IsShared(name) {
		return nil
	}
	vague := func() bool {
		locked := v.lock()
		defer locked.unlock()
		n := locked.Inode(x)
		return n != nil && n.AttrsUnknown && (n.Untold != 0 || change)
	}
	if !vague() {
		return nil
	}
	if err := v.o.Remote.FetchAttrs(op, x, true); err != nil {
		return err
	}
	if vague() {
		return fmt.Errorf("%w, which has not told its extended attributes", fs.ErrUnavailable)
	}
	return nil
}
