package commit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// PieceSize is how many names are processed without giving the lock back.
const PieceSize = 64

// Breather is how long the lock is left alone between two pieces: a reader of a directory takes it
// once for each entry, and would wait for a piece each time.
const Breather = time.Millisecond

// inPieces calls do for piece after piece of the names, and reports the progress of the stage.
func (c *Committer) inPieces(what string, names []*Planned, do func(i int, piece []*Planned) error) error {
	done := 0
	for piece := range slices.Chunk(names, PieceSize) {
		if err := do(done/PieceSize, piece); err != nil {
			return err
		}
		done += len(piece)
		c.o.Monitor.Progress(what, done, len(names))
		if done < len(names) {
			c.o.Host.Pause(c.o.Context, Breather) // a stage is finished in any case
		}
	}
	return nil
}

// begin records in the table that a set is about to be sent. errMovedOn says that the set is out
// of date, and that the table has nothing of it.
func (c *Committer) begin(s *Set, was *Moment) (u Unresolved, err error) {
	err = c.inPieces(Recording, s.Order, func(i int, names []*Planned) error {
		piece, err := NewPiece(i, names)
		if err != nil {
			return err
		}
		return c.o.Volume.Update(func(tx upload.Tx) error {
			dropped := !u.IsRecorded(tx.View) // by a pull
			if dropped || was.At.IsOvertaken(tx.View) || len(unmade(tx.View, names)) > 0 {
				return errMovedOn
			}
			if i == 0 {
				u = s.Unresolved(c.o.NewID(tx.View))
				if err := u.Record(tx); err != nil {
					return err
				}
			}
			u.Add(tx, piece)
			return nil
		})
	})
	if err != nil && u.Op != "" {
		if drop := c.drop(u); drop != nil {
			return u, drop
		}
	}
	return u, err
}

// drop forgets a set that is known not to have been committed.
func (c *Committer) drop(u Unresolved) error {
	err := c.inPieces(TakingBack, u.Names, func(_ int, names []*Planned) error {
		return c.o.Volume.Update(func(tx upload.Tx) error {
			for _, p := range names {
				u.EndAttempt(tx, p.Link)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return c.o.Volume.Update(func(tx upload.Tx) error {
		Forget(tx)
		return nil
	})
}

// settle is Resolve, and brings the table up to date with the head: a set collected before that
// would be thrown away.
func (c *Committer) settle(ctx context.Context, head revision.Moving) error {
	if err := c.Resolve(ctx, head); err != nil {
		return err
	}
	return c.o.Revisions.Sync(ctx, head)
}

// Resolve finds out whether a set whose answer got lost was committed. It forgets a set that was
// collected and not sent yet.
func (c *Committer) Resolve(ctx context.Context, _ revision.Moving) error {
	u, ok := c.unresolved()
	if !ok {
		return nil
	}
	if u.Op == "" {
		return c.drop(u)
	}
	// The set of an operation is committed once: this one cannot be, but the answer tells whether
	// the first was.
	result, err := c.o.Remote.Commit(ctx, providers.ChangeSet{Base: "wsmount: none", Op: u.Op})
	switch {
	case err == nil:
		return c.note(u, result, false) // other writers may have committed meanwhile
	case providers.MayHaveHappened(err):
		return err
	}
	return c.drop(u)
}

// unresolved is the set whose outcome is open; ok is false when there is none.
func (c *Committer) unresolved() (u Unresolved, ok bool) {
	u, ok, err := ReadUnresolved(func(key string) []byte {
		v := c.o.Tree.Lock()
		defer c.o.Tree.Unlock()
		return v.Get(key)
	})
	if err != nil {
		c.o.Volume.Report("commit", "", fmt.Errorf("the record of a commit under way is damaged, whose changes may be sent once more: %w", err))
	}
	return u, ok
}

// note notes the remote's state after a set was committed. A commit to push is counted first:
// after a kill in between no name would differ any more. synced says that the tree equals that
// revision.
func (c *Committer) note(u Unresolved, result providers.CommitResult, synced bool) error {
	if !u.IsMade() {
		c.lookAtBases(u.Names)
	}
	o := Outcome{Unresolved: u, Entries: result.Entries, Confirm: c.o.Executor.Confirm}
	if result.Committed {
		if err := c.o.Revisions.CountUnpushed(); err != nil {
			return err
		}
		o.Noted = func(tx upload.Tx, l table.Link) { history.NoteCommit(tx.Tx, l, u.Until, result.Revision) }
	}
	for _, step := range o.Steps() {
		if err := c.noteStep(step); err != nil {
			return err
		}
	}
	return c.o.Volume.UpdateOwn(func(tx upload.Tx) error {
		Forget(tx)
		if result.Revision != "" {
			revision.SetCommitted(tx, result.Revision)
		}
		if synced {
			revision.SetSynced(tx, result.Revision, c.o.Shown)
		}
		c.o.Judge.Passed(tx.View)
		c.o.Monitor.Advanced(tx.View)
		if result.Committed {
			if len(c.requests) > 0 {
				c.requests[0].landed += len(u.Names)
			}
			revision.SetMerging(tx, "")
		}
		return nil
	})
}

// noteStep notes a part of an outcome.
func (c *Committer) noteStep(step Step) error {
	note := func(_ int, names []*Planned) error {
		return c.o.Volume.UpdateOwn(func(tx upload.Tx) error {
			step.Note(tx, names)
			return nil
		})
	}
	if step.Whole {
		return note(0, step.Names)
	}
	return c.inPieces(Noting, step.Names, note)
}

// lookAtBases reads the remote's known entries of names.
func (c *Committer) lookAtBases(names []*Planned) {
	_ = c.inPieces(Noting, names, func(_ int, piece []*Planned) error {
		v := c.o.Tree.Lock()
		defer c.o.Tree.Unlock()
		for _, p := range piece {
			p.Rec = v.Record(p.Link)
		}
		return nil
	})
}
