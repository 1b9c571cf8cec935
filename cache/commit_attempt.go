package cache

import (
	"context"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/providers"
)

// setPiece is how many names are looked at, or changed, while the lock is held.
const setPiece = 64

// breather is how long the lock is left alone between two pieces: who asks for a
// directory takes it once for each entry, and would wait for a piece each time.
const breather = time.Millisecond

// inPieces has do called for some of the names after the other, while what goes on
// is told.
func (c *setCommitter) inPieces(what string, names []*commit.Planned, do func(i int, piece []*commit.Planned) error) error {
	done := 0
	for piece := range slices.Chunk(names, setPiece) {
		if err := do(done/setPiece, piece); err != nil {
			return err
		}
		done += len(piece)
		c.v.doing.goesOn(what, done, len(names))
		if done < len(names) {
			_ = c.v.pause(c.v.ctx, breather) // what was begun is ended, also when the volume ends
		}
	}
	return nil
}

// begin has the table say that a set is about to be sent. errMovedOn says that the set is
// not what it should be any more, and that nothing of it was left in the table.
func (c *setCommitter) begin(s *set, was *snapshot) (u commit.Unresolved, err error) {
	err = c.inPieces(doesBegin, s.Order, func(i int, names []*commit.Planned) error {
		piece, err := commit.NewPiece(i, names)
		if err != nil {
			return err
		}
		return c.v.update(func(v *Tx) error {
			dropped := !u.IsRecorded(v.Tx.View) // by a pull
			if dropped || was.at.IsOvertaken(v.Tx.View) || len(v.unmade(names)) > 0 {
				return errMovedOn
			}
			tx := uploadTx(v)
			if i == 0 {
				u = s.Unresolved(v.operations.Next())
				if err := u.Record(tx); err != nil {
					return err
				}
			}
			u.Add(tx, piece)
			return nil
		})
	})
	if err != nil && u.Op != "" {
		if drop := c.dropSet(u); drop != nil {
			return u, drop
		}
	}
	return u, err
}

// dropSet forgets a set that is known not to have been committed.
func (c *setCommitter) dropSet(u commit.Unresolved) error {
	err := c.inPieces(doesDrop, u.Names, func(_ int, piece []*commit.Planned) error {
		return c.v.update(func(v *Tx) error {
			for _, name := range piece {
				u.EndAttempt(uploadTx(v), name.Link)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return c.v.update(func(v *Tx) error {
		commit.Forget(uploadTx(v))
		return nil
	})
}

// unresolved is the set whose outcome is open; ok is false when there is none.
func (c *setCommitter) unresolved() (u commit.Unresolved, ok bool) {
	u, ok, err := commit.ReadUnresolved(func(key string) []byte {
		locked := c.v.lock()
		defer locked.unlock()
		return locked.table.Get(key)
	})
	if err != nil {
		c.v.o.Log.Error("the record of a commit is damaged", "err", err)
	}
	return u, ok
}

// resolveSet finds out whether a set whose answer got lost was committed, and has
// the table say what the head has: what is collected next would be thrown away
// else.
func (c *setCommitter) resolveSet(ctx context.Context) error {
	v := c.v
	head := v.head.Move()
	defer head.Release()
	if err := c.resolveUnmoved(ctx, head); err != nil {
		return err
	}
	store, ok := v.syncer()
	if !ok {
		return nil
	}
	return c.syncWithHead(ctx, head, store)
}

// syncWithHead is Volume.syncWith for a commit.
func (c *setCommitter) syncWithHead(ctx context.Context, head revision.Moving, store revisions) error {
	w := c.v.wait(nil, c.v.o.Patience)
	defer w.close()
	defer context.AfterFunc(ctx, w.close)()
	_, err := c.v.syncWith(w, head, store)
	return err
}

// resolveOpenSet finds out what became of a set, in a volume that may not commit sets at all.
func (v *Volume) resolveOpenSet(w *waiting, head revision.Moving) error {
	if v.sets == nil {
		return nil
	}
	return v.retry(w, func(ctx context.Context) error { return v.sets.resolveUnmoved(ctx, head) })
}

// resolveUnmoved is resolveSet but for the synced revision. A set that was collected and not
// sent yet is none any more then.
func (c *setCommitter) resolveUnmoved(ctx context.Context, _ revision.Moving) error {
	u, ok := c.unresolved()
	if !ok {
		return nil
	}
	if u.Op == "" {
		return c.dropSet(u)
	}
	// The set of an operation is committed once: this one cannot be, but tells
	// what became of the first.
	result, err := c.remote.Commit(ctx, providers.ChangeSet{Base: "wsmount: none", Op: u.Op})
	switch {
	case err == nil:
		return c.noteSet(u, result, false) // others may have been there meanwhile
	case providers.MayHaveHappened(err):
		return err
	}
	return c.dropSet(u)
}
