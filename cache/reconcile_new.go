package cache

import (
	"slices"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

func ino(i table.Ino) fs.Ino { return fs.Ino(i) }

// dir: the backend has a directory there.
func (m *merge) dir(v *Tx, l table.Link, rec table.Name, r *providers.Info) {
	b := rec.Remote
	if b != nil && b.Kind == providers.KindDir {
		m.dirAttr(v, rec, r)
		return
	}
	was := remoteIno(rec)
	n := v.table.Inode(rec.Ino)
	switch {
	case n == nil || rec.Ino == 0:
		m.arrive(v, l, rec, r)
	case n.IsDir(): // made here and there: one directory, with what both have in it
		if !m.part(v, l, rec.Ino) {
			return
		}
		edit := v.table.Edit(rec.Ino)
		edit.Loaded, edit.Listed = false, 0
		m.remoteSide(v, l, &rec, v.dirRemote(r, rec.Ino, edit))
	case b != nil && rec.Ino == b.Ino && n.ContentVersion == b.ContentVersion:
		m.unname(v, l, rec)
		rec, _ = v.table.Name(l.Dir, l.Name)
		m.arrive(v, l, rec, r)
	default:
		if !m.aside(v, l, &rec) {
			return
		}
		m.arrive(v, l, rec, r)
	}
	if was != 0 {
		m.leftRemote(v, was)
	}
}

// dirRemote is the base of a directory whose attributes here may differ.
func (v *Volume) dirRemote(r *providers.Info, ino table.Ino, n *table.Inode) *table.Remote {
	return remoteOf(*r, ino, n)
}

// dirAttr takes the mode and owner of a directory from the backend, unless
// they were changed here, or cannot be told there: then what it has may be older.
func (m *merge) dirAttr(v *Tx, rec table.Name, r *providers.Info) {
	n := v.table.Inode(rec.Remote.Ino)
	if n == nil || n.AttrGen != rec.Remote.AttrGen || !v.engine.tellsDirAttrs() {
		return
	}
	if v.dirDiffers(n, r) {
		m.takeAttr(v, rec.Remote.Ino, r)
	}
}

// dirDiffers reports whether the backend tells attributes of a directory that it does
// not have here.
func (v *View) dirDiffers(n *table.Inode, r *providers.Info) bool {
	fresh := v.inodeOf(*r)
	return r.Attr.Valid.Has(providers.AttrMode) && fresh.Mode&sentMode != n.Mode&sentMode ||
		r.Attr.Valid.Has(providers.AttrOwner) && v.o.MapIDs && (fresh.UID != n.UID || fresh.GID != n.GID) ||
		r.Untold != n.Untold ||
		v.keepsXattrs() && r.Attr.Valid != 0 && r.Untold == 0 && !sameXattrs(n, fresh)
}

// takeAttr gives an inode the attributes that the backend has of it.
func (m *merge) takeAttr(v *Tx, x table.Ino, r *providers.Info) {
	n, fresh := v.table.Edit(x), v.inodeOf(*r)
	if !n.IsSymlink() {
		n.Mode = takeMode(n.Mode, r.Attr)
	}
	if r.Attr.Valid.Has(providers.AttrOwner) && v.o.MapIDs {
		n.UID, n.GID = fresh.UID, fresh.GID
	}
	if !n.IsDir() && r.Attr.Valid.Has(providers.AttrModTime) {
		n.Mtime = table.Latest(n.Mtime, fresh.Mtime)
	}
	if n.IsDir() && n.Untold != 0 && r.Untold == 0 {
		n.Xattrs = ownXattrs(n.Xattrs) // whatever else is told of it, there are none left
	}
	n.Metadata, n.AttrsUnknown, n.Untold, n.Ctime = r.Metadata, v.attrsUnknown(r), r.Untold, v.stamp()
	v.takeXattrs(n, r)
	v.Later(func() { v.notifier().AttrChanged(ino(x)) })
	m.report.Changed++
}

// leaf: the backend has a file or a symbolic link there.
func (m *merge) leaf(v *Tx, l table.Link, rec table.Name, r *providers.Info) {
	if b := rec.Remote; b != nil && b.Kind == providers.KindDir {
		m.deleted++
		if b.Ino != 0 {
			m.emptied(v, b.Ino)
		}
		m.remoteSide(v, l, &rec, nil)
		if b.Ino != rec.Ino {
			m.leftRemote(v, b.Ino)
		}
	}
	n, b := v.table.Inode(rec.Ino), rec.Remote
	switch {
	case rec.Ino == 0:
		m.absent(v, l, rec, r)
	case n.IsDir():
		m.notDir(v, l, rec, r)
	case b != nil && sameContent(b, r):
		m.attrs(v, l, rec, r)
	case b != nil && rec.Ino == b.Ino && n.ContentVersion == b.ContentVersion:
		m.replace(v, l, rec, r)
	default:
		m.both(v, l, rec, r)
	}
}

// sameContent reports whether only attributes can differ.
func sameContent(b *table.Remote, r *providers.Info) bool {
	if b.Kind != r.Kind || b.Version.Size != r.Version.Size {
		return false
	}
	return b.Version.ETag != "" && b.Version.ETag == r.Version.ETag || b.Digest != "" && b.Digest == r.Digest
}

// notDir: there is a directory here, and a file there.
func (m *merge) notDir(v *Tx, l table.Link, rec table.Name, r *providers.Info) {
	was := rec.Remote
	if v.table.Inode(rec.Ino).Entries == 0 && rec.Remote == nil && len(v.table.Inode(rec.Ino).RemoteLinks) == 0 {
		m.unname(v, l, rec)
		rec, _ = v.table.Name(l.Dir, l.Name)
	} else if !m.aside(v, l, &rec) {
		return
	}
	m.arrive(v, l, rec, r)
	if was != nil {
		m.leftRemote(v, was.Ino)
	}
}

// attrs: only attributes have changed there, or nothing but the version.
func (m *merge) attrs(v *Tx, l table.Link, rec table.Name, r *providers.Info) {
	b := *rec.Remote
	if n := v.table.Inode(b.Ino); n != nil {
		if n.Origin.ContentVersion == b.ContentVersion {
			v.table.Edit(b.Ino).Origin.Version = r.Version
		}
		if n.AttrGen == b.AttrGen {
			m.takeAttr(v, b.Ino, r)
			v.takeMetadata(b.Ino, b.ContentVersion, r.Metadata)
		}
	}
	b.Version, b.Digest = r.Version, r.Digest
	m.remoteSide(v, l, &rec, &b)
}

// absent: there is something new there, and nothing of that name here.
func (m *merge) absent(v *Tx, l table.Link, rec table.Name, r *providers.Info) {
	b := rec.Remote
	if b == nil {
		m.arrive(v, l, rec, r)
		return
	}
	if sameContent(b, r) {
		m.attrs(v, l, rec, r)
		return
	}
	n := v.table.Inode(b.Ino)
	moved := m.moved(v, n)
	if len(moved) > 0 && n.ContentVersion == b.ContentVersion {
		m.follow(v, l, rec, moved, r)
		return
	}
	if len(moved) > 0 {
		m.tell(v, l, "modified on the remote, renamed and modified locally: kept both", false)
	} else {
		m.tell(v, l, "deleted locally but modified on the remote: restored the remote file", false)
	}
	m.arrive(v, l, rec, r)
	m.leftRemote(v, b.Ino)
}

// moved are the names of an inode here that the backend does not have.
func (m *merge) moved(v *Tx, n *table.Inode) []table.Link {
	if n == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Links), func(l table.Link) bool {
		rec, _ := v.table.Name(l.Dir, l.Name)
		return rec.Local || slices.Contains(n.RemoteLinks, l)
	})
}

// follow: what was renamed here has a new version there. The rename goes on,
// with that version.
func (m *merge) follow(v *Tx, l table.Link, rec table.Name, to []table.Link, r *providers.Info) {
	old := rec.Remote.Ino
	y, n := m.fresh(v, r, old)
	v.table.Put(y, n)
	m.remoteSide(v, l, &rec, remoteOf(*r, y, n))
	for _, name := range to {
		v.bury(name, old, "pulled")
		rec, _ := v.table.Name(name.Dir, name.Name)
		rec.Ino, rec.Held = y, nil
		m.set(v, name, rec)
		m.lost(v, name, old)
		m.shown(v, name)
		v.wrote(name)
	}
	m.leftRemote(v, old)
	m.report.Changed++
}

// arrive gives a free name to what the backend has there. A directory that was
// removed here comes back with what is in it.
func (m *merge) arrive(v *Tx, l table.Link, rec table.Name, r *providers.Info) {
	if dir := m.reachable(v, l.Dir); dir != l.Dir {
		m.name(v, table.Link{Dir: dir, Name: l.Name}, r)
		return
	}
	y, n := m.fresh(v, r, remoteIno(rec))
	v.table.Put(y, n)
	rec.Ino, rec.Local = y, false
	m.remoteSide(v, l, &rec, remoteOf(*r, y, n))
	m.shown(v, l)
	m.report.Changed++
	if !m.first && !n.IsDir() {
		v.wrote(l)
	}
}

// fresh is a new inode for what the backend has, after the one that had the
// name: what the backend does not keep of attributes stays as it was, and the
// time of change moves on.
func (m *merge) fresh(v *Tx, r *providers.Info, old table.Ino) (table.Ino, *table.Inode) {
	n := v.inodeOf(*r)
	if was := v.table.Inode(old); was != nil && was.Kind() == n.Kind() && !n.IsDir() {
		v.inheritAttr(n, was, r)
		n.Mtime = table.Latest(n.Mtime, was.Mtime.Next())
		n.Ctime = v.stamp()
	} else if was == nil && r.ModTime().IsZero() {
		n.Mtime = v.firstListed(n.Mtime)
	}
	return v.table.Alloc(), n
}

// inheritAttr keeps what the backend does not.
func (v *Volume) inheritAttr(n, was *table.Inode, r *providers.Info) {
	if !n.IsSymlink() {
		n.Mode = takeMode(was.Mode, r.Attr)
	}
	if !r.Attr.Valid.Has(providers.AttrOwner) || !v.o.MapIDs {
		n.UID, n.GID = was.UID, was.GID
	}
	n.Xattrs = was.Xattrs
	v.takeXattrs(n, r)
}

// replace: theirs is new, ours is what it was. Nobody may see half of each, so
// the name gets a new inode; only one of which nobody saw any content that is
// here keeps its number.
func (m *merge) replace(v *Tx, l table.Link, rec table.Name, r *providers.Info) {
	x := rec.Ino
	old := v.table.Inode(x)
	dirtyAttr := old.AttrGen != rec.Remote.AttrGen
	if m.unseen(v, x, old) && !dirtyAttr && rec.Remote.Kind == r.Kind {
		m.renew(v, l, rec, r)
		return
	}
	v.bury(l, x, "pulled")
	y, n := m.fresh(v, r, x)
	if dirtyAttr {
		n.Mode, n.UID, n.GID, n.Xattrs = n.Kind()|old.Mode&^uint32(0o170000), old.UID, old.GID, old.Xattrs
	}
	v.table.Put(y, n)
	base := remoteOf(*r, y, n)
	if dirtyAttr {
		v.table.Edit(y).AttrGen++
	}
	rec.Ino = y
	m.remoteSide(v, l, &rec, base)
	m.lost(v, l, x)
	m.shown(v, l)
	v.wrote(l)
	m.report.Changed++
}

// unseen reports whether an inode may become another version: it has one name,
// and nobody has it open, or only who still waits for its first bytes.
// Attributes that the kernel has of it end with the next open, for who only looks
// with a notice; pages that it has of
// content that was here once, with the next open.
func (m *merge) unseen(v *Tx, x table.Ino, n *table.Inode) bool {
	if len(n.Links) != 1 || len(n.RemoteLinks) != 1 || n.IsSymlink() && v.References(x) > 0 {
		return false
	}
	oi := v.open[x]
	return n.State == table.None && oi == nil || oi != nil && oi.untold
}

// renew is replace in place.
func (m *merge) renew(v *Tx, l table.Link, rec table.Name, r *providers.Info) {
	x := rec.Ino
	old := v.table.Edit(x)
	before := pastNow(v.View, x, old)
	n := v.inodeOf(*r)
	v.inheritAttr(n, old, r)
	old.Mode, old.UID, old.GID, old.Size, old.Blocks, old.Xattrs = n.Mode, n.UID, n.GID, n.Size, n.Blocks, n.Xattrs
	old.Mtime, old.Ctime = table.Latest(n.Mtime, old.Mtime.Next()), v.stamp()
	old.Metadata, old.AttrsUnknown, old.Untold, old.Target, old.Origin = n.Metadata, n.AttrsUnknown, n.Untold, "", table.Origin{}
	old.ContentVersion++
	if old.State != table.None { // what came for who waits for it
		old.State = table.None
		v.Freed(x, old)
	}
	v.OutdateAttributes(x)
	v.Later(func() { v.notifier().AttrChanged(ino(x)) })
	m.remoteSide(v, l, &rec, remoteOf(*r, x, old))
	v.recordRenewed(l, x, before)
	m.shown(v, l)
	v.wrote(l)
	m.report.Changed++
}

// moveRemote is base for a name that is another's at the backend from now on: who had
// it there, unless that is spared, loses that remote link.
func (m *merge) moveRemote(v *Tx, l table.Link, rec *table.Name, base *table.Remote, spared table.Ino) {
	was := remoteIno(*rec)
	m.remoteSide(v, l, rec, base)
	if was != spared {
		m.leftRemote(v, was)
	}
}

// remoteIno is who has a name at the backend; 0: nobody that is known here.
func remoteIno(rec table.Name) table.Ino {
	if rec.Remote == nil {
		return 0
	}
	return rec.Remote.Ino
}
