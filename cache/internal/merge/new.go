package merge

import (
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// remoteIno is the inode that has a name at the remote; 0: none that is known locally.
func remoteIno(rec table.Name) table.Ino {
	if rec.Remote == nil {
		return 0
	}
	return rec.Remote.Ino
}

// versionOf is r as a remote entry that no local inode has.
func versionOf(r *providers.Info) *table.Remote {
	return &table.Remote{Kind: r.Kind, Version: r.Version, Digest: r.Digest}
}

// remoteSide sets the remote side of the name. The inode that had it there loses that remote link.
func (s *sides) remoteSide(base *table.Remote) {
	s.rec.Remote, s.rec.Attempt, s.rec.Held = base, nil, nil
	s.set(s.tx, s.l, s.rec)
	s.reload()
}

// moveRemote is remoteSide for a name that becomes another inode's at the remote: the inode that
// had it there loses that remote link, unless it is spared.
func (s *sides) moveRemote(base *table.Remote, spared table.Ino) {
	was := remoteIno(s.rec)
	s.remoteSide(base)
	if was != spared {
		s.leftRemote(s.tx, was)
	}
}

// swap gives the name another inode.
func (s *sides) swap(x table.Ino) {
	s.rec.Ino, s.rec.Local = x, false
	s.set(s.tx, s.l, s.rec)
	s.reload()
	s.shown(s.tx, s.l)
}

// forget: the remote has no known entry there any more.
func (s *sides) forget() { s.moveRemote(nil, s.rec.Ino) }

// release is forget for a directory that has only such names in it.
func (s *sides) release() {
	s.emptied(s.tx, s.rec.Remote.Ino)
	s.reload()
	s.forget()
}

// detach makes the local entry stay local. The remote keeps its own.
func (s *sides) detach() {
	s.rec.Local = true
	if s.tx.Inode(s.rec.Ino).IsDir() {
		s.tx.Edit(s.rec.Ino).Loaded = true
	}
	s.forget()
}

// remove takes the name away on both sides.
func (s *sides) remove() {
	s.forget()
	s.unname()
}

// unname takes the local name away. A program that has the file open keeps it, and the file keeps
// its claim to the name.
func (s *sides) unname() {
	v, x := s.tx, s.rec.Ino
	if !s.First {
		v.TellDeleted(s.l, v.Inode(x))
	}
	v.Bury(s.l, x, history.WhyPulled)
	s.rec.Ino, s.rec.Local = 0, false
	s.set(v, s.l, s.rec)
	s.lost(v, s.l, x)
	s.shown(v, s.l)
	s.Report.Deleted++
	s.reload()
}

// joinDirs makes the remote's directory the local one, with the entries of both in it.
func (s *sides) joinDirs() {
	if !s.part(s.tx, s.l, s.rec.Ino) {
		return
	}
	n := s.tx.Edit(s.rec.Ino)
	n.Loaded, n.Listed = false, 0
	s.reload()
	s.moveRemote(tree.RemoteOf(*s.theirs, s.rec.Ino, n), 0)
}

// supplant takes the name from the local entry.
func (s *sides) supplant() {
	s.unname()
	s.arriveAnew()
}

// makeRoom moves the local entry aside.
func (s *sides) makeRoom() {
	if s.aside() {
		s.arriveAnew()
	}
}

// arriveAnew is arrive for a name under which the remote had another entry before.
func (s *sides) arriveAnew() {
	was := remoteIno(s.rec)
	s.arrive()
	if was != 0 {
		s.leftRemote(s.tx, was)
	}
}

// arrive gives the free name to the remote's entry. A directory that was removed locally comes
// back with its entries.
func (s *sides) arrive() {
	v := s.tx
	if dir := s.reachable(v, s.l.Dir); dir != s.l.Dir {
		s.name(v, table.Link{Dir: dir, Name: s.l.Name}, s.theirs)
		return
	}
	y, n := s.fresh(remoteIno(s.rec))
	v.Put(y, n)
	s.rec.Ino, s.rec.Local = y, false
	s.remoteSide(tree.RemoteOf(*s.theirs, y, n))
	s.shown(v, s.l)
	s.Report.Changed++
	if !s.First && !n.IsDir() {
		v.TellWrote(s.l)
	}
}

// fresh is a new inode for the remote's entry, after the one that had the name: attributes that
// the remote does not store stay as they were, and the time of change moves on.
func (s *sides) fresh(old table.Ino) (table.Ino, *table.Inode) {
	v := s.tx
	n := v.InodeOf(*s.theirs)
	if was := v.Inode(old); was != nil && was.Kind() == n.Kind() && !n.IsDir() {
		v.o.Side.Attributes.Inherit(n, was, s.theirs)
		n.Mtime = table.Latest(n.Mtime, was.Mtime.Next())
		n.Ctime = v.Stamp()
	} else if was == nil && s.theirs.ModTime().IsZero() {
		n.Mtime = revision.FirstListed(v, n.Mtime)
	}
	return v.Alloc(), n
}

// follow: a locally renamed file has a new version at the remote. The rename goes on, with that
// version.
func (s *sides) follow() {
	v, old := s.tx, s.rec.Remote.Ino
	to := s.moved(v.Inode(old))
	y, n := s.fresh(old)
	v.Put(y, n)
	s.remoteSide(tree.RemoteOf(*s.theirs, y, n))
	for _, name := range to {
		v.Bury(name, old, history.WhyPulled)
		rec := v.Record(name)
		rec.Ino, rec.Held = y, nil
		s.set(v, name, rec)
		s.lost(v, name, old)
		s.shown(v, name)
		v.TellWrote(name)
	}
	s.leftRemote(v, old)
	s.Report.Changed++
}

// replace: theirs is new, ours is unmodified. No program may see half of each, so the name gets a
// new inode. Attributes that were changed locally stay.
func (s *sides) replace() {
	v, x := s.tx, s.rec.Ino
	old := v.Inode(x)
	dirtyAttr := old.AttrGen != s.rec.Remote.AttrGen
	v.Bury(s.l, x, history.WhyPulled)
	y, n := s.fresh(x)
	if dirtyAttr {
		n.Mode, n.UID, n.GID, n.Xattrs = n.Kind()|old.Mode&^uint32(0o170000), old.UID, old.GID, old.Xattrs
	}
	v.Put(y, n)
	base := tree.RemoteOf(*s.theirs, y, n)
	if dirtyAttr {
		v.Edit(y).AttrGen++
	}
	s.rec.Ino = y
	s.remoteSide(base)
	s.lost(v, s.l, x)
	s.shown(v, s.l)
	v.TellWrote(s.l)
	s.Report.Changed++
}

// put gives the name to a file that was just made, with theirs as its base.
func (s *sides) put(made files.Made) {
	v, old, x := s.tx, s.rec.Ino, made.Ino
	_, n := s.fresh(old)
	n.Mtime, n.Ctime, n.Birth, n.Size, n.Blocks, n.State = v.Stamp(), v.Stamp(), v.Now().UnixNano(), made.Size, made.Blocks, table.Whole
	if old != 0 {
		v.Bury(s.l, old, history.WhyReplaced)
	}
	if was := v.Inode(old); was != nil && was.IsRegular() {
		n.Mode, n.UID, n.GID, n.Xattrs = was.Mode, was.UID, was.GID, was.Xattrs
	} else {
		n.Mode = 0o100666 &^ v.o.Side.Attributes.Umask
	}
	v.Put(x, n)
	s.swap(x)
	s.moveRemote(versionOf(s.theirs), old)
	if old != 0 {
		s.lost(v, s.l, old)
	}
	v.Written(x, v.Inode(x))
}

// renew is replace in place, of an inode of which no program saw any content.
func (s *sides) renew() {
	v, x := s.tx, s.rec.Ino
	old := v.Edit(x)
	before := v.o.History.PastOf(v.View, x, old)
	n := v.InodeOf(*s.theirs)
	v.o.Side.Attributes.Inherit(n, old, s.theirs)
	old.Mode, old.UID, old.GID, old.Size, old.Blocks, old.Xattrs = n.Mode, n.UID, n.GID, n.Size, n.Blocks, n.Xattrs
	old.Mtime, old.Ctime = table.Latest(n.Mtime, old.Mtime.Next()), v.Stamp()
	old.Metadata, old.AttrsUnknown, old.Untold, old.Target, old.Origin = n.Metadata, n.AttrsUnknown, n.Untold, "", table.Origin{}
	old.ContentVersion++
	if old.State != table.None { // content that came for a waiting reader
		old.State = table.None
		v.Freed(x, old)
	}
	v.OutdateAttributes(x)
	v.TellAttr(x)
	s.remoteSide(tree.RemoteOf(*s.theirs, x, old))
	v.Notes.Renewed(s.l, x, before)
	s.shown(v, s.l)
	v.TellWrote(s.l)
	s.Report.Changed++
}

// takeDirAttrs takes the mode and owner of a directory from the remote, if they differ.
func (s *sides) takeDirAttrs() {
	x := s.rec.Remote.Ino
	if s.tx.o.Side.Attributes.Differs(s.tx.Inode(x), s.theirs) {
		s.takeAttr(x)
	}
}

// takeAttr gives an inode the attributes that the remote has of it.
func (s *sides) takeAttr(x table.Ino) {
	v := s.tx
	n := v.Edit(x)
	v.o.Side.Attributes.Take(n, s.theirs)
	n.Ctime = v.Stamp()
	v.TellAttr(x)
	s.Report.Changed++
}

// refresh: only attributes have changed at the remote, or only the version.
func (s *sides) refresh() {
	v, r, b := s.tx, s.theirs, *s.rec.Remote
	if n := v.Inode(b.Ino); n != nil {
		if n.Origin.ContentVersion == b.ContentVersion {
			v.Edit(b.Ino).Origin.Version = r.Version
		}
		if n.AttrGen == b.AttrGen {
			s.takeAttr(b.Ino)
			v.o.Executor.TakeMetadata(v.Tx.Tx, b.Ino, b.ContentVersion, r.Metadata)
		}
	}
	b.Version, b.Digest = r.Version, r.Digest
	s.remoteSide(&b)
}

// adopt: both sides made the same content. The remote has it already.
func (s *sides) adopt() {
	v, x, b := s.tx, s.rec.Ino, s.rec.Remote
	n := v.Edit(x)
	n.Suspect = false
	base := tree.RemoteOf(*s.theirs, x, n)
	if b != nil && b.Ino == x && b.AttrGen != n.AttrGen {
		base.AttrGen = b.AttrGen // our attributes are still to be sent
	} else {
		s.takeAttr(x)
	}
	v.Edit(x).Origin = table.Origin{Version: s.theirs.Version, Digest: s.theirs.Digest, ContentVersion: n.ContentVersion}
	s.moveRemote(base, x)
}
