package cache

import (
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// remoteIno is who has a name at the backend; 0: nobody that is known here.
func remoteIno(rec table.Name) table.Ino {
	if rec.Remote == nil {
		return 0
	}
	return rec.Remote.Ino
}

// versionOf is r as what the backend has and nobody here does.
func versionOf(r *providers.Info) *table.Remote {
	return &table.Remote{Kind: r.Kind, Version: r.Version, Digest: r.Digest}
}

// remoteSide says what the backend has under the name. Who had it there loses that
// remote link.
func (s *sides) remoteSide(base *table.Remote) {
	s.rec.Remote, s.rec.Attempt, s.rec.Held = base, nil, nil
	s.set(s.tx, s.l, s.rec)
	s.reload()
}

// moveRemote is remoteSide for a name that is another's at the backend from now on: who had
// it there, unless that is spared, loses that remote link.
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

// forget: the backend has nothing there any more that is known here.
func (s *sides) forget() { s.moveRemote(nil, s.rec.Ino) }

// release is forget for a directory with nothing in it but such.
func (s *sides) release() {
	s.emptied(s.tx, s.rec.Remote.Ino)
	s.reload()
	s.forget()
}

// detach has what is here stay here. The backend keeps what it has.
func (s *sides) detach() {
	s.rec.Local = true
	if s.tx.table.Inode(s.rec.Ino).IsDir() {
		s.tx.table.Edit(s.rec.Ino).Loaded = true
	}
	s.forget()
}

// remove takes the name away here and there.
func (s *sides) remove() {
	s.forget()
	s.unname()
}

// unname takes the name away here. Who has the file open keeps it, and the claim
// to the name.
func (s *sides) unname() {
	v, x := s.tx, s.rec.Ino
	if !s.first {
		v.local.TellDeleted(s.l, v.table.Inode(x))
	}
	v.local.Bury(s.l, x, history.WhyPulled)
	s.rec.Ino, s.rec.Local = 0, false
	s.set(v, s.l, s.rec)
	s.lost(v, s.l, x)
	s.shown(v, s.l)
	s.report.Deleted++
	s.reload()
}

// joinDirs makes the backend's directory the one that is here, with what both have in it.
func (s *sides) joinDirs() {
	if !s.part(s.tx, s.l, s.rec.Ino) {
		return
	}
	n := s.tx.table.Edit(s.rec.Ino)
	n.Loaded, n.Listed = false, 0
	s.reload()
	s.moveRemote(remoteOf(*s.theirs, s.rec.Ino, n), 0)
}

// supplant takes the name from what is here.
func (s *sides) supplant() {
	s.unname()
	s.arriveAnew()
}

// makeRoom moves what is here aside.
func (s *sides) makeRoom() {
	if s.aside() {
		s.arriveAnew()
	}
}

// arriveAnew is arrive for a name that the backend had otherwise before.
func (s *sides) arriveAnew() {
	was := remoteIno(s.rec)
	s.arrive()
	if was != 0 {
		s.leftRemote(s.tx, was)
	}
}

// arrive gives the free name to what the backend has there. A directory that was
// removed here comes back with what is in it.
func (s *sides) arrive() {
	v := s.tx
	if dir := s.reachable(v, s.l.Dir); dir != s.l.Dir {
		s.name(v, table.Link{Dir: dir, Name: s.l.Name}, s.theirs)
		return
	}
	y, n := s.fresh(remoteIno(s.rec))
	v.table.Put(y, n)
	s.rec.Ino, s.rec.Local = y, false
	s.remoteSide(remoteOf(*s.theirs, y, n))
	s.shown(v, s.l)
	s.report.Changed++
	if !s.first && !n.IsDir() {
		v.local.TellWrote(s.l)
	}
}

// fresh is a new inode for what the backend has, after the one that had the
// name: what the backend does not keep of attributes stays as it was, and the
// time of change moves on.
func (s *sides) fresh(old table.Ino) (table.Ino, *table.Inode) {
	v := s.tx
	n := v.local.InodeOf(*s.theirs)
	if was := v.table.Inode(old); was != nil && was.Kind() == n.Kind() && !n.IsDir() {
		v.attrs().Inherit(n, was, s.theirs)
		n.Mtime = table.Latest(n.Mtime, was.Mtime.Next())
		n.Ctime = v.local.Stamp()
	} else if was == nil && s.theirs.ModTime().IsZero() {
		n.Mtime = revision.FirstListed(v.table, n.Mtime)
	}
	return v.table.Alloc(), n
}

// follow: what was renamed here has a new version there. The rename goes on,
// with that version.
func (s *sides) follow() {
	v, old := s.tx, s.rec.Remote.Ino
	to := s.moved(v.table.Inode(old))
	y, n := s.fresh(old)
	v.table.Put(y, n)
	s.remoteSide(remoteOf(*s.theirs, y, n))
	for _, name := range to {
		v.local.Bury(name, old, history.WhyPulled)
		rec := v.Record(name)
		rec.Ino, rec.Held = y, nil
		s.set(v, name, rec)
		s.lost(v, name, old)
		s.shown(v, name)
		v.local.TellWrote(name)
	}
	s.leftRemote(v, old)
	s.report.Changed++
}

// replace: theirs is new, ours is what it was. Nobody may see half of each, so
// the name gets a new inode. Attributes that were changed here stay.
func (s *sides) replace() {
	v, x := s.tx, s.rec.Ino
	old := v.table.Inode(x)
	dirtyAttr := old.AttrGen != s.rec.Remote.AttrGen
	v.local.Bury(s.l, x, history.WhyPulled)
	y, n := s.fresh(x)
	if dirtyAttr {
		n.Mode, n.UID, n.GID, n.Xattrs = n.Kind()|old.Mode&^uint32(0o170000), old.UID, old.GID, old.Xattrs
	}
	v.table.Put(y, n)
	base := remoteOf(*s.theirs, y, n)
	if dirtyAttr {
		v.table.Edit(y).AttrGen++
	}
	s.rec.Ino = y
	s.remoteSide(base)
	s.lost(v, s.l, x)
	s.shown(v, s.l)
	v.local.TellWrote(s.l)
	s.report.Changed++
}

// renew is replace in place, of an inode of which nobody saw any content that is here.
func (s *sides) renew() {
	v, x := s.tx, s.rec.Ino
	old := v.table.Edit(x)
	before := v.history.PastOf(v.Tx.View, x, old)
	n := v.local.InodeOf(*s.theirs)
	v.attrs().Inherit(n, old, s.theirs)
	old.Mode, old.UID, old.GID, old.Size, old.Blocks, old.Xattrs = n.Mode, n.UID, n.GID, n.Size, n.Blocks, n.Xattrs
	old.Mtime, old.Ctime = table.Latest(n.Mtime, old.Mtime.Next()), v.local.Stamp()
	old.Metadata, old.AttrsUnknown, old.Untold, old.Target, old.Origin = n.Metadata, n.AttrsUnknown, n.Untold, "", table.Origin{}
	old.ContentVersion++
	if old.State != table.None { // what came for who waits for it
		old.State = table.None
		v.Freed(x, old)
	}
	v.OutdateAttributes(x)
	v.local.TellAttr(x)
	s.remoteSide(remoteOf(*s.theirs, x, old))
	v.notes.Renewed(s.l, x, before)
	s.shown(v, s.l)
	v.local.TellWrote(s.l)
	s.report.Changed++
}

// takeDirAttrs takes the mode and owner of a directory from the backend, where it has
// others.
func (s *sides) takeDirAttrs() {
	x := s.rec.Remote.Ino
	if s.tx.attrs().Differs(s.tx.table.Inode(x), s.theirs) {
		s.takeAttr(x)
	}
}

// takeAttr gives an inode the attributes that the backend has of it.
func (s *sides) takeAttr(x table.Ino) {
	v := s.tx
	n := v.table.Edit(x)
	v.attrs().Take(n, s.theirs)
	n.Ctime = v.local.Stamp()
	v.local.TellAttr(x)
	s.report.Changed++
}

// refresh: only attributes have changed there, or nothing but the version.
func (s *sides) refresh() {
	v, r, b := s.tx, s.theirs, *s.rec.Remote
	if n := v.table.Inode(b.Ino); n != nil {
		if n.Origin.ContentVersion == b.ContentVersion {
			v.table.Edit(b.Ino).Origin.Version = r.Version
		}
		if n.AttrGen == b.AttrGen {
			s.takeAttr(b.Ino)
			v.exec.TakeMetadata(v.Tx, b.Ino, b.ContentVersion, r.Metadata)
		}
	}
	b.Version, b.Digest = r.Version, r.Digest
	s.remoteSide(&b)
}

// adopt: both made the same content. The backend has it already.
func (s *sides) adopt() {
	v, x, b := s.tx, s.rec.Ino, s.rec.Remote
	n := v.table.Edit(x)
	n.Suspect = false
	base := remoteOf(*s.theirs, x, n)
	if b != nil && b.Ino == x && b.AttrGen != n.AttrGen {
		base.AttrGen = b.AttrGen // our attributes are still to be sent
	} else {
		s.takeAttr(x)
	}
	v.table.Edit(x).Origin = table.Origin{Version: s.theirs.Version, Digest: s.theirs.Digest, ContentVersion: n.ContentVersion}
	s.moveRemote(base, x)
}
