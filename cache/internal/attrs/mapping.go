package attrs

import (
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// sentMode are the permission bits that come from the remote and go there. Bits that
// would give rights on this machine do not.
const sentMode = 0o1777

// A Mapping maps attributes between the remote and inodes.
type Mapping struct {
	UID, GID, Umask uint32 // of entries whose owner or mode the remote does not tell
	MapIDs          bool   // owners come from the remote and go there
	Kept            providers.AttrSet
	Listed          bool // a listing tells as much as a Stat
}

// KeepsXattrs reports whether extended attributes go to the remote.
func (m Mapping) KeepsXattrs() bool { return m.Kept.Has(providers.AttrXattrs) }

// HasOwnXattrs reports whether an inode has extended attributes that the remote cannot have.
func (m Mapping) HasOwnXattrs(n *table.Inode) bool {
	return len(n.Xattrs) > 0 && !m.KeepsXattrs() || len(Own(n.Xattrs)) > 0
}

// Unknown reports whether an entry of a listing may have attributes that the listing left out.
func (m Mapping) Unknown(info *providers.Info) bool {
	return !m.Listed && (info.Untold != 0 || info.Kind == providers.KindFile && info.Attr.Valid == 0)
}

// Inode is a new inode for a remote entry. One without a time gets now, and born as its birth
// time, in nanoseconds since 1970.
func (m Mapping) Inode(info *providers.Info, now table.Time, born int64) *table.Inode {
	n := &table.Inode{UID: m.UID, GID: m.GID, Size: info.Size, ContentVersion: 1, AttrGen: 1}
	switch info.Kind {
	case providers.KindDir:
		n.Mode, n.Size = syscall.S_IFDIR|0o777&^m.Umask, 0
	case providers.KindSymlink:
		n.Mode = syscall.S_IFLNK | 0o777
	default:
		n.Mode = syscall.S_IFREG | 0o666&^m.Umask
	}
	m.takeModeAndOwner(n, n, info)
	n.Blocks = (n.Size + 511) / 512
	if n.Mtime, n.Birth = now, born; !info.ModTime().IsZero() {
		n.Mtime, n.Birth = table.TimeOf(info.ModTime()), table.Nanoseconds(info.ModTime())
	}
	n.Atime, n.Ctime = n.Mtime, n.Mtime
	n.Pulled, n.Metadata, n.AttrsUnknown, n.Untold = true, info.Metadata, m.Unknown(info), info.Untold
	m.TakeXattrs(n, info)
	return n
}

// takeModeAndOwner gives n mode and owner of was, except where the remote keeps its own.
func (m Mapping) takeModeAndOwner(n, was *table.Inode, info *providers.Info) {
	if !n.IsSymlink() {
		n.Mode = TakeMode(was.Mode, info.Attr)
	}
	n.UID, n.GID = was.UID, was.GID
	if info.Attr.Valid.Has(providers.AttrOwner) && m.MapIDs {
		n.UID, n.GID = info.Attr.UID, info.Attr.GID
	}
}

// Inherit gives n, the remote's newer version of was, those attributes of was which the remote
// does not keep.
func (m Mapping) Inherit(n, was *table.Inode, info *providers.Info) {
	m.takeModeAndOwner(n, was, info)
	n.Xattrs = was.Xattrs
	m.TakeXattrs(n, info)
}

// Take gives an inode the remote's attributes. A file never gets older.
func (m Mapping) Take(n *table.Inode, info *providers.Info) {
	m.takeModeAndOwner(n, n, info)
	if !n.IsDir() && info.Attr.Valid.Has(providers.AttrModTime) && !info.ModTime().IsZero() {
		n.Mtime = table.Latest(n.Mtime, table.TimeOf(info.ModTime()))
	}
	if n.IsDir() && n.Untold != 0 && info.Untold == 0 {
		n.Xattrs = Own(n.Xattrs) // info has all: none are left at the remote
	}
	n.Metadata, n.AttrsUnknown, n.Untold = info.Metadata, m.Unknown(info), info.Untold
	m.TakeXattrs(n, info)
}

// Differs reports whether the remote's attributes of a directory differ from those of its
// inode.
func (m Mapping) Differs(n *table.Inode, info *providers.Info) bool {
	there := m.Inode(info, n.Mtime, n.Birth)
	return info.Attr.Valid.Has(providers.AttrMode) && there.Mode&sentMode != n.Mode&sentMode ||
		info.Attr.Valid.Has(providers.AttrOwner) && m.MapIDs && (there.UID != n.UID || there.GID != n.GID) ||
		info.Untold != n.Untold ||
		m.KeepsXattrs() && info.Attr.Valid != 0 && info.Untold == 0 && !SameSent(n, there)
}

// TakeMode is a mode with the permissions that the remote keeps. For a store that only knows
// whether a file can be executed, all who may read it may execute it.
func TakeMode(mode uint32, a providers.Attr) uint32 {
	switch {
	case a.Valid.Has(providers.AttrMode):
		return mode&^sentMode | a.Mode&sentMode
	case !a.Valid.Has(providers.AttrExec) || (a.Mode^mode)&0o100 == 0:
		return mode
	case a.Mode&0o100 == 0:
		return mode &^ 0o111
	}
	return mode | mode&0o444>>2
}

// Of are the attributes of an inode that the remote keeps, as far as they are known.
func (m Mapping) Of(n *table.Inode) providers.Attr {
	a := providers.Attr{Valid: m.Kept, Mode: n.Mode & sentMode, UID: n.UID, GID: n.GID, ModTime: n.Mtime.Time()}
	if !m.MapIDs {
		a.Valid &^= providers.AttrOwner
	}
	if n.IsSymlink() {
		a.Valid &^= providers.AttrMode
	}
	if n.AttrsUnknown {
		a.Valid &^= providers.AttrXattrs
	}
	if a.Valid.Has(providers.AttrXattrs) {
		a.Xattrs = Sent(n.Xattrs)
	}
	return a
}

// TakeXattrs gives an inode, whose mode is right, the remote's extended attributes, if they
// were told: for an entry from a writer that keeps no attributes at all, the local ones stay,
// as the mode does.
func (m Mapping) TakeXattrs(n *table.Inode, info *providers.Info) {
	if !m.KeepsXattrs() || info.Attr.Valid == 0 || info.Untold != 0 {
		return
	}
	taken := Own(n.Xattrs)
	for name, value := range info.Attr.Xattrs {
		switch {
		case IsACL(name) && fitsACL(n, name, value):
			if name == AccessACL {
				value = ACL(value).WithMode(n.Mode)
			}
			taken[name] = value
		case IsACL(name), !IsShared(name), !HasSpace(name), len(name) > maxName, strings.Contains(name, "\x00"):
			taken[foreign+name] = value
		default:
			taken[name] = value
		}
	}
	n.Xattrs = taken
}

// fitsACL reports whether an inode can have an ACL from the remote.
func fitsACL(n *table.Inode, name string, value []byte) bool {
	return ValidACL(value) && !n.IsSymlink() && (name == AccessACL && !ACL(value).Minimal() || name == DefaultACL && n.IsDir())
}
