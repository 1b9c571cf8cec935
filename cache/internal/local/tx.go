// Package local makes changes of the local tree with their consequences: the rules decide which
// names stay on this machine, the history notes the previous content, the content file carries
// its path, and once the change is committed, the kernel and the lifecycle bus are notified.
//
//	tx.Bury(l, ino, history.WhyRemoved)
//	tx.SetLocal(l, 0)
//	tx.NameLost(ino)
//
// A request of the kernel makes such changes, and so does a pull.
package local

import (
	"log/slog"
	"time"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Side has the parts of a working copy that all its changes share.
type Side struct {
	Border     *rules.Border
	Attributes attrs.Mapping
	Content    Content
	Notifier   func() fs.Notifier // the present one
	Now        func() time.Time
	Log        *slog.Logger
}

// Content has the content files.
type Content interface {
	// SetPath notes the path of an inode beside its content file, in case the table is lost.
	SetPath(ino table.Ino, path string)
}

// Stamp is the present time in the form of inodes.
func (s *Side) Stamp() table.Time { return table.TimeOf(s.Now()) }

// A Tx is a change of the tree under way, with its consequences.
type Tx struct {
	*Side
	*tree.Tx
	Notes history.Tx // for the history
	// Own: an operation of the sender made the change: names made dirty by it are due with it.
	Own bool
}

// InodeOf is a new inode for a remote entry.
func (t *Tx) InodeOf(info providers.Info) *table.Inode {
	return t.Attributes.Inode(&info, t.Stamp(), revision.Since(t))
}

// SetLocal gives a name an inode, or none (0), see rules.Border.SetLocal.
func (t *Tx) SetLocal(l table.Link, ino table.Ino) { t.Border.SetLocal(t.Tx, l, ino) }

// Enter puts a new inode under a name that is free.
func (t *Tx) Enter(l table.Link, ino table.Ino, n *table.Inode) {
	t.Put(ino, n)
	t.SetLocal(l, ino)
	t.DirChanged(l.Dir)
}

// Remove takes a name away; the remote follows.
func (t *Tx) Remove(l table.Link, ino table.Ino) {
	t.TellDeleted(l, t.Inode(ino))
	t.Bury(l, ino, history.WhyRemoved)
	t.SetLocal(l, 0)
	t.DirChanged(l.Dir)
	t.NameLost(ino)
}

// Bury tells the history that a name is about to lose its inode. Call it in the change that
// removes the name, before the removal.
func (t *Tx) Bury(l table.Link, ino table.Ino, why string) {
	if err := t.Notes.Ended(l, ino, why); err != nil {
		t.Log.Error("the history does not have what was removed", "name", l.Name, "err", err)
	}
}

// TellDeleted tells the lifecycle bus that a file's name is removed.
func (t *Tx) TellDeleted(l table.Link, n *table.Inode) {
	if at, ok := t.LocalPath(l); ok && !n.IsDir() {
		t.Later(func() { t.Notifier().Deleted(at.String()) })
	}
}

// TellWrote is TellDeleted for content that is new under a name.
func (t *Tx) TellWrote(l table.Link) {
	if at, ok := t.LocalPath(l); ok {
		t.Later(func() { t.Notifier().Wrote(at.String()) })
	}
}

// Written tells the history and the lifecycle bus of a new state of content.
func (t *Tx) Written(ino table.Ino, n *table.Inode) {
	t.Notes.Version(n, ino, "written")
	for _, l := range n.Links {
		t.TellWrote(l)
	}
	t.Place(ino)
}

// Place notes the path of an inode beside its content file.
func (t *Tx) Place(ino table.Ino) {
	if n := t.Inode(ino); n.State == table.None || len(n.Links) == 0 {
		return
	}
	if at, ok := t.LocalPathOf(ino); ok {
		t.Content.SetPath(ino, at.String())
	}
}

// TellEntry has the kernel look a name up again. Never that of a directory which still exists:
// the kernel would unmount mounts below it.
func (t *Tx) TellEntry(l table.Link) {
	t.Later(func() { t.Notifier().EntryChanged(fs.Ino(l.Dir), l.Name) })
}

// TellAttr has the kernel ask for the attributes of an inode again.
func (t *Tx) TellAttr(ino table.Ino) {
	t.Later(func() { t.Notifier().AttrChanged(fs.Ino(ino)) })
}
