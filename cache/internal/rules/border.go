package rules

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// A Border says which names stay on this machine: those that are excluded, those of a kind
// that the remote cannot have, and where ignore files count, those that they ignore, until
// the remote has them. The lock of the tree guards it.
type Border struct {
	Exclude  Excluder // nil: no name is excluded
	Symlinks bool     // the remote can have symbolic links
	Ignores  *Ignores
	Ignoring bool   // ignore files count
	Wake     func() // rules are wanted that were not learned (see Learner.Ahead), or were learned
}

// Snapshot is the border of this moment, for a snapshot of the tree.
func (b *Border) Snapshot() *Border {
	then := *b
	then.Ignores = b.Ignores.Clone()
	return &then
}

// Excluded reports whether the remote's entry at a path is not shown.
func (b *Border) Excluded(at providers.Locator, kind providers.Kind) bool {
	return b.Exclude != nil && b.Exclude.Match(at.String(), kind == providers.KindDir)
}

// canGo reports whether the remote can have an inode of this kind. A directory that it cannot have
// empty still counts: it exists as soon as it has an entry.
func (b *Border) canGo(n *table.Inode) bool {
	return n.IsRegular() || n.IsDir() || n.IsSymlink() && b.Symlinks
}

// excludes reports whether a name is excluded that leads to an inode.
func (b *Border) excludes(v *tree.View, l table.Link, n *table.Inode) bool {
	if b.Exclude == nil {
		return false
	}
	at, ok := v.LocalPath(l)
	return ok && b.Exclude.Match(at.String(), n.IsDir())
}

// Stays reports whether an inode that gets a name stays on this machine. For rules that count and
// were not learned yet, as after a restart, the commit asks: a name that stays only because of the
// other rules would not be looked at again.
func (b *Border) Stays(tx *tree.Tx, l table.Link, n *table.Inode) bool {
	if !b.canGo(n) || b.excludes(tx.View, l, n) {
		return true
	}
	if !b.Ignoring || tx.Record(l).Remote != nil {
		return false
	}
	is, sure := b.Ignores.Ignored(tx, l, n.IsDir())
	if !sure {
		b.want(tx, l)
	}
	return is && sure
}

// SetLocal gives a name an inode, or none (0), for a request of the kernel.
func (b *Border) SetLocal(tx *tree.Tx, l table.Link, ino table.Ino) {
	hidden := false // excluded since it was fetched from the remote, which keeps it
	if was := tx.Record(l).Remote; was != nil && b.Exclude != nil {
		at, ok := tx.RemotePath(l)
		hidden = ok && b.Excluded(at, was.Kind)
	}
	tx.SetLocal(l, ino, ino != 0 && b.Stays(tx, l, tx.Inode(ino)), hidden)
}

// MayCross reports whether an inode may be renamed from a name to another, or get it too, with
// regard to names that stay on this machine: content that is missing would have no source any
// more, and names below a directory would change sides one by one.
func (b *Border) MayCross(tx *tree.Tx, ino table.Ino, from, to table.Link) bool {
	n := tx.Inode(ino)
	switch {
	case n.IsDir():
		below := b.Exclude != nil && Crosses(tx, b.Exclude, from, to, ino)
		return !below && !b.leaves(tx, n, to)
	case !b.canGo(n), b.Exclude == nil && !b.Ignoring, b.Stays(tx, from, n) == b.Stays(tx, to, n):
		return true
	}
	return n.IsComplete()
}

// leaves reports whether a directory that the remote has would be ignored under a name: its
// entries would have to be deleted at the remote, each by itself.
func (b *Border) leaves(tx *tree.Tx, n *table.Inode, to table.Link) bool {
	if !b.Ignoring || len(n.RemoteLinks) == 0 || tx.Record(to).Remote != nil {
		return false
	}
	is, _ := b.Ignores.Ignored(tx, to, true)
	return is
}

// Renamed has the names below a renamed directory looked at again before the next commit, unless
// the rules say the same of them at both names. The rename does not wait for that.
func (b *Border) Renamed(tx *tree.Tx, from, to table.Link, dir table.Ino) {
	if b.Ignoring && !b.Ignores.Same(tx, from, to) {
		LookBelow(tx, dir)
	}
}

// Marked is told of each name that changes. Other rules are learned soon if an ignore file changed
// locally.
func (b *Border) Marked(tx *tree.Tx, l table.Link, dirty bool) {
	if l.Name != b.Ignores.file {
		return
	}
	b.Ignores.Changed(l.Dir)
	if dirty {
		b.want(tx, l)
	}
}

// want has the rules that count for a name learned soon: more names may be made next to it.
func (b *Border) want(tx *tree.Tx, l table.Link) {
	b.Ignores.Want(tx, l)
	tx.Later(b.Wake)
}

// OnlyIgnored reports whether a name stays local only because it is ignored: that ends once the
// remote has one like it.
func (b *Border) OnlyIgnored(v *tree.View, l table.Link, rec table.Name) bool {
	n := v.Inode(rec.Ino)
	if !rec.Local || n == nil || !b.Ignoring || !b.canGo(n) {
		return false
	}
	_, ok := v.LocalPath(l)
	return ok && !b.excludes(v, l, n)
}

// Sorted reports whether the rules make a name stay local. Content that is missing has to be
// fetched: it may have no other place soon. A directory that the remote has goes, with those of
// its entries that the remote has: it got its name when the rules were not known. So do those that
// it was moved into. ok is false when that cannot be decided yet.
func (b *Border) Sorted(v *tree.View, l table.Link, rec table.Name, n *table.Inode, c Carriers) (stays, ok bool) {
	if rec.Remote != nil || rec.Attempt != nil || rec.Ino == 0 || n == nil || rec.Local && !b.OnlyIgnored(v, l, rec) {
		return rec.Local, true
	}
	is, sure := b.Ignores.Ignored(v, l, n.IsDir())
	if is = is && !(n.IsDir() && (len(n.RemoteLinks) > 0 || c.Has(rec.Ino))); !sure || is && !n.IsComplete() {
		return false, false
	}
	return is, true
}

// Sort makes a name stay local or not, as the rules say. It reports false when that cannot be
// decided yet.
func (b *Border) Sort(tx *tree.Tx, l table.Link, c Carriers) bool {
	rec := tx.Record(l)
	stays, ok := b.Sorted(tx.View, l, rec, tx.Inode(rec.Ino), c)
	if ok && rec.Local != stays {
		setStays(tx, l, rec, stays)
	}
	return ok
}

func setStays(tx *tree.Tx, l table.Link, rec table.Name, stays bool) {
	rec.Local = stays
	tx.SetName(l, rec)
	tx.Mark(l)
}

// excludeKey holds the rules of exclusion that the names of the table follow. A person may change
// them between two runs.
const excludeKey = "exclude/rules"

// text tells rules of exclusion apart.
func (b *Border) text() string {
	if b.Exclude == nil {
		return ""
	}
	return b.Exclude.String()
}

// IsFollowed reports whether the names of the table follow the rules of exclusion.
func (b *Border) IsFollowed(v *tree.View) bool { return string(v.Get(excludeKey)) == b.text() }

// Leaving are the names that wait to be sent although they are excluded by now.
func (b *Border) Leaving(v *tree.View) (all []table.Link) {
	v.Dirty(0, func(_ uint64, l table.Link) bool {
		if at, ok := v.LocalPath(l); ok && b.Excluded(at, v.KindOf(v.Record(l))) {
			all = append(all, l)
		}
		return true
	})
	return all
}

// Follow has names that stayed local go to the remote where they are excluded no longer, and notes
// that the table follows the rules. It asks the remote nothing. Names that an ignore file may
// cover are left to a Learner: look says that there are such.
func (b *Border) Follow(tx *tree.Tx) (look bool) {
	var all []table.Link
	tx.Local(func(table.Ino) bool { return true }, func(l table.Link) bool {
		all = append(all, l)
		return true
	})
	for _, l := range all {
		rec := tx.Record(l)
		n := tx.Inode(rec.Ino)
		at, ok := tx.LocalPath(l)
		switch {
		case n == nil || !ok || !b.canGo(n) || b.Excluded(at, tx.KindOf(rec)):
		case b.Ignoring:
			LookBelow(tx, l.Dir)
			look = true
		default:
			setStays(tx, l, rec, false)
		}
	}
	tx.Set(excludeKey, []byte(b.text()))
	return look
}
