package tree

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Differs reports whether a name's remote side differs from its local one, or may: a change
// was begun whose outcome is open. A name that stays local counts as absent for the remote.
func (v *View) Differs(rec table.Name) bool {
	switch {
	case rec.Attempt != nil:
		return true
	case rec.Local:
		return rec.Remote != nil // the remote's previous entry is to be deleted
	case rec.Ino == 0:
		return rec.Remote != nil
	case rec.Remote == nil || rec.Remote.Ino != rec.Ino:
		return true
	}
	n := v.Inode(rec.Ino)
	if n == nil {
		return false
	}
	return !n.IsDir() && n.ContentVersion != rec.Remote.ContentVersion || v.guarded.options.Attributes && n.AttrGen != rec.Remote.AttrGen
}

// Mark puts a name into the order of dirty names when its two sides differ, and takes it
// out when they agree. It follows every change of a name or of the inode behind it.
func (t *Tx) Mark(l table.Link) {
	rec, ok := t.Name(l.Dir, l.Name)
	if !ok {
		return
	}
	t.Touch(l)
	was := rec.Seq
	switch differ := t.Differs(rec); {
	case differ && was == 0:
		rec.Seq = t.NextSeq()
	case !differ && was != 0:
		rec.Seq, rec.Held = 0, nil
	}
	if rec.Seq != was {
		t.writer.SetName(l.Dir, l.Name, rec)
	}
	t.observer.Marked(l, was, rec.Seq)
}

// MarkInode marks each name of an inode.
func (t *Tx) MarkInode(n *table.Inode) {
	for _, l := range n.Links {
		t.Mark(l)
	}
}

// Touch says that the transaction concerns a name, whose place in the order stays as it is.
func (t *Tx) Touch(l table.Link) { t.changed = append(t.changed, l) }

// Changed are the names that the transaction concerns.
func (t *Tx) Changed() []table.Link { return t.changed }

// Unnamed are the inodes that lost a name in the transaction.
func (t *Tx) Unnamed() []table.Ino { return t.unnamed }

// ContentChanged begins a new content version of an inode, of size bytes and modified at
// mtime: each of its names differs from the remote then.
func (t *Tx) ContentChanged(ino table.Ino, size int64, mtime table.Time) {
	n := t.Edit(ino)
	n.ContentVersion++
	n.Metadata = providers.MetadataOfNew(n.Metadata)
	n.Size, n.Mtime, n.Ctime = size, mtime, t.now()
	t.MarkInode(n)
}

// AttrChanged says that attributes which the remote may keep have changed; the caller has
// edited them.
func (t *Tx) AttrChanged(ino table.Ino) {
	n := t.Edit(ino)
	n.AttrGen++
	n.Ctime = t.now()
	t.MarkInode(n)
}

// SetLocal gives a name an inode, or none (0). The kernel knows of it already, since one of
// its requests asked for it. stays says that the name does not go to the remote, and hidden
// that the remote's entry under it is not this working copy's.
func (t *Tx) SetLocal(l table.Link, ino table.Ino, stays, hidden bool) {
	rec := t.Record(l)
	rec.Ino, rec.Local = ino, ino != 0 && stays
	if hidden {
		rec.Remote = nil
	}
	t.ClearStaleDentry(l)
	t.SetName(l, rec)
	t.Mark(l)
}

// DirChanged says that local names of a directory have changed.
func (t *Tx) DirChanged(dir table.Ino) {
	n := t.Edit(dir)
	n.Mtime = t.now()
	n.Ctime = n.Mtime
}
