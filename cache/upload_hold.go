package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// hold records why a name is held back, and tells. By now the job may have been
// asked for again, or run: then there is nothing to record yet.
func (e *engine) hold(t *upload.Job) {
	v := e.v
	var what, path string
	var cause error
	told := false
	err := e.v.updateOwn(func(v *Tx) error {
		rec, ok := v.table.Name(t.Link.Dir, t.Link.Name)
		if !ok || rec.Seq == 0 || !e.jobs.IsHeld(t) {
			return upload.ErrMoot
		}
		what, path, cause = t.Op.Verb.String(), v.PathFor(t.Link), t.Err
		conflict := errors.Is(cause, providers.ErrConflict)
		if rec.Held != nil && rec.Held.Conflict && conflict {
			return nil // who decided that wrote it down
		}
		if toldAgain(rec, cause) {
			return upload.ErrMoot
		}
		rec.Held = &table.Held{Reason: cause.Error(), Conflict: conflict}
		v.table.SetName(t.Link.Dir, t.Link.Name, rec)
		told = e.toldBefore(v.View, t.Link, cause)
		return nil
	})
	if err == nil && !told {
		v.report(what, path, cause)
	}
}

// holdName holds one name back.
func (e *engine) holdName(l table.Link, err error) {
	g := guardOf(err)
	retry := !isConflict(err) && (g == nil || g.passes) // else it waits for a change
	locked := e.v.lock()
	t := e.jobs.Hold(locked.View, l, err, e.v.o.Now(), retry)
	e.v.pending.Review(locked.View)
	locked.unlock()
	e.hold(t)
}

// lostRace reports whether another change was there first.
func lostRace(err error) bool { return upload.IsLost(err) && !passing(err) }

// yieldTo has the conflict policy decide about a change that came too late.
func (e *engine) yieldTo(ctx context.Context, t *upload.Job, cause error) error {
	if e.jobs.Lose(t) {
		locked := e.v.lock()
		sides := t.Op.Sides(locked.View)
		locked.unlock()
		e.v.o.Log.Warn("a change keeps being overtaken by others", "change", t.Op.String(), "names", sides)
		return fmt.Errorf("%w: %v", errContended, cause) // nobody need decide: it is tried again later
	}
	if t.Op.Verb == upload.VerbDelete && errors.Is(cause, providers.ErrNotEmpty) {
		return e.exec.Resurrect(t.Op.Link, cause)
	}
	for _, l := range t.Op.Lost(cause) {
		if err := e.v.preconditionFailed(ctx, l, cause); err != nil {
			return err
		}
	}
	return upload.ErrAgain
}

// heldError is the error of a name that was held in another run.
func heldError(h *table.Held) error {
	if h.Conflict {
		return fmt.Errorf("%w: %s", providers.ErrConflict, h.Reason)
	}
	return errors.New(h.Reason)
}
