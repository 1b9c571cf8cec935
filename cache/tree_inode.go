package cache

import (
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// sendable reports whether the backend can have an inode of this kind. A
// directory that it cannot have empty is still its business: it is there as
// soon as something is in it.
func (v *Volume) sendable(n *table.Inode) bool {
	return n.IsRegular() || n.IsDir() || n.IsSymlink() && v.caps.Symlinks
}

// sentMode are the permission bits that come from the backend and go there.
// Bits that would give rights on this machine do not.
const sentMode = 0o1777

// inodeOf is a new inode for what the backend has.
func (v *View) inodeOf(info providers.Info) *table.Inode {
	n := &table.Inode{UID: v.o.Owner.UID, GID: v.o.Owner.GID, Size: info.Size, ContentVersion: 1, AttrGen: 1}
	switch info.Kind {
	case providers.KindDir:
		n.Mode, n.Size = syscall.S_IFDIR|0o777&^v.o.Umask, 0
	case providers.KindSymlink:
		n.Mode = syscall.S_IFLNK | 0o777
	default:
		n.Mode = syscall.S_IFREG | 0o666&^v.o.Umask
	}
	if info.Kind != providers.KindSymlink {
		n.Mode = takeMode(n.Mode, info.Attr)
	}
	if info.Attr.Valid.Has(providers.AttrOwner) && v.o.MapIDs {
		n.UID, n.GID = info.Attr.UID, info.Attr.GID
	}
	n.Blocks = (n.Size + 511) / 512
	if t := info.ModTime(); !t.IsZero() {
		n.Mtime, n.Birth = table.TimeOf(t), nanoseconds(t)
	} else {
		n.Mtime, n.Birth = v.stamp(), v.revisionSince()
	}
	n.Atime, n.Ctime = n.Mtime, n.Mtime
	n.Pulled, n.Metadata, n.AttrsUnknown, n.Untold = true, info.Metadata, v.attrsUnknown(&info), info.Untold
	v.takeXattrs(n, &info)
	return n
}

// takeMode is a mode with the permissions that the backend keeps. Of a store
// that only knows whether a file can be executed, who may read it may then.
func takeMode(mode uint32, a providers.Attr) uint32 {
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

// attrOf is what the backend keeps of an inode's attributes, as far as they are
// known.
func (v *Volume) attrOf(n *table.Inode) providers.Attr {
	a := providers.Attr{Valid: v.caps.Attributes, Mode: n.Mode & sentMode,
		UID: n.UID, GID: n.GID, ModTime: n.Mtime.Time()}
	if !v.o.MapIDs {
		a.Valid &^= providers.AttrOwner
	}
	if n.IsSymlink() {
		a.Valid &^= providers.AttrMode
	}
	if n.AttrsUnknown {
		a.Valid &^= providers.AttrXattrs
	}
	if a.Valid.Has(providers.AttrXattrs) {
		a.Xattrs = sentXattrs(n.Xattrs)
	}
	return a
}

// remoteOf is what the backend has under a name, when it is in the state that
// the inode has here.
func remoteOf(info providers.Info, ino table.Ino, n *table.Inode) *table.Remote {
	return &table.Remote{Ino: ino, Kind: info.Kind, Version: info.Version, Digest: info.Digest, ContentVersion: n.ContentVersion, AttrGen: n.AttrGen}
}

var _ fs.Notifier = nobody{}

// isHere reports whether nothing of an inode has to be fetched.
func (v *Volume) isHere(n *table.Inode) bool {
	switch {
	case n.IsRegular():
		return n.State == table.Whole || n.Size == 0
	case n.IsSymlink():
		return n.Target != ""
	}
	return true
}
