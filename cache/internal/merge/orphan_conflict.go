package merge

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// orphanConflictPrefix begins the records of files without a name whose new content is to be
// compared with the present holder of their name.
const orphanConflictPrefix = "claim/"

func orphanConflictKey(ino table.Ino) string { return table.KeyOf(orphanConflictPrefix, ino) }

// OrphanChanged says that a file which lost its name to a pull while it was open has new content:
// it is compared with the present holder of the name before the call that made the content final
// returns. It is part of the update that made it final.
func (v *Merger) OrphanChanged(tx *tree.Tx, ino table.Ino) {
	NoteOrphanConflict(tx, ino)
	tx.Later(func() {
		if err := v.resolveOrphanConflict(v.o.Context, ino); err != nil {
			v.o.Side.Log.Warn("a conflict is left for later", "ino", ino, "err", err)
			v.o.Volume.Go(v.ResolveOrphanConflicts)
		}
	})
}

// NoteOrphanConflict is OrphanChanged for later: the next start, or ResolveOrphanConflicts.
func NoteOrphanConflict(v *tree.Tx, ino table.Ino) {
	if key := orphanConflictKey(ino); v.Get(key) == nil {
		v.Set(key, []byte{1})
	}
}

// IsOrphanConflict reports whether an inode without a name has content that is still to get one.
func IsOrphanConflict(v *tree.View, ino table.Ino) bool {
	return v.Get(orphanConflictKey(ino)) != nil
}

// ResolveOrphanConflicts resolves the noted conflicts, until none is left. One call at a time
// does.
func (v *Merger) ResolveOrphanConflicts() {
	for tries := 0; ; tries++ {
		locked := v.lock()
		all := OrphanConflicts(locked.View)
		locked.unlock()
		for _, ino := range all {
			if err := v.resolveOrphanConflict(v.o.Context, ino); err != nil {
				v.o.Side.Log.Debug("a conflict is left for later", "ino", ino, "err", err)
			}
		}
		locked = v.lock()
		left := len(OrphanConflicts(locked.View))
		locked.unlock()
		if left == 0 || v.o.Volume.Pause(v.o.Context, upload.PauseAfter(tries)) != nil {
			return
		}
	}
}

// OrphanConflicts are the inodes that ResolveOrphanConflicts deals with.
func OrphanConflicts(v *tree.View) []table.Ino { return table.InosOf(v, orphanConflictPrefix) }

// resolveOrphanConflict gives a nameless file that has new content its lost name, or another, by
// the conflict policy.
func (v *Merger) resolveOrphanConflict(ctx context.Context, ino table.Ino) error {
	m := v.New(ctx, v.o.Provider)
	m.Alone = true
	err := m.Run(func(v *Tx) error {
		if !IsOrphanConflict(v.View, ino) {
			return nil // a close and ResolveOrphanConflicts met, and the other was faster
		}
		n := v.Inode(ino)
		if n == nil || n.LostName == nil || len(n.Links) > 0 {
			v.Set(orphanConflictKey(ino), nil)
			return nil
		}
		m.orphan(v, ino, n).reconcile()
		return nil
	})
	return errors.Join(err, m.unanswered())
}

// orphan is a file without a name, in a merge that finds one for it: the name that it lost, with
// its present sides, or another.
type orphan struct {
	sides
	ino table.Ino
	n   *table.Inode
}

// orphan gathers the known facts about such a file.
func (m *Merge) orphan(v *Tx, ino table.Ino, n *table.Inode) *orphan {
	l := *n.LostName
	if d := v.Inode(l.Dir); v.IsNowhere(l.Dir) || !d.IsDir() {
		l.Dir = table.Root // its place is not known any more
	}
	l.Dir = m.reachable(v, l.Dir)
	o := &orphan{sides: *m.at(v, l, nil), ino: ino, n: n}
	if o.rival() == reconcile.Pulled {
		theirs := v.infoOf(o.l, o.rec)
		o.theirs = &theirs
	}
	return o
}

// rival is the present holder of the name.
func (o *orphan) rival() reconcile.Rival {
	rec := o.rec
	clean := rec.Seq == 0 && rec.Remote != nil && rec.Remote.Ino == rec.Ino
	switch {
	case rec.Ino == 0:
		return reconcile.NoRival
	case clean && !o.tx.Inode(rec.Ino).IsDir():
		return reconcile.Pulled
	}
	return reconcile.Changed
}

// reconcile decides about the file until the decision is carried out, or a question is open.
func (o *orphan) reconcile() {
	for again := true; again; {
		a := reconcile.DecideOrphan(reconcile.Orphan{Rival: o.rival(), Content: o.content, Text: o.text}, o.policy)
		switch a.Do {
		case reconcile.Compare:
			again = o.compareContent(o.ino)
		case reconcile.MergeText:
			again = o.mergeText(o.ino, &table.Remote{Kind: providers.KindFile, Version: o.n.Origin.Version, Digest: o.n.Origin.Digest})
		case reconcile.KeepRemote:
			again = o.prepare(a.Do)
		default:
			o.end(a)
			return
		}
	}
}

// end carries out the decision.
func (o *orphan) end(a reconcile.Action) {
	switch a.Do {
	case reconcile.Keep:
		o.rename(o.l)
		o.tell(o.tx, o.l, a.Note, false)
	case reconcile.SplitUp:
		o.copy()
	case reconcile.Adopt:
		o.done()
	case reconcile.Unite:
		o.unite()
	default:
		o.begin()
		o.takeName()
		o.sides.end(a)
	}
}

// unite gives the name, which leads to theirs by now, the text that both became.
func (o *orphan) unite() {
	n := *o.n
	switch {
	case o.union.theirs:
		o.done()
	case o.union.Ino == 0:
		o.takeName()
		o.overwrite()
	default:
		o.putUnion(&n, false)
		o.done()
	}
	o.united()
}

// takeName gives the file its name back. The inode that has it by now goes to the history.
func (o *orphan) takeName() {
	v, theirs := o.tx, o.rec.Ino
	v.Bury(o.l, theirs, history.WhyConflict)
	o.swap(o.ino)
	v.Notes.Named(o.l, o.ino, history.WhyConflict)
	o.named()
	o.lost(v, o.l, theirs)
}

// begin makes the base of the name the version that the file began from. The remote has another by
// now, so that ours cannot be sent over theirs.
func (o *orphan) begin() {
	base := &table.Remote{Kind: providers.KindFile, Version: o.n.Origin.Version, Digest: o.n.Origin.Digest}
	if base.Version.IsZero() || base.Version.Matches(o.rec.Remote.Version) {
		base.Version = upload.Impossible
	}
	o.remoteSide(base)
}

// copy gives the file the name of a conflict copy, or none when a copy with its content exists.
func (o *orphan) copy() {
	a, ok := o.ask(o.ino, nil)
	if !ok {
		return
	}
	if o.tx.isRemnant(o.ino, a) {
		if o.saveRemnant(o.ino) {
			o.done()
		}
		return
	}
	to, exists, ok := o.freeCopy(a.sum, false)
	switch {
	case !ok:
		return
	case exists:
		o.done()
	default:
		o.rename(to)
	}
	o.tell(o.tx, o.l, "modified locally and on the remote: the local version was saved as "+to.Name, true)
}

// rename gives the file a free name.
func (o *orphan) rename(l table.Link) {
	v := o.tx
	v.SetLocal(l, o.ino)
	v.Notes.Named(l, o.ino, history.WhyConflict)
	o.named()
	o.shown(v, l)
}

// done: the present content of the file needs no name. A program that still has it open, by a bind
// mount for instance, may write again, which makes it an orphan conflict again.
func (o *orphan) done() {
	o.tx.Set(orphanConflictKey(o.ino), nil)
	o.tx.Shed(o.ino)
}

// named ends the orphan conflict of a file that has a name again.
func (o *orphan) named() {
	v := o.tx
	v.Edit(o.ino).LostName = nil
	v.Set(orphanConflictKey(o.ino), nil)
	if len(v.Inode(o.ino).Links) > 0 {
		v.SetOrphan(o.ino, false)
	}
}
