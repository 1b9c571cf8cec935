package cache

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// maxXattrs bounds names and values of an inode together, in bytes.
const maxXattrs = 1 << 20

// keepsXattr refuses what belongs to no name space that is kept.
func keepsXattr(name string) error {
	if isACL(name) {
		return nil
	}
	for _, space := range []string{"user.", "trusted.", "security."} {
		if len(name) > len(space) && strings.HasPrefix(name, space) {
			return nil
		}
	}
	return fs.ErrUnsupported
}

// GetXattr implements fs.Volume.
func (v *Volume) GetXattr(op *fs.Op, ino fs.Ino, name string) (value []byte, err error) {
	if err := keepsXattr(name); err != nil {
		return nil, err
	}
	if err := v.askXattrs(op, table.Ino(ino), name, false); err != nil {
		return nil, err
	}
	err = v.view(func(v *View) error {
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
func (v *Volume) SetXattr(op *fs.Op, ino fs.Ino, name string, value []byte, flags uint32) error {
	if err := keepsXattr(name); err != nil {
		return err
	}
	i := table.Ino(ino)
	if err := v.askXattrs(op, i, name, true); err != nil {
		return err
	}
	return v.update(func(v *Tx) error {
		n, err := v.inode(ino)
		if err != nil {
			return err
		}
		old, there := n.Xattrs[name]
		switch {
		case there && flags&unix.XATTR_CREATE != 0:
			return syscall.EEXIST
		case !there && flags&unix.XATTR_REPLACE != 0:
			return syscall.ENODATA
		case sizeOf(n.Xattrs)-len(old)+len(name)+len(value) > maxXattrs:
			return syscall.ENOSPC
		case isACL(name):
			return v.setACL(op, i, name, value)
		}
		if err := v.hasRoom(n, name, value); err != nil {
			return err
		}
		setXattr(v.table.Edit(i), name, append([]byte{}, value...))
		v.xattrChanged(i, name)
		return nil
	})
}

func sizeOf(xattrs map[string][]byte) int {
	sum := 0
	for name, value := range xattrs {
		sum += len(name) + len(value)
	}
	return sum
}

// setXattr gives an inode that may be edited a value, nil for none. The map is
// shared with what the table has, so it is not changed in place.
func setXattr(n *table.Inode, name string, value []byte) {
	if _, there := n.Xattrs[name]; !there && value == nil {
		return
	}
	n.Xattrs = maps.Clone(n.Xattrs)
	if value == nil {
		delete(n.Xattrs, name)
		return
	}
	if n.Xattrs == nil {
		n.Xattrs = map[string][]byte{}
	}
	n.Xattrs[name] = value
}

// ListXattr implements fs.Volume.
func (v *Volume) ListXattr(op *fs.Op, ino fs.Ino) (names []string, err error) {
	if err := v.askXattrs(op, table.Ino(ino), "", false); err != nil {
		return nil, err
	}
	err = v.view(func(v *View) error {
		n, err := v.inode(ino)
		if err == nil {
			names = slices.Sorted(maps.Keys(n.Xattrs))
		}
		return err
	})
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, theirs) }), err
}

// RemoveXattr implements fs.Volume.
func (v *Volume) RemoveXattr(op *fs.Op, ino fs.Ino, name string) error {
	if err := keepsXattr(name); err != nil {
		return err
	}
	i := table.Ino(ino)
	if err := v.askXattrs(op, i, name, true); err != nil {
		return err
	}
	return v.update(func(v *Tx) error {
		n, err := v.inode(ino)
		if err != nil {
			return err
		}
		if _, there := n.Xattrs[name]; !there {
			if isACL(name) {
				return nil // as a disk does: every file has the ACL that its mode is
			}
			return syscall.ENODATA
		}
		setXattr(v.table.Edit(i), name, nil)
		v.xattrChanged(i, name)
		return nil
	})
}
