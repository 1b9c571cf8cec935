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

// CommitOptions describe a commit, where the remote stores a description. The zero value works:
// the message lists the changes.
type CommitOptions = pending.Description

// CommitReport says what a Commit did.
type CommitReport = pending.Report

// HeldBack is a change that the remote does not have, and why.
type HeldBack = pending.HeldBack

// Commit sends all names that differ at the time of the call, and returns when the remote has them
// or will not take them; later changes wait for the next commit. Files that a program is writing
// are left alone, unless their content is being sent already. It fails when the remote cannot be
// reached for Options.Patience, and with ErrMassDelete; changes that are held back are in the
// report, and no error.
func (v *Volume) Commit(ctx context.Context, o CommitOptions) (CommitReport, error) {
	if v.o.ReadOnly {
		return CommitReport{}, fs.ErrReadOnly
	}
	done, err := v.enter()
	if err != nil {
		return CommitReport{}, err
	}
	defer done()
	r, err := v.commitDue(ctx, o)
	r.Conflicts = v.merger.ReportConflicts(r.Conflicts)
	return r, errors.Join(err, v.keepMassDeletes())
}

// commitDue sends the names that differ now. Names that were left out for a reason that is gone by
// the end, such as a program that was writing, are sent in another round.
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

// A Committer sends the dirty names: name by name, or as change sets.
type Committer interface {
	// Look starts sending if names are due.
	Look(v *tree.View)
	// Commit sends the dirty names up to the seq due, and returns when the remote has them or will
	// not take them.
	Commit(ctx context.Context, o CommitOptions, due uint64) (CommitReport, error)
	// IsAsked reports whether a commit was asked for that is not among the waiters of the queue.
	IsAsked(*tree.View) bool
	// Stopped is the reason why nothing is sent, whichever name it is about; final says that
	// another try will not help.
	Stopped(*tree.View) (cause error, final bool)
	// Conflict tells commits under way that are not among the waiters of the queue of a conflict
	// at a path, and reports whether any will report it.
	Conflict(v *tree.View, path string) (heard bool)
}

var _, _ Committer = (*upload.Committer)(nil), (*commit.Committer)(nil)
