package cache

import (
	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// noteSet notes what the backend has since a set was committed. That there is a commit to
// push is noted first: after a kill in between no name differs any more. synced says that
// the tree is what that revision has.
func (c *setCommitter) noteSet(u commit.Unresolved, result providers.CommitResult, synced bool) error {
	if !u.IsMade() {
		c.lookAtBases(u.Names)
	}
	o := commit.Outcome{Unresolved: u, Entries: result.Entries, Confirm: c.v.engine.exec.Confirm}
	if result.Committed {
		if err := c.v.updateOwn(countCommit); err != nil {
			return err
		}
		o.Noted = func(tx upload.Tx, l table.Link) { history.NoteCommit(tx.Tx, l, u.Until, result.Revision) }
	}
	for _, step := range o.Steps() {
		if err := c.noteStep(step); err != nil {
			return err
		}
	}
	return c.v.updateOwn(func(v *Tx) error {
		commit.Forget(uploadTx(v))
		if result.Revision != "" {
			revision.SetCommitted(v.table, result.Revision)
		}
		if synced {
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

// noteStep notes a part of an outcome.
func (c *setCommitter) noteStep(step commit.Step) error {
	note := func(_ int, names []*commit.Planned) error {
		return c.v.updateOwn(func(v *Tx) error {
			step.Note(uploadTx(v), names)
			return nil
		})
	}
	if step.Whole {
		return note(0, step.Names)
	}
	return c.inPieces(doesNote, step.Names, note)
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
