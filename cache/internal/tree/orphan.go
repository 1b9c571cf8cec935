package tree

import "github.com/wsmount/wsmount/cache/internal/table"

// orphanPrefix begins the keys of inodes that have no name and are still held, so that the
// next start can free those that this run left.
const orphanPrefix = "orphan/"

// Orphans are the inodes without a name that are to be shed at the next start, if they have
// not been by then.
func (v *View) Orphans() []table.Ino { return table.InosOf(v, orphanPrefix) }

// IsOrphan reports whether an inode is one of the Orphans.
func (v *View) IsOrphan(ino table.Ino) bool { return v.Get(table.KeyOf(orphanPrefix, ino)) != nil }

// SetOrphan says whether an inode is one of the Orphans.
func (t *Tx) SetOrphan(ino table.Ino, is bool) {
	switch {
	case is == t.IsOrphan(ino):
	case is:
		t.Set(table.KeyOf(orphanPrefix, ino), []byte{1})
	default:
		t.Set(table.KeyOf(orphanPrefix, ino), nil)
	}
}

// A Keeper decides whether inodes without a name stay. Its methods are called within the
// transaction.
type Keeper interface {
	// Nameless is told of an inode that has no name, and reports whether it is to stay all
	// the same. It is asked again each time that the inode may go.
	Nameless(ino table.Ino, n *table.Inode) (stays bool)
	// Freed is told of an inode whose content is not reachable any more; n is its last record.
	Freed(ino table.Ino, n *table.Inode)
}

// Shed forgets an inode without a name, or makes it an orphan when it is still held. One
// that still has a remote link stays as a record, without its content. A directory stays
// while it hands its names to another, and as long as it has records of names: the remote
// may have those names, and they would have no local place.
func (t *Tx) Shed(ino table.Ino) {
	n := t.Inode(ino)
	if n == nil || len(n.Links) > 0 || ino == table.Root {
		return
	}
	busy := n.IsDir() && len(n.RemoteLinks) == 0 && (n.From != "" || t.HasNames(ino))
	if t.observer.Nameless(ino, n) || busy || t.IsHeld(ino) {
		t.SetOrphan(ino, true)
		return
	}
	t.SetOrphan(ino, false)
	if len(n.RemoteLinks) == 0 {
		t.Drop(ino)
	}
	if n.State == table.None {
		return
	}
	if len(n.RemoteLinks) > 0 {
		t.Edit(ino).State = table.None
	}
	t.Freed(ino, n)
}

// Freed says that the content of an inode is not reachable any more; n is its last record.
func (t *Tx) Freed(ino table.Ino, n *table.Inode) { t.observer.Freed(ino, n) }

// SetRemote records a name's new remote side, since we changed it at the remote; nil: the
// remote has no such name.
func (t *Tx) SetRemote(l table.Link, base *table.Remote) {
	rec := t.Record(l)
	rec.Remote, rec.Attempt = base, nil
	t.writer.SetName(l.Dir, l.Name, rec)
	t.ChangedByUs(l)
	t.Mark(l)
	t.vacated(l)
}

// SetAttempt records a change of a name that is about to be tried at the remote, or with
// nil that there is none.
func (t *Tx) SetAttempt(l table.Link, a *table.Attempt) {
	rec, there := t.Name(l.Dir, l.Name)
	if !there && a == nil {
		return
	}
	rec.Attempt = a
	if a != nil {
		rec.Held = nil
	}
	t.writer.SetName(l.Dir, l.Name, rec)
	t.Mark(l)
	t.vacated(l)
}

// vacated lets a directory go that was removed locally, once it has no record of a name.
func (t *Tx) vacated(l table.Link) {
	if _, there := t.Name(l.Dir, l.Name); !there {
		t.Shed(l.Dir)
	}
}

// NameLost updates an inode that has just lost a local name, and sheds it if that was the last.
func (t *Tx) NameLost(ino table.Ino) {
	t.Edit(ino).Ctime = t.now()
	t.Shed(ino)
}
