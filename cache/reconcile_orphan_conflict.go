package cache

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// orphanConflictPrefix begins the records of files without a name whose new content is
// to be put up against what has their name now.
const orphanConflictPrefix = "claim/"

func orphanConflictKey(ino table.Ino) string { return table.KeyOf(orphanConflictPrefix, ino) }

// orphanChanged says that a file which lost its name to a pull while it was open has new
// content: it is put up against what has the name now, before the call that made the
// content final returns. It is part of the update that made it so.
func (v *Tx) orphanChanged(ino table.Ino) {
	v.noteOrphanConflict(ino)
	v.Later(func() {
		if err := v.resolveOrphanConflict(v.ctx, ino); err != nil {
			v.o.Log.Warn("a conflict is left for later", "ino", ino, "err", err)
			v.background(v.resolveOrphanConflicts)
		}
	})
}

// noteOrphanConflict is orphanChanged for later: the next start, or
// resolveOrphanConflicts.
func (v *Tx) noteOrphanConflict(ino table.Ino) {
	if key := orphanConflictKey(ino); v.table.Get(key) == nil {
		v.table.Set(key, []byte{1})
	}
}

// isOrphanConflict reports whether an inode without a name has content that is still to
// get one.
func (v *View) isOrphanConflict(ino table.Ino) bool {
	return v.table.Get(orphanConflictKey(ino)) != nil
}

// resolveOrphanConflicts settles what is left, until nothing is. One at a time does.
func (v *Volume) resolveOrphanConflicts() {
	for d := firstPause; ; d = min(2*d, longest) {
		locked := v.lock()
		all := locked.orphanConflicts()
		locked.unlock()
		for _, ino := range all {
			if err := v.resolveOrphanConflict(v.ctx, ino); err != nil {
				v.o.Log.Debug("a conflict is left for later", "ino", ino, "err", err)
			}
		}
		locked = v.lock()
		left := len(locked.orphanConflicts())
		locked.unlock()
		if left == 0 || v.pause(v.ctx, d) != nil {
			return
		}
	}
}

// orphanConflicts are the inodes that resolveOrphanConflicts deals with.
func (v *View) orphanConflicts() []table.Ino { return table.InosOf(v, orphanConflictPrefix) }

// resolveOrphanConflict gives a nameless file that has new content the name which it
// lost, or another, by the conflict policy.
func (v *Volume) resolveOrphanConflict(ctx context.Context, ino table.Ino) error {
	m := v.newMerge(ctx, v.p)
	m.alone = true
	err := m.run(func(v *Tx) error {
		if !v.isOrphanConflict(ino) {
			return nil // a close and resolveOrphanConflicts met, and the other was faster
		}
		n := v.table.Inode(ino)
		if n == nil || n.LostName == nil || len(n.Links) > 0 {
			v.table.Set(orphanConflictKey(ino), nil)
			return nil
		}
		m.orphanConflict(v, ino, n)
		return nil
	})
	return errors.Join(err, m.unanswered())
}

// orphanConflict is what resolveOrphanConflict does.
func (m *merge) orphanConflict(v *Tx, ino table.Ino, n *table.Inode) {
	l := *n.LostName
	if d := v.table.Inode(l.Dir); v.IsNowhere(l.Dir) || !d.IsDir() {
		l.Dir = table.Root // nothing is known any more of where it was
	}
	l.Dir = m.reachable(v, l.Dir)
	rec, _ := v.table.Name(l.Dir, l.Name)
	if rec.Ino == 0 {
		m.renameOrphan(v, l, ino)
		m.tell(v, l, "deleted on the remote but modified locally: kept the local file", false)
		return
	}
	clean := rec.Seq == 0 && rec.Remote != nil && rec.Remote.Ino == rec.Ino
	if v.table.Inode(rec.Ino).IsDir() || !clean {
		// What has the name was changed here too, or is of another kind: a copy
		// keeps all, whatever the policy.
		m.copyOrphan(v, l, ino)
		return
	}
	r := v.infoOf(l, rec)
	a, ok := m.ask(v, l, ino, &r)
	switch {
	case !ok:
	case a.same:
		m.orphanDone(v, ino)
	default:
		m.decideOrphan(v, l, rec, ino, n, &r)
	}
}

// decideOrphan is for a nameless file that has another content than its name.
func (m *merge) decideOrphan(v *Tx, l table.Link, rec table.Name, ino table.Ino, n *table.Inode, r *providers.Info) {
	policy := v.o.Policy.Conflict
	u, ok := m.unionOf(v, l, ino, &table.Remote{Kind: providers.KindFile, Version: n.Origin.Version, Digest: n.Origin.Digest}, r)
	switch {
	case !ok:
	case u != nil:
		m.uniteOrphan(v, l, rec, ino, r, u)
	case policy.splits():
		m.copyOrphan(v, l, ino)
	case policy == LastWriterWins && !m.keptTheirs(l, r):
	default:
		m.begunFrom(v, l, &rec, n)
		m.nameOrphan(v, l, &rec, ino)
		m.byPolicy(v, l, rec, r)
	}
}

// nameOrphan gives a nameless file its name back. Who has that by now goes to the
// history.
func (m *merge) nameOrphan(v *Tx, l table.Link, rec *table.Name, ino table.Ino) {
	theirs := rec.Ino
	v.bury(l, theirs, whyConflict)
	m.swap(v, l, rec, ino)
	v.recordNamed(l, ino, whyConflict)
	m.orphanNamed(v, ino)
	m.lost(v, l, theirs)
}

// begunFrom makes the base of a name what a nameless file began from. It is not
// at the backend any more, so that ours cannot be sent over theirs.
func (m *merge) begunFrom(v *Tx, l table.Link, rec *table.Name, n *table.Inode) {
	base := &table.Remote{Kind: providers.KindFile, Version: n.Origin.Version, Digest: n.Origin.Digest}
	if base.Version.IsZero() || base.Version.Matches(rec.Remote.Version) {
		base.Version = impossible
	}
	m.remoteSide(v, l, rec, base)
}

// copyOrphan gives a nameless file the name of a conflict copy, or nothing when there is
// one with its content.
func (m *merge) copyOrphan(v *Tx, l table.Link, ino table.Ino) {
	a, ok := m.ask(v, l, ino, nil)
	if !ok {
		return
	}
	if v.isRemnant(ino, a) {
		if m.remnant(v, l, ino) {
			m.orphanDone(v, ino)
		}
		return
	}
	name, exists, ok := m.freeCopy(v, l, a.sum, false)
	switch {
	case !ok:
		return
	case exists:
		m.orphanDone(v, ino)
	default:
		m.renameOrphan(v, table.Link{Dir: l.Dir, Name: name}, ino)
	}
	m.tell(v, l, "modified locally and on the remote: the local version was saved as "+name, true)
}

// renameOrphan gives a nameless file a free name.
func (m *merge) renameOrphan(v *Tx, l table.Link, ino table.Ino) {
	v.setLocal(l, ino, v.stays(l, v.table.Inode(ino)))
	v.recordNamed(l, ino, whyConflict)
	m.orphanNamed(v, ino)
	m.shown(v, l)
}

// orphanDone: what a nameless file has now needs no name. Who still holds the file, by a
// bind mount for instance, may write again, and is then an orphan conflict again.
func (m *merge) orphanDone(v *Tx, ino table.Ino) {
	v.table.Set(orphanConflictKey(ino), nil)
	v.Shed(ino)
}

// orphanNamed ends the orphan conflict of a file that has a name again.
func (m *merge) orphanNamed(v *Tx, ino table.Ino) {
	v.table.Edit(ino).LostName = nil
	v.table.Set(orphanConflictKey(ino), nil)
	if len(v.table.Inode(ino).Links) > 0 {
		v.SetOrphan(ino, false)
	}
}
