package attrs

import (
	"encoding/binary"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
)

// POSIX ACLs are kept as the extended attributes that the kernel sends them as, and the kernel
// checks permissions by them. The rest is left to a volume: an access ACL and the mode are two
// views of one thing, so setting one changes the other, and a default ACL of a directory gives
// new entries in it their ACL.
const (
	AccessACL  = "system.posix_acl_access"
	DefaultACL = "system.posix_acl_default"
)

// IsACL reports whether an extended attribute is an ACL.
func IsACL(name string) bool { return name == AccessACL || name == DefaultACL }

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

// ACL is an ACL in the kernel's form, checked with ValidACL.
type ACL []byte

// ValidACL reports whether a value is an ACL.
func ValidACL(value []byte) bool {
	if len(value) < aclHead || (len(value)-aclHead)%aclEntry != 0 || binary.LittleEndian.Uint32(value) != aclVersion {
		return false
	}
	seen := uint16(0)
	a := ACL(value)
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

func (a ACL) entries() int { return (len(a) - aclHead) / aclEntry }

func (a ACL) entry(i int) (tag, perm uint16) {
	at := a[aclHead+i*aclEntry:]
	return binary.LittleEndian.Uint16(at), binary.LittleEndian.Uint16(at[2:])
}

func (a ACL) setPerm(i int, perm uint16) {
	binary.LittleEndian.PutUint16(a[aclHead+i*aclEntry+2:], perm)
}

// Minimal reports whether an ACL grants just what a mode can express.
func (a ACL) Minimal() bool {
	for i := range a.entries() {
		if tag, _ := a.entry(i); tag&(aclUser|aclGroup|aclMask) != 0 {
			return false
		}
	}
	return true
}

// each visits the entries that correspond to permission bits of a mode, with the position of
// the bits: owner, group (the mask where there is one), others.
func (a ACL) each(visit func(i int, perm uint16, shift uint)) {
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

// Mode is the permission bits that correspond to an ACL.
func (a ACL) Mode() (mode uint32) {
	a.each(func(_ int, perm uint16, shift uint) { mode |= uint32(perm) << shift })
	return mode
}

// WithMode is a copy of an ACL after chmod.
func (a ACL) WithMode(mode uint32) ACL {
	a = append(ACL{}, a...)
	a.each(func(i int, _ uint16, shift uint) { a.setPerm(i, uint16(mode>>shift&7)) })
	return a
}

// Chmod changes the mode of an inode that may be edited, and its ACL with it.
func Chmod(n *table.Inode, mode uint32) {
	n.Mode = n.Kind() | mode&^syscall.S_IFMT
	if a := n.Xattrs[AccessACL]; a != nil {
		Set(n, AccessACL, ACL(a).WithMode(n.Mode))
	}
}

// Inherit gives a new inode its permissions: those of the request, less the umask, or by the
// default ACL of the directory.
func Inherit(n, parent *table.Inode, umask uint32) {
	rules := ACL(parent.Xattrs[DefaultACL])
	if rules == nil {
		n.Mode &^= umask
		return
	}
	if n.IsDir() {
		Set(n, DefaultACL, append([]byte{}, rules...))
	}
	mode := n.Mode & (rules.Mode() | ^uint32(0o777))
	if !rules.Minimal() {
		Set(n, AccessACL, rules.WithMode(mode))
	}
	n.Mode = mode
}
