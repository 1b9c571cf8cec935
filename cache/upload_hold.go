package cache

import (
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/cache/internal/commit"
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
		if !ok || rec.Seq == 0 || !e.send.Jobs().IsHeld(t) {
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
	g := commit.RefusalOf(err)
	retry := !isConflict(err) && (g == nil || g.Passes) // else it waits for a change
	locked := e.v.lock()
	t := e.send.Jobs().Hold(locked.View, l, err, e.v.o.Now(), retry)
	e.v.pending.Review(locked.View)
	locked.unlock()
	e.hold(t)
}

// heldError is the error of a name that was held in another run.
func heldError(h *table.Held) error {
	if h.Conflict {
		return fmt.Errorf("%w: %s", providers.ErrConflict, h.Reason)
	}
	return errors.New(h.Reason)
}
