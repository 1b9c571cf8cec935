package cache

import (
	"strconv"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// A directory that was removed here comes back when others have put something
// into it. What comes back is another inode: as long as a program is in the one
// that was removed, the kernel holds that as dead, and nothing said of it changes
// that. Who is in it stays there, as on a local disk: it is empty, and nothing can
// be made in it. All that is known of the backend below it, deletions that are
// still to be sent too, goes over to the new one.

// resurrect brings back a directory that could not be deleted, because others have
// put something into it: what they did shows when it is next listed. The
// deletion is given up, and those of directories above it.
func (e *executor) resurrect(l table.Link, cause error) error {
	v := e.v
	path := ""
	err := e.v.updateOwn(func(v *Tx) error {
		rec := v.Record(l)
		switch {
		case rec.Remote == nil:
			return errAgain // it came back with one above it, and goes from there
		case rec.Remote.Kind != providers.KindDir:
			return cause
		}
		path = v.PathFor(l)
		n := v.table.Edit(rec.Remote.Ino)
		if n == nil { // made and removed before the answer came: it is theirs
			if up := v.table.Edit(l.Dir); up != nil {
				up.Listed = 0
			}
			v.SetRemote(l, nil)
			return nil
		}
		n.Loaded, n.Listed = false, 0
		resurrectDir(v, rec.Remote.Ino)
		return nil
	})
	if err != nil {
		return err
	}
	v.report("delete", path, cause)
	return errAgain
}

// resurrectDir has a directory that was removed come back, after those above it. A name
// that something else has by now stays with it: a directory takes the place over, with
// what is in it; else there is a new name.
func resurrectDir(v *Tx, dir table.Ino) {
	n := v.table.Inode(dir)
	if dir == table.Root || n == nil || len(n.Links) > 0 || len(n.RemoteLinks) == 0 {
		return
	}
	resurrectDir(v, n.RemoteLinks[0].Dir)
	l := v.table.Inode(dir).RemoteLinks[0] // in another directory, if that above came back
	rec := v.Record(l)
	to := rec.Ino
	switch other := v.table.Inode(to); {
	case to == 0:
		to = resurrected(v, l, dir)
	case other.IsDir() && len(other.RemoteLinks) == 0:
	default:
		to = resurrected(v, nameBeside(v.View, l), dir)
	}
	attrGen := uint64(0)
	if rec.Ino != to && n.AttrGen == rec.Remote.AttrGen {
		attrGen = v.table.Inode(to).AttrGen // they are those that the backend has
	}
	takePlace(v, l, dir, to, attrGen)
	handOverAll(v, dir)
	back := v.table.Edit(to)
	back.Loaded, back.Listed = false, 0
}

// resurrected is a directory like one that was removed, under a name that is free.
func resurrected(v *Tx, l table.Link, old table.Ino) table.Ino {
	dir := v.table.Alloc()
	v.table.Put(dir, twin(v.table.Inode(old)))
	v.setLocal(l, dir, v.stays(l, v.table.Inode(dir)))
	v.recordMade(l, dir, whyRevived)
	v.Later(func() { v.notifier().EntryChanged(ino(l.Dir), l.Name) })
	return dir
}

// nameBeside is a free name beside another one.
func nameBeside(v *View, l table.Link) table.Link {
	for i := 1; ; i++ {
		to := table.Link{Dir: l.Dir, Name: l.Name + "." + strconv.Itoa(i)}
		if len(to.Name) > providers.MaxName {
			to.Name = "revived." + itoa(v.Record(l).Remote.Ino) + "." + strconv.Itoa(i)
		}
		if rec, known := v.table.Name(to.Dir, to.Name); !known && rec.Ino == 0 {
			return to
		}
	}
}

// succeed has what was noted of names in a directory that was removed be noted of those
// in the one that is in its place: which of them an orphaned file gets back, and about
// which of them listings that are under way say nothing.
func (v *Tx) succeed(old, dir table.Ino) {
	v.Succeed(old, dir)
	for _, x := range append(v.orphanConflicts(), v.open.Inos(v.Tx.View)...) {
		if n := v.table.Inode(x); n != nil && n.LostName != nil && n.LostName.Dir == old {
			v.table.Edit(x).LostName.Dir = dir
		}
	}
}
