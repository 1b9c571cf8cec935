package cache

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// orphanConflictPrefix begins the records of files without a name whose new content is
// to be put up against what has their name now.
const orphanConflictPrefix = "claim/"

func orphanConflictKey(ino table.Ino) string { return orphanConflictPrefix + itoa(ino) }

// orphanChanged says that a file which lost its name to a pull while it was open has
// new content: it is put up against what has the name now, before the call that
// made the content final returns. mu is held, in the update that made it so.
func (v *Volume) orphanChanged(ino table.Ino) {
	v.noteOrphanConflict(ino)
	v.later(func() {
		if err := v.resolveOrphanConflict(v.ctx, ino); err != nil {
			v.o.Log.Warn("a conflict is left for later", "ino", ino, "err", err)
			v.background(v.resolveOrphanConflicts)
		}
	})
}

// noteOrphanConflict is orphanChanged for later: the next start, or resolveOrphanConflicts. mu is held,
// in an update.
func (v *Volume) noteOrphanConflict(ino table.Ino) {
	if key := orphanConflictKey(ino); v.table.Get(key) == nil {
		v.table.Set(key, []byte{1})
	}
}

// isOrphanConflict reports whether an inode without a name has content that is still to get
// one. mu is held.
func (v *Volume) isOrphanConflict(ino table.Ino) bool {
	return v.table.Get(orphanConflictKey(ino)) != nil
}

// resolveOrphanConflicts settles what is left, until nothing is. One at a time does.
func (v *Volume) resolveOrphanConflicts() {
	for d := firstPause; ; d = min(2*d, longest) {
		v.mu.Lock()
		all := v.orphanConflicts()
		v.mu.Unlock()
		for _, ino := range all {
			if err := v.resolveOrphanConflict(v.ctx, ino); err != nil {
				v.o.Log.Debug("a conflict is left for later", "ino", ino, "err", err)
			}
		}
		v.mu.Lock()
		left := len(v.orphanConflicts())
		v.mu.Unlock()
		if left == 0 || v.pause(v.ctx, d) != nil {
			return
		}
	}
}

// orphanConflicts are the inodes that resolveOrphanConflicts deals with. mu is held.
func (v *Volume) orphanConflicts() (all []table.Ino) {
	v.table.Scan(orphanConflictPrefix, "", func(key string, _ []byte) bool {
		if ino, err := strconv.ParseUint(strings.TrimPrefix(key, orphanConflictPrefix), 10, 64); err == nil {
			all = append(all, ino)
		}
		return true
	})
	return all
}

// resolveOrphanConflict gives a nameless file that has new content the name which it
// lost, or another, by the conflict policy.
func (v *Volume) resolveOrphanConflict(ctx context.Context, ino table.Ino) error {
	m := v.newMerge(ctx, v.p)
	m.alone = true
	err := m.run(func() error {
		if !v.isOrphanConflict(ino) {
			return nil // a close and resolveOrphanConflicts met, and the other was faster
		}
		n := v.table.Inode(ino)
		if n == nil || n.LostName == nil || len(n.Links) > 0 {
			v.table.Set(orphanConflictKey(ino), nil)
			return nil
		}
		m.orphanConflict(ino, n)
		return nil
	})
	return errors.Join(err, m.unanswered())
}

// orphanConflict is what resolveOrphanConflict does. mu is held, in an update.
func (m *merge) orphanConflict(ino table.Ino, n *table.Inode) {
	v := m.v
	l := *n.LostName
	if d := v.table.Inode(l.Dir); v.isNowhere(l.Dir) || !isDir(d) {
		l.Dir = table.Root // nothing is known any more of where it was
	}
	l.Dir = m.reachable(l.Dir)
	rec, _ := v.table.Name(l.Dir, l.Name)
	if rec.Ino == 0 {
		m.renameOrphan(l, ino)
		m.tell(l, "deleted on the remote but modified locally: kept the local file", false)
		return
	}
	clean := rec.Seq == 0 && rec.Remote != nil && rec.Remote.Ino == rec.Ino
	if isDir(v.table.Inode(rec.Ino)) || !clean {
		// What has the name was changed here too, or is of another kind: a copy
		// keeps all, whatever the policy.
		m.copyOrphan(l, ino)
		return
	}
	r := v.infoOf(l, rec)
	a, ok := m.ask(l, ino, &r)
	switch {
	case !ok:
	case a.same:
		m.orphanDone(ino)
	default:
		m.decideOrphan(l, rec, ino, n, &r)
	}
}

// decideOrphan is for a nameless file that has another content than its name.
func (m *merge) decideOrphan(l table.Link, rec table.Name, ino table.Ino, n *table.Inode, r *providers.Info) {
	policy := m.v.o.Policy.Conflict
	u, ok := m.unionOf(l, ino, &table.Remote{Kind: providers.KindFile, Version: n.Origin.Version, Digest: n.Origin.Digest}, r)
	switch {
	case !ok:
	case u != nil:
		m.uniteOrphan(l, rec, ino, r, u)
	case policy.splits():
		m.copyOrphan(l, ino)
	case policy == LastWriterWins && !m.keptTheirs(l, r):
	default:
		m.begunFrom(l, &rec, n)
		m.nameOrphan(l, &rec, ino)
		m.byPolicy(l, rec, r)
	}
}

// nameOrphan gives a nameless file its name back. Who has that by now goes to the
// history.
func (m *merge) nameOrphan(l table.Link, rec *table.Name, ino table.Ino) {
	theirs := rec.Ino
	m.v.bury(l, theirs, whyConflict)
	m.swap(l, rec, ino)
	m.v.recordNamed(l, ino, whyConflict)
	m.orphanNamed(ino)
	m.lost(l, theirs)
}

// begunFrom makes the base of a name what a nameless file began from. It is not
// at the backend any more, so that ours cannot be sent over theirs.
func (m *merge) begunFrom(l table.Link, rec *table.Name, n *table.Inode) {
	base := &table.Remote{Kind: providers.KindFile, Version: n.Origin.Version, Digest: n.Origin.Digest}
	if base.Version.IsZero() || base.Version.Matches(rec.Remote.Version) {
		base.Version = impossible
	}
	m.remoteSide(l, rec, base)
}

// copyOrphan gives a nameless file the name of a conflict copy, or nothing when
// there is one with its content. mu is held, in an update.
func (m *merge) copyOrphan(l table.Link, ino table.Ino) {
	a, ok := m.ask(l, ino, nil)
	if !ok {
		return
	}
	if m.v.isRemnant(ino, a) {
		if m.remnant(l, ino) {
			m.orphanDone(ino)
		}
		return
	}
	name, exists, ok := m.freeCopy(l, a.sum, false)
	switch {
	case !ok:
		return
	case exists:
		m.orphanDone(ino)
	default:
		m.renameOrphan(table.Link{Dir: l.Dir, Name: name}, ino)
	}
	m.tell(l, "modified locally and on the remote: the local version was saved as "+name, true)
}

// renameOrphan gives a nameless file a free name. mu is held, in an update.
func (m *merge) renameOrphan(l table.Link, ino table.Ino) {
	m.v.setLocal(l, ino, m.v.stays(l, m.v.table.Inode(ino)))
	m.v.recordNamed(l, ino, whyConflict)
	m.orphanNamed(ino)
	m.shown(l)
}

// orphanDone: what a nameless file has now needs no name. Who still holds the file,
// by a bind mount for instance, may write again, and is then an orphan conflict again.
// mu is held, in an update.
func (m *merge) orphanDone(ino table.Ino) {
	m.v.table.Set(orphanConflictKey(ino), nil)
	m.v.shed(ino)
}

// orphanNamed ends the orphan conflict of a file that has a name again.
func (m *merge) orphanNamed(ino table.Ino) {
	m.v.table.Edit(ino).LostName = nil
	m.v.table.Set(orphanConflictKey(ino), nil)
	if key := orphanKey(ino); m.v.table.Get(key) != nil && len(m.v.table.Inode(ino).Links) > 0 {
		m.v.table.Set(key, nil)
	}
}
