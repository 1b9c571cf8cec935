package cache

import (
	"context"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/pending"
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
		next, err := v.committer.commit(ctx, o, due)
		if idle++; next.Changes > 0 {
			idle = 0
		}
		if r.add(next); err != nil || idle > 1 || !slices.ContainsFunc(r.HeldBack, HeldBack.isPending) {
			return r, err
		}
	}
}

// A committer sends what is pending: name by name, or as sets.
type committer interface {
	// look has what is due begin. The loop of the engine calls it.
	look()
	// commit sends what differs up to a place in the order, and returns when the backend
	// has it or will not take it.
	commit(ctx context.Context, o CommitOptions, due uint64) (CommitReport, error)
	status(v *View, s *Status)

	// For what waits: isAsked reports whether a commit was asked for that is no waiter, and
	// stopped is why nothing goes at all, whatever name it is; final says that another try
	// will not help.
	isAsked() bool
	stopped() (cause error, final bool)
	// conflict tells the commits under way of one, and reports whether any will say so.
	conflict(l table.Link, path string) (heard bool)
}

var _, _ committer = (*engine)(nil), (*setCommitter)(nil)

// commit implements committer.
func (e *engine) commit(ctx context.Context, _ CommitOptions, due uint64) (CommitReport, error) {
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
	r.Conflicts = names(r.Conflicts, w.Conflicts)
	locked.unlock()
	return r, err
}
