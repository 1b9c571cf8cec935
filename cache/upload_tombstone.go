package cache

import (
	"context"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// A flat store cannot rename a directory: its keys move one by one. The
// directory here must not wait for that, and what was moved must not be lost
// sight of. So the inode parts from its place at the backend: a new inode, the
// tombstone, which nobody sees, takes that place with all names as the backend has
// them, and they are names that are no more here. The directory itself is one
// that the backend does not have yet, full of files that it has elsewhere. All
// that is left are renames of single files, each crash-safe by itself. What
// others add under the old name meanwhile makes the deletion of the tombstone
// fail, and a directory comes back under its old name, with them.
//
// A new directory where the backend still has one that was removed here does
// the reverse: it takes over the place, and what the backend has in it, as
// names that are no more here or stand for something else.
//
// Both hand names over from one inode to another in pieces, so that nobody
// waits long for the lock. While it lasts Inode.From of the giver is ">" and
// the number of the taker, and that of the taker "<" and the giver's, and
// nothing in either is sent.

// handPiece is how many names are handed over at a time.
const handPiece = 256

// part does a piece of it.
func (e *executor) part(dir table.Ino) error {
	return e.handOver(func(v *Tx) table.Ino {

		n := v.table.Inode(dir)
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
		leaveTombstone(v, dir, n)
		return dir
	})
}

// leaveTombstone has a tombstone take the place that a directory has at the backend, and
// begins to hand over what is in it.
func leaveTombstone(v *Tx, dir table.Ino, n *table.Inode) {
	shadow := v.table.Alloc()
	v.table.Put(shadow, twin(n))
	takePlace(v, n.RemoteLinks[0], dir, shadow, 1)
}

// twin is a directory like another one, in which nothing is.
func twin(n *table.Inode) *table.Inode {
	return &table.Inode{Mode: n.Mode, UID: n.UID, GID: n.GID, Mtime: n.Mtime, Ctime: n.Ctime, Atime: n.Atime, Birth: n.Birth,
		ContentVersion: 1, AttrGen: 1, Loaded: true, Listed: n.Listed, Metadata: n.Metadata, Xattrs: n.Xattrs, AttrsUnknown: n.AttrsUnknown, Untold: n.Untold}
}

// adopt has a new directory take the place of one that was removed.
func (e *executor) adopt(s *operation) error {
	return e.handOver(func(v *Tx) table.Ino {
		rec, n := v.Record(s.Link), v.table.Inode(s.Ino)
		if n == nil || rec.Ino != s.Ino || rec.Remote == nil || rec.Remote.Kind != providers.KindDir ||
			rec.Remote.Ino == s.Ino || len(n.RemoteLinks) > 0 || n.From != "" {
			return 0
		}
		giver := rec.Remote.Ino
		takePlace(v, s.Link, giver, s.Ino, 0) // its attributes are sent anew
		v.table.Edit(s.Ino).Listed = 0        // others may have put something there
		return giver
	})
}

// takePlace begins to hand over: the taker is at the backend where the giver was.
func takePlace(v *Tx, home table.Link, giver, taker table.Ino, attrGen uint64) {
	base := *v.Record(home).Remote
	base.Ino, base.ContentVersion, base.AttrGen = taker, v.table.Inode(taker).ContentVersion, attrGen
	v.SetRemote(home, &base)
	n := v.table.Edit(giver)
	if n == nil {
		return
	}
	n.From, v.table.Edit(taker).From = ">"+itoa(taker), "<"+itoa(giver)
	if len(n.Links) == 0 {
		v.succeed(giver, taker)
	}
}

// handOver does a piece of what begin finds to be handed over.
func (e *executor) handOver(begin func(*Tx) (giver table.Ino)) error {
	err := e.v.updateOwn(func(v *Tx) error {
		if giver := begin(v); giver != 0 {
			handOverPiece(v, giver)
		}
		return nil
	})
	if err == nil {
		err = errAgain // for the next piece, or for what comes after
	}
	return err
}

// handOverAll ends what a directory gives or takes.
func handOverAll(v *Tx, dir table.Ino) {
	if giver, _ := tree.Partners(v.table.Inode(dir)); giver != 0 {
		dir = giver
	}
	for handOverPiece(v, dir) {
	}
}

// handOverPiece gives what the backend has under some names of a directory to the taker,
// and reports whether there is more. What the names stand for here stays.
func handOverPiece(v *Tx, giver table.Ino) (more bool) {
	n := v.table.Inode(giver)
	_, taker := tree.Partners(n)
	if n == nil || taker == 0 {
		return false
	}
	type entry struct {
		name string
		rec  table.Name
	}
	var piece []entry
	v.table.Names(giver, "", func(name string, rec table.Name) bool {
		if rec.Remote != nil || rec.Attempt != nil {
			piece = append(piece, entry{name, rec})
		}
		return len(piece) < handPiece
	})
	// All that is to be made comes before all that is to be deleted then: each
	// of both goes in parallel.
	for _, p := range piece {
		v.SetRemote(table.Link{Dir: giver, Name: p.name}, nil)
	}
	for _, p := range piece {
		to := table.Link{Dir: taker, Name: p.name}
		v.SetRemote(to, p.rec.Remote)
		if p.rec.Attempt != nil { // its outcome is found at the same place
			v.setAttempt(to, p.rec.Attempt)
			redirect(v, p.rec.Attempt, to)
		}
	}
	if len(piece) == handPiece {
		return true
	}
	v.table.Edit(giver).From = ""
	v.table.Edit(taker).From = ""
	v.Shed(giver)
	v.wakes = true
	return false
}

// redirect tells the other name of a rename whose outcome is open that this one
// is elsewhere.
func redirect(v *Tx, a *table.Attempt, to table.Link) {
	if a.Kind != upload.AttemptMove && a.Kind != upload.AttemptGone {
		return
	}
	other := upload.ParseLink(a.Other)
	rec := v.Record(other)
	if rec.Attempt == nil || rec.Attempt.Op != a.Op {
		return
	}
	changed := *rec.Attempt
	changed.Other = upload.FormatLink(to)
	v.setAttempt(other, &changed)
}

// empty lists a directory whose names part next: what is not known cannot move.
func (e *executor) empty(ctx context.Context, dir table.Ino) error {
	if err := e.v.loadDir(nil, dir); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	known := false
	_ = e.v.view(func(v *View) error {
		n := v.table.Inode(dir)
		known = n == nil || n.Loaded
		return nil
	})
	if !known {
		return syscall.EAGAIN
	}
	return errAgain
}
