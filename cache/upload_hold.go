package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// hold records why a name is held back, and tells. By now the job may have been
// asked for again, or run: then there is nothing to record yet.
func (e *engine) hold(t *job) {
	v := e.v
	var what, path string
	var cause error
	told := false
	err := e.v.updateOwn(func(v *Tx) error {
		rec, ok := v.table.Name(t.link.Dir, t.link.Name)
		if !ok || rec.Seq == 0 || e.jobs.of[t.link] != t || t.state != jobHeld {
			return upload.ErrMoot
		}
		what, path, cause = t.op.Verb.String(), v.PathFor(t.link), t.err
		conflict := errors.Is(cause, providers.ErrConflict)
		if rec.Held != nil && rec.Held.Conflict && conflict {
			return nil // who decided that wrote it down
		}
		if toldAgain(rec, cause) {
			return upload.ErrMoot
		}
		rec.Held = &table.Held{Reason: cause.Error(), Conflict: conflict}
		v.table.SetName(t.link.Dir, t.link.Name, rec)
		told = e.toldBefore(v.View, t.link, cause)
		return nil
	})
	if err == nil && !told {
		v.report(what, path, cause)
	}
}

// holdName holds one name back.
func (e *engine) holdName(l table.Link, err error) {
	t := &job{link: l, err: err, state: jobHeld, op: &upload.Operation{Verb: upload.VerbWrite, Link: l}}
	locked := e.v.lock()
	t.tried = aspectOf(locked, l)
	if g := guardOf(err); !isConflict(err) && (g == nil || g.passes) { // else it waits for a change
		t.again = e.v.o.Now().Add(holdFor)
	}
	e.jobs.of[l] = t
	e.v.pending.Review(locked.View)
	locked.unlock()
	e.hold(t)
}

// lostRace reports whether another change was there first.
func lostRace(err error) bool { return upload.IsLost(err) && !passing(err) }

// yieldTo has the conflict policy decide about a change that came too late.
func (e *engine) yieldTo(ctx context.Context, t *job, cause error) error {
	t.losses++
	if t.losses > maxTries {
		e.v.o.Log.Warn("a change keeps being overtaken by others", "change", t.op.String(), "names", e.v.sides(t.op.Names()))
		return fmt.Errorf("%w: %v", errContended, cause) // nobody need decide: it is tried again later
	}
	if t.op.Verb == upload.VerbDelete && errors.Is(cause, providers.ErrNotEmpty) {
		return e.exec.Resurrect(t.op.Link, cause)
	}
	for _, l := range t.op.Lost(cause) {
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

// sides tells, for the log, what is here under some names and what the backend
// was last known to have.
func (v *Volume) sides(names []table.Link) string {
	locked := v.lock()
	defer locked.unlock()
	var text strings.Builder
	for _, l := range names {
		rec, _ := locked.table.Name(l.Dir, l.Name)
		at, _ := locked.RemotePath(l)
		fmt.Fprintf(&text, "%s here %d", at, rec.Ino)
		if n := locked.table.Inode(rec.Ino); n != nil {
			fmt.Fprintf(&text, " (generation %d of %d, state %d, at %v)", n.ContentVersion, n.Origin.ContentVersion, n.State, n.RemoteLinks)
		}
		if b := rec.Remote; b != nil {
			fmt.Fprintf(&text, " there %d (generation %d, %+v)", b.Ino, b.ContentVersion, b.Version)
		}
		if rec.Attempt != nil {
			fmt.Fprintf(&text, " attempt %+v", *rec.Attempt)
		}
		text.WriteString("; ")
	}
	return text.String()
}
