package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
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
	Names []*planned `json:",omitempty"` // in the record itself only as versions before wrote it
	Until uint64     `json:",omitempty"` // records of them before it tell of what is in the set

	known bool // it was made in this run: planned.rec is
}

func (s *set) pending(op string) pendingSet { return pendingSet{op, s.order, s.until, true} }

// pieceKey is where a piece of the names of an open set is.
func pieceKey(i int) string { return fmt.Sprintf("%s%08x", keySetNames, i) }

// breather is how long the lock is left alone between two pieces: who asks for a
// directory takes it once for each entry, and would wait for a piece each time.
const breather = time.Millisecond

// inPieces has do called for some of the names after the other, while what goes on
// is told.
func (e *engine) inPieces(what string, names []*planned, do func(i int, piece []*planned) error) error {
	done := 0
	for piece := range slices.Chunk(names, setPiece) {
		if err := do(done/setPiece, piece); err != nil {
			return err
		}
		done += len(piece)
		e.goesOn(what, done, len(names))
		if done < len(names) {
			_ = e.v.pause(e.v.ctx, breather) // what was begun is ended, also when the volume ends
		}
	}
	return nil
}

// updateEach does something about each name, in pieces.
func (e *engine) updateEach(what string, names []*planned, do func(v *Tx, p *planned)) error {
	return e.inPieces(what, names, func(_ int, piece []*planned) error {
		return e.update(func(v *Tx) error {
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
func (e *engine) begin(s *set, was *snapshot) (op string, err error) {
	v, record := e.v, []byte(nil)
	err = e.inPieces(doesBegin, s.order, func(i int, piece []*planned) error {
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
				op = e.operationID(v.View)
				record = fmt.Appendf(nil, `{"Op":%q,"Until":%d}`, op, s.until)
				v.table.Set(keySet, record)
			}
			v.table.Set(pieceKey(i), names)
			for _, p := range piece {
				v.setAttempt(p.Link, &table.Attempt{Op: op, ContentVersion: p.Gen, AttrGen: p.AttrGen, Kind: attemptSet})
			}
			return nil
		})
	})
	if err != nil && op != "" {
		if drop := e.dropSet(s.pending(op)); drop != nil {
			return "", drop
		}
	}
	return op, err
}

// dropSet forgets a set that is known not to have been committed.
func (e *engine) dropSet(p pendingSet) error {
	err := e.inPieces(doesDrop, p.Names, func(_ int, piece []*planned) error {
		return e.v.update(func(v *Tx) error {
			for _, name := range piece {
				e.endAttempt(v, p.Op, name)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return e.v.update(func(v *Tx) error {
		e.forgetSet(v)
		return nil
	})
}

// endAttempt ends that of a name of a set.
func (e *engine) endAttempt(v *Tx, op string, name *planned) {
	if a := v.Record(name.Link).Attempt; a != nil && a.Op == op {
		v.setAttempt(name.Link, nil)
	}
}

// forgetSet takes the record of the set away.
func (e *engine) forgetSet(v *Tx) {
	v.table.Set(keySet, nil)
	v.table.Set(keyCounted, nil)
	v.table.Scan(keySetNames, "", func(key string, _ []byte) bool {
		v.table.Set(key, nil)
		return true
	})
}

// openSet is the set whose outcome is open; ok is false when there is none.
func (e *engine) openSet() (p pendingSet, ok bool) {
	v := e.v
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
		var names []*planned
		if err := json.Unmarshal(data, &names); err != nil {
			v.o.Log.Error("the record of a commit is damaged", "piece", i, "err", err)
		}
		p.Names = append(p.Names, names...)
	}
}

// resolveSet finds out whether a set whose answer got lost was committed, and has
// the table say what the head has: what is collected next would be thrown away
// else.
func (e *engine) resolveSet(ctx context.Context) error {
	v := e.v
	v.puller.headLock.Lock()
	defer v.puller.headLock.Unlock()
	if err := e.resolveUnderHeadLock(ctx); err != nil {
		return err
	}
	store, ok := v.syncer()
	if !ok {
		return nil
	}
	return e.syncWithHead(ctx, store)
}

// syncWithHead is levelWith for a commit. puller.headLock is held.
func (e *engine) syncWithHead(ctx context.Context, store revisions) error {
	w := e.v.wait(nil, e.v.o.Patience)
	defer w.close()
	defer context.AfterFunc(ctx, w.close)()
	_, err := e.v.syncWith(w, store)
	return err
}

// resolveUnderHeadLock is resolveSet for who holds puller.headLock, but for the synced revision. A set that
// was collected and not sent yet is none any more then.
func (e *engine) resolveUnderHeadLock(ctx context.Context) error {
	p, ok := e.openSet()
	if !ok {
		return nil
	}
	if p.Op == "" {
		return e.dropSet(p)
	}
	// The set of an operation is committed once: this one cannot be, but tells
	// what became of the first.
	result, err := e.sets.Commit(ctx, providers.ChangeSet{Base: "wsmount: none", Op: p.Op})
	switch {
	case err == nil:
		return e.noteSet(p, result, false) // others may have been there meanwhile
	case maybe(err):
		return err
	}
	return e.dropSet(p)
}
