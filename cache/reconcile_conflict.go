package cache

import (
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// both: a name was changed here and there.
func (m *merge) both(v *Tx, l table.Link, rec table.Name, r *providers.Info) {
	if v.isBeingWritten(rec.Ino) && !m.late[l] {
		return // it is being written: when it was sent, it comes here again
	}
	a, ok := m.ask(v, l, rec.Ino, r)
	_, renamed := v.OriginOf(rec.Ino) // and otherwise as the backend had it
	switch {
	case !ok: // once the answer is there
	case a.same:
		m.adopt(v, l, rec, r)
	case a.broken && renamed:
		// Nothing of ours is lost: another changed it under its old name. The next
		// try finds that first, and then has what it is now.
	case v.isRemnant(rec.Ino, a):
		if m.remnant(v, l, rec.Ino) {
			m.takeTheirs(v, l, rec, r)
			m.report.Changed++
		}
	case a.broken:
		m.hold(v, l, rec, r, "modified locally and on the remote, which no longer has all of the version that the local one is based on")
	default:
		m.decide(v, l, rec, r, a.sum)
	}
}

// decide is for what was changed here and there, and is not the same.
func (m *merge) decide(v *Tx, l table.Link, rec table.Name, r *providers.Info, sum string) {
	policy := v.o.Policy.Conflict
	u, ok := m.unionOf(v, l, rec.Ino, rec.Remote, r)
	switch {
	case !ok: // once it is known
	case u != nil:
		m.unite(v, l, rec, r, u)
	case policy.splits():
		m.divide(v, l, rec, r, sum)
	case policy == LastWriterWins && !m.keptTheirs(l, r): // once it is in the history
	default:
		m.byPolicy(v, l, rec, r)
	}
}

// byPolicy deals with a conflict of a name that stays ours.
func (m *merge) byPolicy(v *Tx, l table.Link, rec table.Name, r *providers.Info) {
	switch v.o.Policy.Conflict {
	case LastWriterWins:
	case Abort:
		m.hold(v, l, rec, r, "modified locally and on the remote (storage_conflict)") // as the AIP-35 adapter guide calls it
		return
	default:
		m.hold(v, l, rec, r, "modified locally and on the remote")
		return
	}
	m.overwrite(v, l, rec, r)
	m.tell(v, l, "modified locally and on the remote: the local version replaced the remote one, which is in the history", true)
}

// overwrite has ours sent in place of the version that is there.
func (m *merge) overwrite(v *Tx, l table.Link, rec table.Name, r *providers.Info) {
	m.moveRemote(v, l, &rec, versionOf(r), rec.Ino)
}

// versionOf is r as what the backend has and nobody here does.
func versionOf(r *providers.Info) *table.Remote {
	return &table.Remote{Kind: r.Kind, Version: r.Version, Digest: r.Digest}
}

// hold keeps both sides as they are until somebody resolves it.
func (m *merge) hold(v *Tx, l table.Link, rec table.Name, r *providers.Info, reason string) {
	since := v.now()
	if rec.Held == nil || !rec.Held.Conflict {
		m.tell(v, l, reason, true)
	} else {
		at, _ := v.LocalPath(l)
		m.clash(l, at.String())
		if side, ok := decodeSide(rec.Held.Remote); ok {
			since = side.Since
		}
	}
	rec.Attempt = nil
	rec.Held = &table.Held{Reason: reason, Conflict: true, Remote: encodeInfo(r, since)}
	m.set(v, l, rec)
}

// adopt: both made the same content. The backend has it already.
func (m *merge) adopt(v *Tx, l table.Link, rec table.Name, r *providers.Info) {
	b := rec.Remote
	n := v.table.Edit(rec.Ino)
	base := remoteOf(*r, rec.Ino, n)
	if b != nil && b.Ino == rec.Ino && b.AttrGen != n.AttrGen {
		base.AttrGen = b.AttrGen // our attributes are still to be sent
	} else {
		m.takeAttr(v, rec.Ino, r)
	}
	v.table.Edit(rec.Ino).Origin = table.Origin{Version: r.Version, Digest: r.Digest, ContentVersion: n.ContentVersion}
	m.remoteSide(v, l, &rec, base)
	if b != nil && b.Ino != rec.Ino {
		m.leftRemote(v, b.Ino)
	}
}

// divide keeps both: ours gets the name of a conflict copy, and who has it open
// goes along; theirs gets the name.
func (m *merge) divide(v *Tx, l table.Link, rec table.Name, r *providers.Info, sum string) {
	x := rec.Ino
	name, exists, ok := m.freeCopy(v, l, sum, false)
	if !ok {
		return
	}
	to := table.Link{Dir: l.Dir, Name: name}
	if exists {
		v.bury(l, x, whyConflict)
	}
	was := remoteIno(rec)
	y, n := m.fresh(v, r, was)
	v.table.Put(y, n)
	m.swap(v, l, &rec, y)
	m.remoteSide(v, l, &rec, remoteOf(*r, y, n))
	if exists {
		m.lost(v, l, x) // its content has that name already
	} else {
		v.setLocal(to, x, v.stays(to, v.table.Inode(x)))
		v.recordMoved(x, l, to, whyConflict)
		m.touched = append(m.touched, to)
		m.shown(v, to)
		v.wrote(to)
	}
	if was != x {
		m.leftRemote(v, was)
	}
	m.shown(v, l)
	v.wrote(l)
	m.report.Changed++
	m.tell(v, l, "modified locally and on the remote: the local version was saved as "+name, true)
}

// swap gives a name another inode.
func (m *merge) swap(v *Tx, l table.Link, rec *table.Name, x table.Ino) {
	rec.Ino, rec.Local = x, false
	m.set(v, l, *rec)
	*rec, _ = v.table.Name(l.Dir, l.Name)
	m.shown(v, l)
}

// aside gives what is here under a name that of a conflict copy, because theirs
// is of another kind. It reports whether the name is free now.
func (m *merge) aside(v *Tx, l table.Link, rec *table.Name) bool {
	x := rec.Ino
	sum, dir := dirSum, v.table.Inode(x).IsDir()
	if !dir {
		a, ok := m.ask(v, l, x, nil)
		if !ok {
			return false
		}
		if v.isRemnant(x, a) && !v.isBeingWritten(x) {
			if !m.remnant(v, l, x) {
				return false
			}
			m.swap(v, l, rec, 0)
			m.lost(v, l, x)
			*rec, _ = v.table.Name(l.Dir, l.Name)
			return true
		}
		sum = a.sum
	}
	name, exists, ok := m.freeCopy(v, l, sum, dir)
	if !ok {
		return false
	}
	if exists {
		v.bury(l, x, whyConflict)
	}
	m.swap(v, l, rec, 0)
	to := table.Link{Dir: l.Dir, Name: name}
	if exists {
		m.lost(v, l, x)
	} else {
		v.setLocal(to, x, v.stays(to, v.table.Inode(x)))
		v.recordMoved(x, l, to, whyConflict)
		m.touched = append(m.touched, to)
		m.shown(v, to)
	}
	m.tell(v, l, "replaced on the remote by another kind of file, modified locally: the local version was saved as "+name, true)
	*rec, _ = v.table.Name(l.Dir, l.Name)
	return true
}

// sameSum reports whether what has a name is content with a hash.
func (m *merge) sameSum(v *Tx, l table.Link, rec table.Name, sum string) (same, ok bool) {
	n := v.table.Inode(rec.Ino)
	if n.IsDir() || !n.IsRegular() && !n.IsSymlink() {
		return false, true
	}
	if b := rec.Remote; b != nil && b.Ino == rec.Ino && b.ContentVersion == n.ContentVersion && strings.HasPrefix(b.Digest, "sha256:") {
		return b.Digest == "sha256:"+sum, true
	}
	a, ok := m.ask(v, l, rec.Ino, nil)
	return ok && a.sum == sum, ok
}

// dirSum stands for the hash of a directory, whose copies on all hosts are to
// become one: that of nothing.
const dirSum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
