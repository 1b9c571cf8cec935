package fs

import (
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// setxattrKillSGID is FUSE_SETXATTR_ACL_KILL_SGID: the caller sets an ACL on a file of a group
// that it is not in.
const setxattrKillSGID = 1

// describePrefix begins the names of attributes that read a volume's description of an inode.
// They are never listed, so that copying tools do not copy them, and cannot be set.
const describePrefix = "user.wsmount."

func (f *front) GetXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	c := f.begin(opGetxattr, cancel, h)
	value, err := c.getXattr(name)
	if err != nil {
		return 0, c.end(err)
	}
	n := uint32(len(value))
	if len(value) > len(dest) {
		return n, c.end(syscall.ERANGE)
	}
	copy(dest, value)
	return n, c.end(nil)
}

func (c *call) getXattr(name string) ([]byte, error) {
	what, ours := strings.CutPrefix(name, describePrefix)
	if !ours {
		if strings.HasPrefix(name, "user.") { // the others are attributes that the kernel goes by
			if err := c.s.guardContent(c.ino); err != nil {
				return nil, err
			}
		}
		return c.s.vol.GetXattr(&c.Op, c.ino, name)
	}
	if d, ok := c.s.vol.(Describer); ok {
		if v, ok := d.Describe(&c.Op, c.ino, what); ok {
			return []byte(v), nil
		}
	}
	return nil, syscall.ENODATA
}

func (f *front) ListXAttr(cancel <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	c := f.begin(opListxattr, cancel, h)
	names, err := c.s.vol.ListXattr(&c.Op, c.ino)
	if err != nil {
		return 0, c.end(err)
	}
	list := dest[:0]
	n := 0
	for _, name := range names {
		if strings.HasPrefix(name, describePrefix) {
			continue
		}
		if n += len(name) + 1; n <= len(dest) {
			list = append(append(list, name...), 0)
		}
	}
	if n > len(dest) {
		return uint32(n), c.end(syscall.ERANGE)
	}
	return uint32(n), c.end(nil)
}

func (f *front) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, name string, value []byte) fuse.Status {
	c := f.begin(opSetxattr, cancel, &in.InHeader)
	c.KillPriv = in.SetXAttrFlags&setxattrKillSGID != 0
	err := c.guardXattr(name)
	if err == nil {
		err = c.s.vol.SetXattr(&c.Op, c.ino, name, value, in.Flags)
	}
	return c.end(err)
}

func (f *front) RemoveXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	c := f.begin(opRemovexattr, cancel, h)
	err := c.guardXattr(name)
	if err == nil {
		err = c.s.vol.RemoveXattr(&c.Op, c.ino, name)
	}
	return c.end(err)
}

func (c *call) guardXattr(name string) error {
	if err := c.f.guardInode(&c.Op, c.s, c.ino); err != nil {
		return err
	}
	if strings.HasPrefix(name, describePrefix) {
		return syscall.EPERM
	}
	return nil
}
