package upload

import (
	"context"
	"strconv"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// A flat store cannot rename a directory: its keys move one by one. The local directory must not
// wait for that, and keys that were moved must not be lost sight of. So the inode parts from its
// place at the remote: a new inode, the tombstone, which no program sees, takes that place with
// all names as the remote has them, all of them removed locally. The directory itself is one that
// the remote does not have yet, full of files that it has elsewhere. All that is left are renames
// of single files, each crash-safe by itself. Entries that others add under the old name meanwhile
// make the deletion of the tombstone fail, and a directory comes back under its old name, with
// them.
//
// A new directory where the remote still has one that was removed locally does the reverse: it
// takes over the place with the remote's entries in it, as names that are removed locally or lead
// to another inode.
//
// Both hand names over from one inode to another in pieces, so that the lock is never held long.
// While it lasts Inode.From of the giver is ">" and the number of the taker, and that of the taker
// "<" and the giver's, and no name in either is sent.

// handPiece is how many names are handed over at a time.
const handPiece = 256

// part hands over a piece of a directory's names to a tombstone.
func (x *Executor) part(dir table.Ino) error {
	return x.handOver(func(tx Tx) table.Ino {
		n := tx.Inode(dir)
		switch {
		case n == nil:
			return 0
		case n.From != "":
			if giver, taker := tree.Partners(n); taker == 0 {
				return giver
			}
			return dir
		case len(n.RemoteLinks) == 0:
			return 0
		}
		LeaveTombstone(tx, dir, n)
		return dir
	})
}

// LeaveTombstone has a tombstone take the place that a directory has at the remote, and begins to
// hand its names over.
func LeaveTombstone(tx Tx, dir table.Ino, n *table.Inode) {
	tombstone := tx.Alloc()
	tx.Put(tombstone, Twin(n))
	takePlace(tx, n.RemoteLinks[0], dir, tombstone, 1)
}

// Twin is an empty directory with the attributes of another one.
func Twin(n *table.Inode) *table.Inode {
	return &table.Inode{Mode: n.Mode, UID: n.UID, GID: n.GID, Mtime: n.Mtime, Ctime: n.Ctime, Atime: n.Atime, Birth: n.Birth,
		ContentVersion: 1, AttrGen: 1, Loaded: true, Listed: n.Listed, Metadata: n.Metadata, Xattrs: n.Xattrs, AttrsUnknown: n.AttrsUnknown, Untold: n.Untold}
}

// adopt has a new directory take the place of one that was removed.
func (x *Executor) adopt(s *Try) error {
	return x.handOver(func(tx Tx) table.Ino {
		rec, n := tx.Record(s.Link), tx.Inode(s.Ino)
		if n == nil || rec.Ino != s.Ino || rec.Remote == nil || rec.Remote.Kind != providers.KindDir ||
			rec.Remote.Ino == s.Ino || len(n.RemoteLinks) > 0 || n.From != "" {
			return 0
		}
		giver := rec.Remote.Ino
		takePlace(tx, s.Link, giver, s.Ino, 0) // its attributes are sent anew
		tx.Edit(s.Ino).Listed = 0              // others may have added to it
		return giver
	})
}

// takePlace begins to hand over: the taker gets the giver's place at the remote.
func takePlace(tx Tx, home table.Link, giver, taker table.Ino, attrGen uint64) {
	base := *tx.Record(home).Remote
	base.Ino, base.ContentVersion, base.AttrGen = taker, tx.Inode(taker).ContentVersion, attrGen
	tx.SetRemote(home, &base)
	n := tx.Edit(giver)
	if n == nil {
		return
	}
	n.From, tx.Edit(taker).From = ">"+strconv.FormatUint(taker, 10), "<"+strconv.FormatUint(giver, 10)
	if len(n.Links) == 0 {
		tx.Rest.Succeeded(giver, taker)
	}
}

// handOver hands over a piece of the names of the giver that begin finds.
func (x *Executor) handOver(begin func(Tx) (giver table.Ino)) error {
	err := x.o.Volume.Update(func(tx Tx) error {
		if giver := begin(tx); giver != 0 {
			handOverPiece(tx, giver)
		}
		return nil
	})
	if err == nil {
		err = ErrAgain // for the next piece, or the operation after it
	}
	return err
}

// HandOverAll completes the handing over in which a directory is giver or taker.
func HandOverAll(tx Tx, dir table.Ino) {
	if giver, _ := tree.Partners(tx.Inode(dir)); giver != 0 {
		dir = giver
	}
	for handOverPiece(tx, dir) {
	}
}

// handOverPiece gives the remote side of some names of a directory to the taker, and reports
// whether there is more. Their local side stays.
func handOverPiece(tx Tx, giver table.Ino) (more bool) {
	n := tx.Inode(giver)
	_, taker := tree.Partners(n)
	if n == nil || taker == 0 {
		return false
	}
	type entry struct {
		name string
		rec  table.Name
	}
	var piece []entry
	tx.Names(giver, "", func(name string, rec table.Name) bool {
		if rec.Remote != nil || rec.Attempt != nil {
			piece = append(piece, entry{name, rec})
		}
		return len(piece) < handPiece
	})
	// All entries that are then to be made come before all that are to be deleted: each kind goes
	// in parallel.
	for _, p := range piece {
		tx.SetRemote(table.Link{Dir: giver, Name: p.name}, nil)
	}
	for _, p := range piece {
		to := table.Link{Dir: taker, Name: p.name}
		tx.SetRemote(to, p.rec.Remote)
		if p.rec.Attempt != nil { // its outcome is found at the same place
			tx.SetAttempt(to, p.rec.Attempt)
			Redirect(tx, p.rec.Attempt, to)
		}
	}
	if len(piece) == handPiece {
		return true
	}
	tx.Edit(giver).From = ""
	tx.Edit(taker).From = ""
	tx.Shed(giver)
	tx.Rest.Wake()
	return false
}

// Redirect tells the other name of a rename whose outcome is open that this one is elsewhere.
func Redirect(tx Tx, a *table.Attempt, to table.Link) {
	if a.Kind != AttemptMove && a.Kind != AttemptGone {
		return
	}
	other := ParseLink(a.Other)
	rec := tx.Record(other)
	if rec.Attempt == nil || rec.Attempt.Op != a.Op {
		return
	}
	changed := *rec.Attempt
	changed.Other = FormatLink(to)
	tx.SetAttempt(other, &changed)
}

// empty lists a directory whose names part next: a name that is not known cannot move.
func (x *Executor) empty(ctx context.Context, dir table.Ino) error {
	if err := x.o.Names.List(dir); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	known := false
	_ = x.o.Tree.View(func(v *tree.View) error {
		n := v.Inode(dir)
		known = n == nil || n.Loaded
		return nil
	})
	if !known {
		return syscall.EAGAIN
	}
	return ErrAgain
}
