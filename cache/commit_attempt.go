package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// A set whose outcome is open is in the table: before it is sent, so that whoever
// comes after a kill knows what to ask about, and until what it left is noted.
// There may be very many names in it, so all that is said of them is said in pieces,
// each in a transaction of its own between which others have their turn:
//
//   - first the record of the set, with its operation. Each piece then puts some
//     of the names beside it, and the attempts of these. After a kill in between
//     the operation was never sent, and what there is of it is dropped;
//   - what it left, name by name (commit_outcome.go). After a kill in between the record
//     is there still: the backend is asked once more, and all is noted again, which
//     changes nothing of what was;
//   - at the end, with all that holds for the set as a whole, the record goes.

// setPiece is how many names are looked at, or changed, while the lock is held.
const setPiece = 64

// pendingSet is a set whose outcome is open: what is to be noted if it was
// committed.
type pendingSet struct {
	Op    string
	Names []*commit.Planned `json:",omitempty"` // in the record itself only as versions before wrote it
	Until uint64            `json:",omitempty"` // records of them before it tell of what is in the set

	known bool // it was made in this run: planned.rec is
}

func (s *set) pending(op string) pendingSet { return pendingSet{op, s.Order, s.Until, true} }

// pieceKey is where a piece of the names of an open set is.
func pieceKey(i int) string { return fmt.Sprintf("%s%08x", keySetNames, i) }

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

// updateEach does something about each name, in pieces.
func (c *setCommitter) updateEach(what string, names []*commit.Planned, do func(v *Tx, p *commit.Planned)) error {
	return c.inPieces(what, names, func(_ int, piece []*commit.Planned) error {
		return c.v.updateOwn(func(v *Tx) error {
			for _, p := range piece {
				do(v, p)
			}
			return nil
		})
	})
}

// begin has the table say that a set is about to be sent: what the backend shows of
// its names is not news. errMovedOn says that the set is not what it should be
// any more, and that nothing of it was left in the table.
func (c *setCommitter) begin(s *set, was *snapshot) (op string, err error) {
	v, record := c.v, []byte(nil)
	err = c.inPieces(doesBegin, s.Order, func(i int, piece []*commit.Planned) error {
		names, err := json.Marshal(piece)
		if err != nil {
			return err
		}
		return v.update(func(v *Tx) error {
			dropped := !bytes.Equal(v.table.Get(keySet), record) // by a pull
			if dropped || was.at.IsOvertaken(v.Tx.View) || len(v.unmade(piece)) > 0 {
				return errMovedOn
			}
			if i == 0 {
				op = v.operations.Next()
				record = fmt.Appendf(nil, `{"Op":%q,"Until":%d}`, op, s.Until)
				v.table.Set(keySet, record)
			}
			v.table.Set(pieceKey(i), names)
			tx := uploadTx(v)
			for _, p := range piece {
				tx.SetAttempt(p.Link, &table.Attempt{Op: op, ContentVersion: p.Gen, AttrGen: p.AttrGen, Kind: upload.AttemptSet})
			}
			return nil
		})
	})
	if err != nil && op != "" {
		if drop := c.dropSet(s.pending(op)); drop != nil {
			return "", drop
		}
	}
	return op, err
}

// dropSet forgets a set that is known not to have been committed.
func (c *setCommitter) dropSet(p pendingSet) error {
	err := c.inPieces(doesDrop, p.Names, func(_ int, piece []*commit.Planned) error {
		return c.v.update(func(v *Tx) error {
			for _, name := range piece {
				c.endAttempt(v, p.Op, name)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return c.v.update(func(v *Tx) error {
		c.forgetSet(v)
		return nil
	})
}

// endAttempt ends that of a name of a set.
func (c *setCommitter) endAttempt(v *Tx, op string, name *commit.Planned) {
	if a := v.Record(name.Link).Attempt; a != nil && a.Op == op {
		uploadTx(v).SetAttempt(name.Link, nil)
	}
}

// forgetSet takes the record of the set away.
func (c *setCommitter) forgetSet(v *Tx) {
	v.table.Set(keySet, nil)
	v.table.Set(keyCounted, nil)
	v.table.Scan(keySetNames, "", func(key string, _ []byte) bool {
		v.table.Set(key, nil)
		return true
	})
}

// openSet is the set whose outcome is open; ok is false when there is none.
func (c *setCommitter) openSet() (p pendingSet, ok bool) {
	v := c.v
	locked := v.lock()
	data := locked.table.Get(keySet)
	locked.unlock()
	if data == nil {
		return p, false
	}
	if err := json.Unmarshal(data, &p); err != nil {
		v.o.Log.Error("the record of a commit is damaged", "err", err)
	}
	for i := 0; ; i++ {
		locked = v.lock()
		data = locked.table.Get(pieceKey(i))
		locked.unlock()
		if data == nil {
			return p, true
		}
		var names []*commit.Planned
		if err := json.Unmarshal(data, &names); err != nil {
			v.o.Log.Error("the record of a commit is damaged", "piece", i, "err", err)
		}
		p.Names = append(p.Names, names...)
	}
}

// resolveSet finds out whether a set whose answer got lost was committed, and has
// the table say what the head has: what is collected next would be thrown away
// else.
func (c *setCommitter) resolveSet(ctx context.Context) error {
	v := c.v
	v.puller.headLock.Lock()
	defer v.puller.headLock.Unlock()
	if err := c.resolveUnderHeadLock(ctx); err != nil {
		return err
	}
	store, ok := v.syncer()
	if !ok {
		return nil
	}
	return c.syncWithHead(ctx, store)
}

// syncWithHead is levelWith for a commit. puller.headLock is held.
func (c *setCommitter) syncWithHead(ctx context.Context, store revisions) error {
	w := c.v.wait(nil, c.v.o.Patience)
	defer w.close()
	defer context.AfterFunc(ctx, w.close)()
	_, err := c.v.syncWith(w, store)
	return err
}

// resolveOpenSet is resolveUnderHeadLock of a volume that may not commit sets at all.
func (v *Volume) resolveOpenSet(ctx context.Context) error {
	if v.sets == nil {
		return nil
	}
	return v.sets.resolveUnderHeadLock(ctx)
}

// resolveUnderHeadLock is resolveSet for who holds puller.headLock, but for the synced revision. A set that
// was collected and not sent yet is none any more then.
func (c *setCommitter) resolveUnderHeadLock(ctx context.Context) error {
	p, ok := c.openSet()
	if !ok {
		return nil
	}
	if p.Op == "" {
		return c.dropSet(p)
	}
	// The set of an operation is committed once: this one cannot be, but tells
	// what became of the first.
	result, err := c.remote.Commit(ctx, providers.ChangeSet{Base: "wsmount: none", Op: p.Op})
	switch {
	case err == nil:
		return c.noteSet(p, result, false) // others may have been there meanwhile
	case upload.MayHaveHappened(err):
		return err
	}
	return c.dropSet(p)
}
