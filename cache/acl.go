package cache

import (
	"encoding/binary"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// POSIX ACLs are kept as the extended attributes that the kernel sends them as,
// and the kernel checks permissions by them. What is left to a volume: an
// access ACL and the mode are two views of one thing, so setting one changes
// the other, and a default ACL of a directory rules what is made in it.
const (
	accessACL  = "system.posix_acl_access"
	defaultACL = "system.posix_acl_default"
)

func isACL(name string) bool { return name == accessACL || name == defaultACL }

// The kernel's form of an ACL (linux/posix_acl_xattr.h): a version, then
// entries of tag, permissions and id, little endian.
const (
	aclVersion = 2
	aclHead    = 4
	aclEntry   = 8

	aclUserObj  = 0x01
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclMask     = 0x10
	aclOther    = 0x20
)

// acl is an ACL in the kernel's form, which validACL has seen.
type acl []byte

func validACL(value []byte) bool {
	if len(value) < aclHead || (len(value)-aclHead)%aclEntry != 0 || binary.LittleEndian.Uint32(value) != aclVersion {
		return false
	}
	seen := uint16(0)
	a := acl(value)
	for i := range a.entries() {
		tag, perm := a.entry(i)
		if perm > 7 {
			return false
		}
		seen |= tag
	}
	const needed = aclUserObj | aclGroupObj | aclOther
	named := seen&(aclUser|aclGroup) != 0
	return seen&needed == needed && (!named || seen&aclMask != 0)
}

func (a acl) entries() int { return (len(a) - aclHead) / aclEntry }

func (a acl) entry(i int) (tag, perm uint16) {
	at := a[aclHead+i*aclEntry:]
	return binary.LittleEndian.Uint16(at), binary.LittleEndian.Uint16(at[2:])
}

func (a acl) setPerm(i int, perm uint16) {
	binary.LittleEndian.PutUint16(a[aclHead+i*aclEntry+2:], perm)
}

// minimal reports whether an ACL says no more than a mode does.
func (a acl) minimal() bool {
	for i := range a.entries() {
		if tag, _ := a.entry(i); tag&(aclUser|aclGroup|aclMask) != 0 {
			return false
		}
	}
	return true
}

// each gives the entries that the permission bits of a mode stand for, with the
// place of the bits: owner, group (the mask where there is one), others.
func (a acl) each(visit func(i int, perm uint16, shift uint)) {
	group, mask := -1, -1
	for i := range a.entries() {
		switch tag, perm := a.entry(i); tag {
		case aclUserObj:
			visit(i, perm, 6)
		case aclGroupObj:
			group = i
		case aclMask:
			mask = i
		case aclOther:
			visit(i, perm, 0)
		}
	}
	if mask >= 0 {
		group = mask
	}
	if group >= 0 {
		_, perm := a.entry(group)
		visit(group, perm, 3)
	}
}

// mode is the permission bits that an ACL shows as.
func (a acl) mode() (mode uint32) {
	a.each(func(_ int, perm uint16, shift uint) { mode |= uint32(perm) << shift })
	return mode
}

// withMode is a copy of an ACL after chmod.
func (a acl) withMode(mode uint32) acl {
	a = append(acl{}, a...)
	a.each(func(i int, _ uint16, shift uint) { a.setPerm(i, uint16(mode>>shift&7)) })
	return a
}

// setACL stores an ACL, or turns one that says no more than a mode into the mode.
func (v *Tx) setACL(op *fs.Op, ino table.Ino, name string, value []byte) error {
	if !validACL(value) {
		return syscall.EINVAL
	}
	n := v.table.Edit(ino)
	if n.IsSymlink() {
		return syscall.EOPNOTSUPP
	}
	if err := v.hasRoom(n, name, value); err != nil {
		return err
	}
	value = append([]byte{}, value...)
	if name == defaultACL {
		if !n.IsDir() {
			return syscall.EACCES
		}
		setXattr(n, name, value)
		v.xattrChanged(ino, name)
		return nil
	}
	mode := n.Mode&^0o777 | acl(value).mode()
	if op.KillPriv {
		mode &^= syscall.S_ISGID // the caller is not in the group
	}
	if acl(value).minimal() {
		value = nil
	}
	setXattr(n, name, value)
	if mode == n.Mode {
		v.xattrChanged(ino, name)
		return nil
	}
	n.Mode = mode
	v.AttrChanged(ino)
	return nil
}

// chmod changes the mode of an inode that may be edited, and its ACL with it.
func chmod(n *table.Inode, mode uint32) {
	n.Mode = n.Kind() | mode&^syscall.S_IFMT
	if a := n.Xattrs[accessACL]; a != nil {
		setXattr(n, accessACL, acl(a).withMode(n.Mode))
	}
}

// inherit gives a new inode its permissions: those asked for, less the umask,
// or as the default ACL of the directory has them.
func inherit(n, parent *table.Inode, umask uint32) {
	rules := acl(parent.Xattrs[defaultACL])
	if rules == nil {
		n.Mode &^= umask
		return
	}
	if n.IsDir() {
		setXattr(n, defaultACL, append([]byte{}, rules...))
	}
	mode := n.Mode & (rules.mode() | ^uint32(0o777))
	if !rules.minimal() {
		setXattr(n, accessACL, rules.withMode(mode))
	}
	n.Mode = mode
}
