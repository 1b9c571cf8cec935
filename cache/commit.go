package cache

import (
	"context"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
)

// CommitOptions say what a commit is called where the remote has such things.
// The zero value works: the message describes the change.
type CommitOptions = pending.Description

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
	r.Conflicts = v.reportConflicts(r.Conflicts)
	return r, v.massDeleteKept(err)
}

// commitDue sends what differs now. What was left out for a reason that is gone by the
// end, as that a program was writing it, goes in another round.
func (v *Volume) commitDue(ctx context.Context, o CommitOptions) (r CommitReport, err error) {
	locked := v.lock()
	due := v.pending.Newest()
	locked.unlock()
	for idle := 0; ; {
		next, err := v.committer.Commit(ctx, o, due)
		if err != nil && err == context.Cause(ctx) { // of a set; never wrapped
			err = v.late(err)
		}
		if idle++; next.Changes > 0 {
			idle = 0
		}
		if r.Add(next); err != nil || idle > 1 || !slices.ContainsFunc(r.HeldBack, HeldBack.IsPending) {
			return r, err
		}
	}
}

// A Committer sends what is pending: name by name, or as change sets. All of it but Commit is
// called with the lock.
type Committer interface {
	// Look has what is due begin.
	Look(v *tree.View)
	// Commit sends what differs up to a place in the order, and returns when the remote has it
	// or will not take it.
	Commit(ctx context.Context, o CommitOptions, due uint64) (CommitReport, error)
	// IsAsked reports whether a commit was asked for that is no waiter of what is pending.
	IsAsked() bool
	// Stopped is why nothing goes, whatever name it is; final says that another try will not
	// help.
	Stopped() (cause error, final bool)
	// Conflict tells commits under way that are no waiters of a conflict at a path, and
	// reports whether any will say so.
	Conflict(path string) (heard bool)
}

var _, _ Committer = (*engine)(nil), (*commit.Committer)(nil)

// Look implements Committer.
func (e *engine) Look(v *tree.View) { e.send.Look(v) }

// IsAsked, Stopped and Conflict implement Committer: its commits are waiters, and what stops
// it is known by name, or is a halt.
func (e *engine) IsAsked() bool                      { return false }
func (e *engine) Stopped() (cause error, final bool) { return nil, false }
func (e *engine) Conflict(string) (heard bool)       { return false }

// Commit implements Committer.
func (e *engine) Commit(ctx context.Context, _ CommitOptions, due uint64) (CommitReport, error) {
	v := e.v
	locked := v.lock()
	w, asked := &pending.Waiter{Commit: true, Names: map[table.Link]uint64{}}, map[table.Link]uint64{}
	v.pending.EachUpTo(locked.View, due, func(seq uint64, l table.Link) bool {
		asked[l] = seq
		if !v.pending.IsLeftAlone(locked.View, l) {
			w.Names[l] = seq
			e.send.Jobs().Forgive(locked.View, l)
		}
		return true
	})
	e.halt.err, e.halt.checked = nil, 0 // looked at anew
	e.send.Rouse()
	v.pending.Ask()
	v.pending.Add(locked.View, w)
	locked.unlock()
	stop := context.AfterFunc(ctx, func() {
		locked := v.lock()
		defer locked.unlock()
		v.pending.End(w, context.Cause(ctx))
	})
	defer stop()
	err := v.late(v.waitFor(nil, w))
	locked = v.lock()
	if err == nil {
		err = e.halt.err
	}
	locked.unlock()
	r := v.reportOf(asked)
	locked = v.lock()
	r.Conflicts = pending.Paths(r.Conflicts, w.Conflicts)
	locked.unlock()
	return r, err
}
