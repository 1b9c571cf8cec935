package cache

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Extended attributes at the backend.
//
// A backend that keeps them (providers.AttrXattrs) has those that any owner may
// set: user.* and ACLs. trusted.* and security.* give rights on one machine, as
// the set-id bits do; they stay here, and what a backend has of them is handed
// back unchanged, as names that no program can ask for.
//
// A listing may say that an entry has more than it tells (Info.Untold). Then the
// inode has unknown attributes, and who asks for its extended attributes waits for a look.

// theirs begins the names of what a backend has that has no place here.
const theirs = "theirs."

// keepsXattrs reports whether extended attributes go to the backend.
func (v *Volume) keepsXattrs() bool { return v.caps.Attributes.Has(providers.AttrXattrs) }

func isShared(name string) bool { return isACL(name) || strings.HasPrefix(name, "user.") }

// sentXattrs are those of all that the backend keeps.
func sentXattrs(all map[string][]byte) map[string][]byte {
	sent := map[string][]byte{}
	for name, value := range all {
		if foreign, ok := strings.CutPrefix(name, theirs); ok {
			sent[foreign] = value
		} else if isShared(name) {
			sent[name] = value
		}
	}
	return sent
}

// ownXattrs are those of all that never go there.
func ownXattrs(all map[string][]byte) map[string][]byte {
	own := map[string][]byte{}
	for name, value := range all {
		if !isShared(name) && !strings.HasPrefix(name, theirs) {
			own[name] = value
		}
	}
	return own
}

// hasOwnXattrs reports whether an inode has some that are nowhere else.
func (v *Volume) hasOwnXattrs(n *table.Inode) bool {
	return len(n.Xattrs) > 0 && !v.keepsXattrs() || len(ownXattrs(n.Xattrs)) > 0
}

// takeXattrs gives an inode, whose mode is right, those that the backend has of it, if
// they were told: an entry that was written by who keeps no attributes at all leaves
// what is here, as it leaves the mode.
func (v *Volume) takeXattrs(n *table.Inode, r *providers.Info) {
	if !v.keepsXattrs() || r.Attr.Valid == 0 || r.Untold != 0 {
		return
	}
	taken := ownXattrs(n.Xattrs)
	for name, value := range r.Attr.Xattrs {
		switch {
		case isACL(name) && fitsACL(n, name, value):
			if name == accessACL {
				value = acl(value).withMode(n.Mode)
			}
			taken[name] = value
		case isACL(name), !isShared(name), keepsXattr(name) != nil, len(name) > maxXattrName, strings.Contains(name, "\x00"):
			taken[theirs+name] = value
		default:
			taken[name] = value
		}
	}
	n.Xattrs = taken
}

// maxXattrName is the kernel's.
const maxXattrName = 255

// fitsACL reports whether an inode can have an ACL that others made.
func fitsACL(n *table.Inode, name string, value []byte) bool {
	return validACL(value) && !n.IsSymlink() && (name == accessACL && !acl(value).minimal() || name == defaultACL && n.IsDir())
}

func sameXattrs(a, b *table.Inode) bool {
	return maps.EqualFunc(sentXattrs(a.Xattrs), sentXattrs(b.Xattrs), bytes.Equal)
}

// xattrChanged follows a change of one by a program.
func (v *Tx) xattrChanged(ino table.Ino, name string) {
	if v.keepsXattrs() && isShared(name) {
		v.AttrChanged(ino)
		return
	}
	v.table.Edit(ino).Ctime = v.stamp()
}

// hasRoom refuses what the backend could not have. What is made in a directory may have
// its default ACL twice.
func (v *View) hasRoom(n *table.Inode, name string, value []byte) error {
	setter, ok := providers.As[providers.AttrSetter](v.p)
	if !ok || !v.keepsXattrs() || !isShared(name) || v.StaysLocal(n) {
		return nil
	}
	all := sentXattrs(n.Xattrs)
	all[name] = value
	if name == defaultACL && all[accessACL] == nil {
		all[accessACL] = value
	}
	if err := setter.Fits(providers.Attr{Valid: providers.AttrXattrs, Xattrs: all}, n.Metadata); err != nil {
		return fmt.Errorf("%w: the backend has no room for it: %w", syscall.ENOSPC, err)
	}
	return nil
}

// askXattrs waits until the extended attributes of an inode are known: those of
// which a listing said that there are some, and for who changes them, all.
func (v *Volume) askXattrs(op *fs.Op, x table.Ino, name string, change bool) error {
	if !v.keepsXattrs() || name != "" && !isShared(name) {
		return nil
	}
	vague := func() bool {
		locked := v.lock()
		defer locked.unlock()
		n := locked.table.Inode(x)
		return n != nil && n.AttrsUnknown && (n.Untold != 0 || change)
	}
	if !vague() {
		return nil
	}
	if err := v.fetchAttrsToWrite(op, x); err != nil {
		return err
	}
	if vague() {
		return fmt.Errorf("%w, which has not told its extended attributes", fs.ErrUnavailable)
	}
	return nil
}
