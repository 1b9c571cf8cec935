package cache

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
)

// maxXattrs bounds names and values of an inode together, in bytes.
const maxXattrs = 1 << 20

// keepsXattr refuses what belongs to no name space that is kept; POSIX ACLs are
// in "system.".
func keepsXattr(name string) error {
	for _, space := range []string{"user.", "trusted.", "security."} {
		if len(name) > len(space) && strings.HasPrefix(name, space) {
			return nil
		}
	}
	return fs.ErrUnsupported
}

// aclXattr begins the names of POSIX ACLs.
const aclXattr = "system.posix_acl_"

// GetXattr implements fs.Volume. There is no ACL anywhere, which is what the
// kernel must hear: it asks whenever it checks a permission, and takes any
// other error for a refusal.
func (v *Volume) GetXattr(_ *fs.Op, ino fs.Ino, name string) ([]byte, error) {
	if err := keepsXattr(name); err != nil && !strings.HasPrefix(name, aclXattr) {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	if n == nil {
		return nil, fs.ErrStale
	}
	value, ok := n.rare().xattrs[name]
	if !ok {
		return nil, syscall.ENODATA
	}
	return bytes.Clone(value), nil
}

// SetXattr implements fs.Volume.
func (v *Volume) SetXattr(_ *fs.Op, ino fs.Ino, name string, value []byte, flags uint32) error {
	if err := keepsXattr(name); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	if n == nil {
		return fs.ErrStale
	}
	old, there := n.rare().xattrs[name]
	switch {
	case there && flags&unix.XATTR_CREATE != 0:
		return syscall.EEXIST
	case !there && flags&unix.XATTR_REPLACE != 0:
		return syscall.ENODATA
	case sizeOf(n.rare().xattrs)-len(old)+len(name)+len(value) > maxXattrs:
		return syscall.ENOSPC
	}
	x := n.extra()
	if x.xattrs == nil {
		x.xattrs = map[string][]byte{}
	}
	x.xattrs[name] = append([]byte{}, value...)
	n.changed(v.now())
	v.table.save(ino, n)
	return nil
}

func sizeOf(xattrs map[string][]byte) int {
	sum := 0
	for name, value := range xattrs {
		sum += len(name) + len(value)
	}
	return sum
}

// ListXattr implements fs.Volume.
func (v *Volume) ListXattr(_ *fs.Op, ino fs.Ino) ([]string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	if n == nil {
		return nil, fs.ErrStale
	}
	return slices.Sorted(maps.Keys(n.rare().xattrs)), nil
}

// RemoveXattr implements fs.Volume.
func (v *Volume) RemoveXattr(_ *fs.Op, ino fs.Ino, name string) error {
	if err := keepsXattr(name); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.table.node(ino)
	if n == nil {
		return fs.ErrStale
	}
	if _, there := n.rare().xattrs[name]; !there {
		return syscall.ENODATA
	}
	delete(n.more.xattrs, name)
	n.changed(v.now())
	v.table.save(ino, n)
	return nil
}
