package cache

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// claimPrefix begins the records of files without a name whose new content is
// to be put up against what has their name now.
const claimPrefix = "claim/"

func claimKey(ino table.Ino) string { return claimPrefix + itoa(ino) }

// claimed says that a file which lost its name to a pull while it was open has
// new content: it is put up against what has the name now, before the call that
// made the content final returns. mu is held, in the update that made it so.
func (v *Volume) claimed(ino table.Ino) {
	v.noteClaim(ino)
	v.later(func() {
		if err := v.settleClaim(v.ctx, ino); err != nil {
			v.o.Log.Warn("a conflict is left for later", "ino", ino, "err", err)
			v.background(v.settleClaims)
		}
	})
}

// noteClaim is claimed for later: the next start, or settleClaims. mu is held,
// in an update.
func (v *Volume) noteClaim(ino table.Ino) {
	if key := claimKey(ino); v.table.Get(key) == nil {
		v.table.Set(key, []byte{1})
	}
}

// owed reports whether an inode without a name has content that is still to get
// one. mu is held.
func (v *Volume) owed(ino table.Ino) bool { return v.table.Get(claimKey(ino)) != nil }

// settleClaims settles what is left, until nothing is. One at a time does.
func (v *Volume) settleClaims() {
	for d := firstPause; ; d = min(2*d, longest) {
		v.mu.Lock()
		all := v.claims()
		v.mu.Unlock()
		for _, ino := range all {
			if err := v.settleClaim(v.ctx, ino); err != nil {
				v.o.Log.Debug("a conflict is left for later", "ino", ino, "err", err)
			}
		}
		v.mu.Lock()
		left := len(v.claims())
		v.mu.Unlock()
		if left == 0 || v.pause(v.ctx, d) != nil {
			return
		}
	}
}

// claims are the inodes that settleClaims deals with. mu is held.
func (v *Volume) claims() (all []table.Ino) {
	v.table.Scan(claimPrefix, "", func(key string, _ []byte) bool {
		if ino, err := strconv.ParseUint(strings.TrimPrefix(key, claimPrefix), 10, 64); err == nil {
			all = append(all, ino)
		}
		return true
	})
	return all
}

// settleClaim gives a nameless file that has new content the name which it
// lost, or another, by the conflict policy.
func (v *Volume) settleClaim(ctx context.Context, ino table.Ino) error {
	m := v.newMerge(ctx, v.p)
	m.alone = true
	err := m.run(func() error {
		if !v.owed(ino) {
			return nil // a close and settleClaims met, and the other was faster
		}
		n := v.table.Inode(ino)
		if n == nil || n.Claim == nil || len(n.Links) > 0 {
			v.table.Set(claimKey(ino), nil)
			return nil
		}
		m.claim(ino, n)
		return nil
	})
	return errors.Join(err, m.unanswered())
}

// claim is what settleClaim does. mu is held, in an update.
func (m *merge) claim(ino table.Ino, n *table.Inode) {
	v := m.v
	l := *n.Claim
	if d := v.table.Inode(l.Dir); v.isNowhere(l.Dir) || !isDir(d) {
		l.Dir = table.Root // nothing is known any more of where it was
	}
	l.Dir = m.reachable(l.Dir)
	rec, _ := v.table.Name(l.Dir, l.Name)
	if rec.Ino == 0 {
		m.reclaim(l, ino)
		m.tell(l, "deleted there, changed here: kept", false)
		return
	}
	clean := rec.Seq == 0 && rec.Base != nil && rec.Base.Ino == rec.Ino
	if isDir(v.table.Inode(rec.Ino)) || !clean {
		// What has the name was changed here too, or is of another kind: a copy
		// keeps all, whatever the policy.
		m.copyClaim(l, ino)
		return
	}
	r := v.infoOf(l, rec)
	a, ok := m.ask(l, ino, &r)
	switch {
	case !ok:
	case a.same:
		m.done(ino)
	default:
		m.decideClaim(l, rec, ino, n, &r)
	}
}

// decideClaim is for a nameless file that has another content than its name.
func (m *merge) decideClaim(l table.Link, rec table.Name, ino table.Ino, n *table.Inode, r *providers.Info) {
	policy := m.v.o.Policy.Conflict
	u, ok := m.unionOf(l, ino, &table.Base{Kind: providers.KindFile, Version: n.Origin.Version, Digest: n.Origin.Digest}, r)
	switch {
	case !ok:
	case u != nil:
		m.uniteClaim(l, rec, ino, r, u)
	case policy.splits():
		m.copyClaim(l, ino)
	case policy == LastWriterWins && !m.keptTheirs(l, r):
	default:
		m.begunFrom(l, &rec, n)
		m.nameClaim(l, &rec, ino)
		m.byPolicy(l, rec, r)
	}
}

// nameClaim gives a nameless file its name back. Who has that by now goes to the
// history.
func (m *merge) nameClaim(l table.Link, rec *table.Name, ino table.Ino) {
	theirs := rec.Ino
	m.v.bury(l, theirs, whyConflict)
	m.swap(l, rec, ino)
	m.v.recordNamed(l, ino, whyConflict)
	m.unclaim(ino)
	m.lost(l, theirs)
}

// begunFrom makes the base of a name what a nameless file began from. It is not
// at the backend any more, so that ours cannot be sent over theirs.
func (m *merge) begunFrom(l table.Link, rec *table.Name, n *table.Inode) {
	base := &table.Base{Kind: providers.KindFile, Version: n.Origin.Version, Digest: n.Origin.Digest}
	if base.Version.IsZero() || base.Version.Matches(rec.Base.Version) {
		base.Version = impossible
	}
	m.base(l, rec, base)
}

// copyClaim gives a nameless file the name of a conflict copy, or nothing when
// there is one with its content. mu is held, in an update.
func (m *merge) copyClaim(l table.Link, ino table.Ino) {
	a, ok := m.ask(l, ino, nil)
	if !ok {
		return
	}
	if m.v.isRemnant(ino, a) {
		if m.remnant(l, ino) {
			m.done(ino)
		}
		return
	}
	name, exists, ok := m.freeCopy(l, a.sum, false)
	switch {
	case !ok:
		return
	case exists:
		m.done(ino)
	default:
		m.reclaim(table.Link{Dir: l.Dir, Name: name}, ino)
	}
	m.tell(l, "changed here and there: ours is "+name, true)
}

// reclaim gives a nameless file a free name. mu is held, in an update.
func (m *merge) reclaim(l table.Link, ino table.Ino) {
	m.v.setLocal(l, ino, m.v.stays(l, m.v.table.Inode(ino)))
	m.v.recordNamed(l, ino, whyConflict)
	m.unclaim(ino)
	m.shown(l)
}

// done: what a nameless file has now needs no name. Who still holds the file,
// by a bind mount for instance, may write again, and then claims the name again.
// mu is held, in an update.
func (m *merge) done(ino table.Ino) {
	m.v.table.Set(claimKey(ino), nil)
	m.v.shed(ino)
}

// unclaim ends the claim of a file that has a name again.
func (m *merge) unclaim(ino table.Ino) {
	m.v.table.Edit(ino).Claim = nil
	m.v.table.Set(claimKey(ino), nil)
	if key := orphanKey(ino); m.v.table.Get(key) != nil && len(m.v.table.Inode(ino).Links) > 0 {
		m.v.table.Set(key, nil)
	}
}
