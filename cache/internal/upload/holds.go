package upload

import (
	"errors"
	"fmt"
	"time"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Holds know why names are not sent. The reason why a name is held back is in its record, so that
// the next run knows it, and is told a person once.
type Holds struct {
	o    HoldsOptions
	told map[table.Link]string // the last told refusals, in this run; the lock guards it
}

// HoldsOptions are the parts that Holds work with.
type HoldsOptions struct {
	Tree   *tree.Tree
	Queue  *pending.Queue
	Jobs   *Jobs
	Volume Volume
	Now    func() time.Time
	// Stopped is the reason why no name at all is sent; final says that another try will not help.
	Stopped func(v *tree.View) (cause error, final bool)
}

// NewHolds has told nothing.
func NewHolds(o HoldsOptions) *Holds { return &Holds{o, map[table.Link]string{}} }

// Failure is the known reason why a name is not sent. final says that trying again will not help.
func (h *Holds) Failure(v *tree.View, l table.Link) (err error, final bool) { // the error is the subject here
	if err, final = h.o.Jobs.Failure(v, l); err != nil {
		return err, final
	}
	return h.o.Stopped(v)
}

// Of says why a name was not sent.
func (h *Holds) Of(v *tree.View, l table.Link) pending.HeldBack {
	rec, of := v.Record(l), pending.HeldBack{Path: v.PathFor(l), Reason: pending.OnItsWay}
	if err, _ := h.Failure(v, l); err != nil {
		of.Reason, of.Conflict = providers.Nameless(err, of.Path).Error(), errors.Is(err, providers.ErrConflict)
	}
	if rec.Held != nil {
		of.Reason, of.Conflict = rec.Held.Reason, of.Conflict || rec.Held.Conflict
	}
	n := v.Inode(rec.Ino)
	switch {
	case h.o.Queue.IsBeingWritten(v, rec):
		of.Reason = "a program is writing it"
	case n != nil && n.Suspect:
		of.Reason = ErrSuspect.Error()
	}
	return of
}

// Hold holds a name back that was not tried.
func (h *Holds) Hold(l table.Link, err error) {
	refusal := pending.RefusalOf(err)
	retry := !errors.Is(err, providers.ErrConflict) && (refusal == nil || refusal.Passes) // else it waits for a change
	v := h.o.Tree.Lock()
	t := h.o.Jobs.Hold(v, l, err, h.o.Now(), retry)
	h.o.Queue.Review(v)
	h.o.Tree.Unlock()
	h.Record(t)
}

// Resume holds a name back as the last run did.
func (h *Holds) Resume(v *tree.View, l table.Link, held *table.Held) {
	err := errors.New(held.Reason)
	if held.Conflict {
		err = fmt.Errorf("%w: %s", providers.ErrConflict, held.Reason)
	}
	h.o.Jobs.Hold(v, l, err, h.o.Now(), !held.Conflict)
}

// Record records why a name is held back, and tells. By now the job may have been asked for again,
// or run: then there is nothing to record yet.
func (h *Holds) Record(t *Job) {
	var what, path string
	var cause error
	told := false
	err := h.o.Volume.Update(func(tx Tx) error {
		rec := tx.Record(t.Link)
		if rec.Seq == 0 || !h.o.Jobs.IsHeld(tx.View, t) {
			return ErrMoot
		}
		what, path, cause = t.Op.Verb.String(), tx.PathFor(t.Link), t.Err
		reason, conflict := providers.Nameless(cause, path).Error(), errors.Is(cause, providers.ErrConflict)
		if rec.Held != nil && rec.Held.Conflict && conflict {
			return nil // the decision that made the conflict has recorded it
		}
		refusal := pending.RefusalOf(cause)
		if rec.Held != nil && rec.Held.Reason == reason && refusal != nil {
			return ErrMoot // a commit that was asked for has it looked at anew, and it would be told each time
		}
		rec.Held = &table.Held{Reason: reason, Conflict: conflict}
		tx.SetName(t.Link, rec)
		told = refusal != nil && refusal.Asked && h.told[t.Link] == refusal.Error()
		if refusal != nil && refusal.Asked { // the remote says it each time
			h.told[t.Link] = refusal.Error()
		}
		return nil
	})
	if err == nil && !told {
		h.o.Volume.Report(what, path, cause)
	}
}
