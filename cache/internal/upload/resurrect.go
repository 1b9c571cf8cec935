package upload

import (
	"strconv"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// A directory that was removed locally comes back when others have put something into it. It comes
// back as another inode: as long as a program is in the removed one, the kernel holds that as
// dead, and no notice changes that. A program in it stays there, as on a local disk: it is empty,
// and nothing can be made in it. All known remote entries below it, deletions that are still to be
// sent too, go over to the new one.

// Resurrect brings back a directory that could not be deleted, because others have put something
// into it: their entries show when it is next listed. The deletion is given up, and those of
// directories above it. ErrAgain says that it is done.
func (x *Executor) Resurrect(l table.Link, cause error) error {
	path := ""
	err := x.o.Volume.Update(func(tx Tx) error {
		rec := tx.Record(l)
		switch {
		case rec.Remote == nil:
			return ErrAgain // it came back with one above it, and goes from there
		case rec.Remote.Kind != providers.KindDir:
			return cause
		}
		path = tx.PathFor(l)
		n := tx.Edit(rec.Remote.Ino)
		if n == nil { // made and removed before the answer came: it is theirs
			if up := tx.Edit(l.Dir); up != nil {
				up.Listed = 0
			}
			tx.SetRemote(l, nil)
			return nil
		}
		n.Loaded, n.Listed = false, 0
		resurrectDir(tx, rec.Remote.Ino)
		return nil
	})
	if err != nil {
		return err
	}
	x.o.Volume.Report("delete", path, cause)
	return ErrAgain
}

// resurrectDir has a directory that was removed come back, after those above it. If another inode
// has its name by now, that keeps it: a directory takes the place over, with the entries in it;
// else there is a new name.
func resurrectDir(tx Tx, dir table.Ino) {
	n := tx.Inode(dir)
	if dir == table.Root || n == nil || len(n.Links) > 0 || len(n.RemoteLinks) == 0 {
		return
	}
	resurrectDir(tx, n.RemoteLinks[0].Dir)
	l := tx.Inode(dir).RemoteLinks[0] // in another directory, if the one above came back
	rec := tx.Record(l)
	to := rec.Ino
	switch other := tx.Inode(to); {
	case to == 0:
		to = resurrected(tx, l, dir)
	case other.IsDir() && len(other.RemoteLinks) == 0:
	default:
		to = resurrected(tx, nameBeside(tx.View, l), dir)
	}
	attrGen := uint64(0)
	if rec.Ino != to && n.AttrGen == rec.Remote.AttrGen {
		attrGen = tx.Inode(to).AttrGen // the same attributes as the remote's
	}
	takePlace(tx, l, dir, to, attrGen)
	HandOverAll(tx, dir)
	back := tx.Edit(to)
	back.Loaded, back.Listed = false, 0
}

// resurrected is a directory with the attributes of a removed one, under a free name.
func resurrected(tx Tx, l table.Link, old table.Ino) table.Ino {
	dir := tx.Alloc()
	tx.Put(dir, Twin(tx.Inode(old)))
	tx.Rest.Resurrected(l, dir)
	return dir
}

// nameBeside is a free name beside another one.
func nameBeside(v *tree.View, l table.Link) table.Link {
	for i := 1; ; i++ {
		to := table.Link{Dir: l.Dir, Name: l.Name + "." + strconv.Itoa(i)}
		if len(to.Name) > providers.MaxName {
			to.Name = "revived." + strconv.FormatUint(v.Record(l).Remote.Ino, 10) + "." + strconv.Itoa(i)
		}
		if rec, known := v.Name(to.Dir, to.Name); !known && rec.Ino == 0 {
			return to
		}
	}
}
