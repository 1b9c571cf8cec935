package cache

import (
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// contentChanged says that the content of an inode is in a new state, that of size
// bytes, since mtime: each of its names differs from the backend then.
func (v *Tx) contentChanged(ino table.Ino, size int64, mtime table.Time) {
	n := v.table.Edit(ino)
	n.ContentVersion++
	n.Metadata = providers.MetadataOfNew(n.Metadata)
	n.Size, n.Mtime, n.Ctime = size, mtime, v.stamp()
	v.markInode(n)
}

// attrChanged says that attributes which the backend may keep have changed; the caller
// has edited them.
func (v *Tx) attrChanged(ino table.Ino) {
	n := v.table.Edit(ino)
	n.AttrGen++
	n.Ctime = v.stamp()
	v.markInode(n)
}

// markInode looks anew at each name of an inode.
func (v *Tx) markInode(n *table.Inode) {
	for _, l := range n.Links {
		v.mark(l)
	}
}

// mark puts a name into the order of changes when its two sides differ, and takes it out
// when they agree. It follows every change of a name or of what is behind it.
func (v *Tx) mark(l table.Link) {
	rec, ok := v.table.Name(l.Dir, l.Name)
	if !ok {
		return
	}
	v.Changed = append(v.Changed, l)
	differ := v.differ(rec)
	if l.Name == v.o.IgnoreFile {
		v.rulesMoved(l, differ)
	}
	switch {
	case differ && rec.Seq == 0:
		rec.Seq = v.table.NextSeq() // not due yet: see engine.open
		v.wakes = v.wakes || v.engine.hurried(v.View)
	case !differ && rec.Seq != 0:
		rec.Seq, rec.Held = 0, nil
		v.wakes = true
	case differ:
		v.wakes = v.wakes || rec.Seq <= v.engine.due || v.engine.hurried(v.View) // another state of what was on its way
		return
	default:
		return
	}
	v.table.SetName(l.Dir, l.Name, rec)
}

// differ reports whether the backend has something else under a name than is
// here, or may have: a change was begun whose outcome is open. What stays here
// (Local) is nothing to the backend.
func (v *View) differ(rec table.Name) bool {
	switch {
	case rec.Attempt != nil:
		return true
	case rec.Local:
		return rec.Remote != nil // what had the name before is to go
	case rec.Ino == 0:
		return rec.Remote != nil
	case rec.Remote == nil || rec.Remote.Ino != rec.Ino:
		return true
	}
	n := v.table.Inode(rec.Ino)
	if n == nil {
		return false
	}
	return !n.IsDir() && n.ContentVersion != rec.Remote.ContentVersion || v.caps.Attributes != 0 && n.AttrGen != rec.Remote.AttrGen
}

// setLocal gives a name an inode, or none (0). The kernel knows of it already: a request
// asked for it.
func (v *Tx) setLocal(l table.Link, ino table.Ino, stays bool) {
	rec, _ := v.table.Name(l.Dir, l.Name)
	rec.Ino, rec.Local = ino, ino != 0 && stays
	if rec.Remote != nil && v.o.Exclude != nil {
		if at, ok := v.RemotePath(l); ok && v.excluded(at, rec.Remote.Kind) {
			rec.Remote = nil // excluded since it was taken from there, which keeps it
		}
	}
	v.ClearStaleDentry(l)
	v.SetName(l, rec)
	v.mark(l)
}

// setRemote says what the backend is now known to have under a name; nil: nothing.
// Listings that began before are told not to believe what they have of it.
func (v *Tx) setRemote(l table.Link, base *table.Remote) {
	rec, _ := v.table.Name(l.Dir, l.Name)
	rec.Remote, rec.Attempt = base, nil
	v.table.SetName(l.Dir, l.Name, rec)
	v.ChangedByUs(l)
	v.mark(l)
	v.vacated(l)
}

// vacated lets a directory go that was removed here, once nothing is open about a name
// in it.
func (v *Tx) vacated(l table.Link) {
	if _, there := v.table.Name(l.Dir, l.Name); !there {
		v.shed(l.Dir)
	}
}
