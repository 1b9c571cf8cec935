package cache

import (
	"context"
	"errors"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/fs"
)

// CommitOptions say what a commit is called where the remote has such things.
// The zero value works: the message describes the change.
type CommitOptions = pending.Description

// CommitReport says what a Commit did.
type CommitReport = pending.Report

// HeldBack is a change that the remote does not have, and why.
type HeldBack = pending.HeldBack

// Commit sends all that differs at the time of the call, and returns when the
// remote has it or will not take it; what is changed meanwhile waits for the
// next one. Files that a program is writing are left alone, unless their content is on
// its way already. It fails when the remote cannot be reached for Options.Patience, and
// with ErrHalted; what is held back is in the report, and no error.
func (v *Volume) Commit(ctx context.Context, o CommitOptions) (CommitReport, error) {
	if v.o.ReadOnly {
		return CommitReport{}, fs.ErrReadOnly
	}
	r, err := v.commitDue(ctx, o)
	r.Conflicts = v.merger.ReportConflicts(r.Conflicts)
	return r, errors.Join(err, v.keepMassDeletes())
}

// commitDue sends what differs now. What was left out for a reason that is gone by the
// end, as that a program was writing it, goes in another round.
func (v *Volume) commitDue(ctx context.Context, o CommitOptions) (r CommitReport, err error) {
	locked := v.lock()
	due := v.pending.Newest(locked.View)
	locked.unlock()
	for idle := 0; ; {
		next, err := v.committer.Commit(ctx, o, due)
		if err != nil && err == context.Cause(ctx) { // of a set; never wrapped
			err = v.sent.Late(err)
		}
		if idle++; next.Changes > 0 {
			idle = 0
		}
		if r.Add(next); err != nil || idle > 1 || !slices.ContainsFunc(r.HeldBack, HeldBack.IsPending) {
			return r, err
		}
	}
}

// A Committer sends what is pending: name by name, or as change sets.
type Committer interface {
	// Look has what is due begin.
	Look(v *tree.View)
	// Commit sends what differs up to a place in the order, and returns when the remote has it
	// or will not take it.
	Commit(ctx context.Context, o CommitOptions, due uint64) (CommitReport, error)
	// IsAsked reports whether a commit was asked for that is no waiter of what is pending.
	IsAsked(*tree.View) bool
	// Stopped is why nothing goes, whatever name it is; final says that another try will not
	// help.
	Stopped(*tree.View) (cause error, final bool)
	// Conflict tells commits under way that are no waiters of a conflict at a path, and
	// reports whether any will say so.
	Conflict(v *tree.View, path string) (heard bool)
}

var _, _ Committer = (*upload.Committer)(nil), (*commit.Committer)(nil)
