package cache

import (
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// noteSet notes what the backend has since a set was committed: what was below a
// directory is gone before that, and a directory is made before what is in it. That
// there is a commit to push is noted first: after a kill in between no name differs
// any more.
func (c *setCommitter) noteSet(u commit.Unresolved, result providers.CommitResult, level bool) error {
	n := c.sortNotes(u)
	ends := func(v *Tx, name *commit.Planned) {
		u.EndAttempt(uploadTx(v), name.Link)
		if result.Committed {
			history.NoteCommit(v, name.Link, u.Until, result.Revision)
		}
	}
	note := func(v *Tx, name *commit.Planned) {
		c.noteGone(v, name)
		c.noteMade(v, name, result.Entries)
		ends(v, name)
	}
	if result.Committed {
		if err := c.v.updateOwn(countCommit); err != nil {
			return err
		}
	}
	if err := c.updateEach(doesNote, n.gone, note); err != nil {
		return err
	}
	if err := c.noteTree(n, result.Entries, ends); err != nil {
		return err
	}
	if err := c.updateEach(doesNote, n.made, note); err != nil {
		return err
	}
	return c.v.updateOwn(func(v *Tx) error {
		commit.Forget(uploadTx(v))
		if result.Revision != "" {
			v.pushes.revision = result.Revision
			revision.SetCommitted(v.table, result.Revision)
		}
		if level {
			revision.SetSynced(v.table, result.Revision, v.o.shown())
		}
		v.passed(massdelete.Commit)
		v.doing.advanced(v.pending)
		if result.Committed {
			if len(c.requests) > 0 {
				c.requests[0].landed += len(u.Names)
			}
			revision.SetMerging(v.table, "")
		}
		return nil
	})
}

// countCommit counts the open set as a commit to push.
func countCommit(v *Tx) error {
	if !commit.CountOnce(uploadTx(v)) {
		return nil
	}
	return v.unpushedMore(1)
}

// notes are the names of a set, by how what it left under them is noted.
type notes struct {
	gone []*commit.Planned // files that were deleted
	tree []*commit.Planned // directories, and what has moved
	knot bool              // of these one name takes what another gives up, or becomes something else
	made []*commit.Planned // files that were sent, whatever was there before
}

// sortNotes sorts the names of a set.
func (c *setCommitter) sortNotes(set commit.Unresolved) (n notes) {
	if !set.IsMade() {
		c.lookAtBases(set.Names)
	}
	given, taken := map[table.Ino]bool{}, map[table.Ino]bool{}
	for _, p := range set.Names {
		if p.Gives() {
			given[p.Rec.Remote.Ino] = true
		}
		taken[p.Ino] = true
	}
	delete(given, 0)
	delete(taken, 0)
	for _, p := range set.Names {
		gives := p.Gives()
		moves := given[p.Ino] || gives && taken[p.Rec.Remote.Ino]
		wasDir := gives && p.Rec.Remote.Kind == providers.KindDir
		switch {
		case moves, wasDir, p.Ino != 0 && p.Kind == providers.KindDir:
			n.knot = n.knot || moves || gives && p.Ino != 0
			n.tree = append(n.tree, p)
		case p.Ino == 0:
			n.gone = append(n.gone, p)
		default:
			n.made = append(n.made, p)
		}
	}
	return n
}

// lookAtBases finds out what the backend is known to have under names.
func (c *setCommitter) lookAtBases(names []*commit.Planned) {
	_ = c.inPieces(doesNote, names, func(_ int, piece []*commit.Planned) error {
		locked := c.v.lock()
		defer locked.unlock()
		for _, p := range piece {
			p.Rec = locked.Record(p.Link)
		}
		return nil
	})
}

// noteTree notes what became of directories, and of what has another name now. As
// long as one update has not both ends of a move nobody could say where it is: then
// all goes in one.
func (c *setCommitter) noteTree(n notes, entries []providers.Info, ends func(*Tx, *commit.Planned)) error {
	gone, made := slices.Clone(n.tree), slices.Clone(n.tree)
	slices.SortStableFunc(gone, func(a, b *commit.Planned) int { return strings.Count(b.Before, "/") - strings.Count(a.Before, "/") })
	slices.SortStableFunc(made, func(a, b *commit.Planned) int { return strings.Count(a.After, "/") - strings.Count(b.After, "/") })
	makes := func(v *Tx, p *commit.Planned) {
		c.noteMade(v, p, entries)
		ends(v, p)
	}
	if !n.knot {
		gone = slices.DeleteFunc(gone, func(p *commit.Planned) bool { return p.Ino != 0 })
		made = slices.DeleteFunc(made, func(p *commit.Planned) bool { return p.Ino == 0 })
		err := c.updateEach(doesNote, gone, func(v *Tx, p *commit.Planned) {
			c.noteGone(v, p)
			ends(v, p)
		})
		if err != nil {
			return err
		}
		return c.updateEach(doesNote, made, makes)
	}
	return c.v.updateOwn(func(v *Tx) error {
		for _, p := range gone {
			c.noteGone(v, p)
		}
		for _, p := range made {
			makes(v, p)
		}
		return nil
	})
}

// noteGone notes that what was under a name is not there any more, if that is so.
func (c *setCommitter) noteGone(v *Tx, p *commit.Planned) {
	if rec := v.Record(p.Link); rec.Remote != nil && (p.Ino == 0 || rec.Remote.Ino != p.Ino) {
		c.v.engine.exec.Confirm(uploadTx(v), p.Link, nil)
	}
}

// noteMade notes what a set left under a name, if anything.
func (c *setCommitter) noteMade(v *Tx, p *commit.Planned, entries []providers.Info) {
	if p.Ino == 0 {
		return
	}
	n := v.table.Edit(p.Ino)
	base := &table.Remote{Ino: p.Ino, Kind: p.Kind, ContentVersion: p.Gen, AttrGen: p.AttrGen}
	if n == nil {
		base.Ino = 0
	}
	if p.Index >= 0 && p.Index < len(entries) && p.Kind != providers.KindDir {
		info := entries[p.Index]
		base.Version, base.Digest = info.Version, info.Digest
		if n != nil && (n.ContentVersion == p.Gen || n.State == table.Whole) {
			n.Origin = table.Origin{Version: info.Version, Digest: info.Digest, ContentVersion: p.Gen}
		}
	}
	c.v.engine.exec.Confirm(uploadTx(v), p.Link, base)
}
