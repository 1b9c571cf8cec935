package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// CommitOptions say what a commit is called where the backend has such things.
// The zero value works: the message describes the change.
type CommitOptions struct {
	Message   string
	Author    providers.Identity
	CoAuthors []providers.Identity
	Trailers  []providers.Trailer
}

// CommitReport says what a Commit did.
type CommitReport struct {
	Revision  providers.Revision // "" where the backend has none
	Committed bool               // something was sent
	Changes   int                // names that were sent
	HeldBack  []HeldBack
	Conflicts []string // paths that another had changed too: held back, or decided by Policy.Conflict
	Pushed    bool
	PushError error // the commit is there, and was not pushed
}

// add takes in what the next commit did.
func (r *CommitReport) add(next CommitReport) {
	next.Committed = next.Committed || r.Committed
	next.Changes += r.Changes
	next.Conflicts = names(r.Conflicts, next.Conflicts)
	*r = next
}

// HeldBack is a change that the backend does not have, and why.
type HeldBack struct {
	Path     string
	Reason   string
	Conflict bool
}

// Commit sends all that differs at the time of the call, and returns when the
// backend has it or will not take it; what is changed meanwhile waits for the
// next one. Files that a program is writing are left alone, unless their content is on
// its way already. It fails when the backend cannot be reached for Options.Patience, and
// with ErrHalted; what is held back is in the report, and no error.
func (v *Volume) Commit(ctx context.Context, o CommitOptions) (CommitReport, error) {
	if v.o.ReadOnly {
		return CommitReport{}, fs.ErrReadOnly
	}
	r, err := v.commitDue(ctx, o)
	r.Conflicts = v.tellMissed(r.Conflicts)
	return r, v.haltKept(err)
}

// commitDue sends what differs now. What was left out for a reason that is gone by the
// end, as that a program was writing it, goes in another round.
func (v *Volume) commitDue(ctx context.Context, o CommitOptions) (r CommitReport, err error) {
	v.mu.Lock()
	due := v.engine.last
	v.mu.Unlock()
	for idle := 0; ; {
		next, err := v.commitRound(ctx, o, due)
		if idle++; next.Changes > 0 {
			idle = 0
		}
		if r.add(next); err != nil || idle > 1 || !slices.ContainsFunc(r.HeldBack, HeldBack.isPending) {
			return r, err
		}
	}
}

// commitRound sends what differs up to a place in the order.
func (v *Volume) commitRound(ctx context.Context, o CommitOptions, due uint64) (CommitReport, error) {
	if v.engine.sets != nil {
		return v.commitSet(ctx, o, due)
	}
	return v.commitNames(ctx, due)
}

// commitNames is commitRound where each name goes by itself.
func (v *Volume) commitNames(ctx context.Context, due uint64) (CommitReport, error) {
	e := &v.engine
	v.mu.Lock()
	c, asked := &closer{commit: true, names: map[table.Link]uint64{}}, map[table.Link]uint64{}
	v.table.Dirty(0, func(seq uint64, l table.Link) bool {
		if seq > due {
			return false
		}
		asked[l] = seq
		if !e.isLeftAlone(l) {
			c.names[l] = seq
			e.forgive(l)
		}
		return true
	})
	e.halt, e.checked = nil, 0 // looked at anew
	e.rouse()
	e.ask()
	e.add(c)
	v.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { e.giveUp(c, context.Cause(ctx)) })
	defer stop()
	err := v.late(v.waitFor(nil, c))
	v.mu.Lock()
	if err == nil {
		err = e.halt
	}
	v.mu.Unlock()
	r := v.reportOf(asked)
	v.mu.Lock()
	r.Conflicts = names(r.Conflicts, c.clashes)
	v.mu.Unlock()
	return r, err
}

// late says why what was waited for was not done in time.
func (v *Volume) late(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("not all was sent in time: %s (%w)", cmp.Or(v.Status().LastError, "the backend has not answered yet"), err)
}

// giveUp ends the waiting of a closer.
func (e *engine) giveUp(c *closer, err error) {
	e.v.mu.Lock()
	defer e.v.mu.Unlock()
	if !c.over {
		e.tell(c, err)
	}
}

// beingWritten reports whether a name's content is left alone because a program
// is writing it. mu is held.
func (e *engine) beingWritten(rec table.Name) bool {
	n := e.v.table.Inode(rec.Ino)
	return n != nil && rec.Attempt == nil && carries(rec, n) && e.isOpen(rec.Ino, n)
}

// isLeftAlone reports whether a name waits for a program that writes it: what is on its
// way does not. mu is held.
func (e *engine) isLeftAlone(l table.Link) bool {
	return e.busy[l] == nil && e.beingWritten(e.record(l))
}

// reportOf says what has become of names.
func (v *Volume) reportOf(asked map[table.Link]uint64) CommitReport {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := CommitReport{Revision: v.engine.revision}
	for l, limit := range asked {
		rec, _ := v.table.Name(l.Dir, l.Name)
		if rec.Seq == 0 || rec.Seq > limit {
			r.Changes++
			continue
		}
		h := v.engine.heldBack(l, rec)
		r.HeldBack = append(r.HeldBack, h)
		if h.Conflict {
			r.Conflicts = append(r.Conflicts, h.Path)
		}
	}
	r.Committed = r.Changes > 0
	return r
}

// clashed tells the Commits that wait which of the names that they asked for are
// in conflict: what is decided at once is not held back, and yet they are to say
// so. missed are the paths that none of them asked for. mu is held, in the update
// that decides.
func (e *engine) clashed(all []clash) (missed []string) {
	for _, clash := range all {
		heard := false
		for c := range e.closers {
			if _, waits := c.names[clash.Link]; waits {
				c.clashes = append(c.clashes, clash.path)
				heard = heard || c.commit
			}
		}
		if e.sending && len(e.requests) > 0 {
			r := e.requests[0]
			r.clashes = append(r.clashes, clash.path)
			heard = true
		}
		if !heard {
			missed = append(missed, clash.path)
		}
	}
	return missed
}

// names are those of both lists, in order, each once.
func names(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// onItsWay is the reason of what nothing is known to keep back.
const onItsWay = "on its way, or waits for what it depends on"

func (h HeldBack) isPending() bool { return h.Reason == onItsWay }

// heldBack says why a name was not sent. mu is held.
func (e *engine) heldBack(l table.Link, rec table.Name) HeldBack {
	h := HeldBack{Path: e.v.pathFor(l), Reason: onItsWay}
	if err, _ := e.failure(l); err != nil {
		h.Reason, h.Conflict = err.Error(), errors.Is(err, providers.ErrConflict)
	}
	if rec.Held != nil {
		h.Reason, h.Conflict = rec.Held.Reason, h.Conflict || rec.Held.Conflict
	}
	n := e.v.table.Inode(rec.Ino)
	switch {
	case e.beingWritten(rec):
		h.Reason = "a program is writing it"
	case n != nil && n.Suspect:
		h.Reason = errSuspect.Error()
	}
	return h
}
