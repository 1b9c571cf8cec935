package providers

import (
	"context"
)

// Pusher sends commits to a remote, where others see them.
type Pusher interface {
	// Push sends the head, with the history that it has, to opts.Branch of the remote. A
	// missing branch is made. ErrConflict, and nothing happened, when that would undo changes
	// of others: the remote's branch is no part of the head's history, or it is the tracked
	// branch and is gone since the last answer. Fetch, then decide. Nothing to send is no
	// error, so that a Push whose answer got lost can be repeated. ErrNotExist before the first
	// revision; ErrUnsupported for a PullRequest where the service has none.
	Push(ctx context.Context, opts PushOptions) (PushResult, error)
}

// PushOptions: the zero value pushes to the branch that the provider is on.
type PushOptions struct {
	Branch string   // "": the tracked one, or that of Brancher.Start
	Lease  Revision // overwrite, but only this revision (else ErrConflict); "": never overwrite
	// PullRequest asks to find or open one from Branch to the tracked branch.
	PullRequest *PullRequest
	// Sent is called with the number of bytes sent, and of those that the remote turns out to
	// have already, so that a waiting caller sees the progress of a long Push; nil: not called.
	// Any goroutine may call it.
	Sent func(n int)
}

// PullRequest is the text of a new pull request.
type PullRequest struct{ Title, Text string }

// PushResult is the result of a Push.
type PushResult struct {
	Revision Revision // the present one of the remote's branch
	Pushed   bool     // false: the remote had it already
	URL      string   // of the pull request, if one was asked for
}

// Syncer gets the commits that others pushed.
type Syncer interface {
	// Fetch asks the remote and fetches its tracked branch, so that At knows it. Reads and Head
	// stay at the revision before. ErrNotExist when the remote has no such branch, because it
	// is new or was deleted. An unchanged remote costs one round trip.
	Fetch(ctx context.Context) (Revision, error)
	// Adopt makes reads show to instead of from, in one step. When the head is at to already,
	// that is no error. ErrConflict when it is not at from any more, ErrNotExist for a to that
	// is not known locally. Revisions that only from had stay known, and are not pushed any
	// more.
	Adopt(ctx context.Context, from, to Revision) error
	// Base is the last revision that is in the histories of both a and b, or "" when there is
	// none: a when b is based on a. ErrNotExist for a revision that is not known locally.
	Base(ctx context.Context, a, b Revision) (Revision, error)
}

// Submoduler tells which directories of the tree are other repositories, as the submodules of
// git are. They have no entries in this provider, nothing can be made in them, and they are
// neither moved nor removed.
type Submoduler interface {
	// Submodule is the first such directory at l or below it, in the tree that reads
	// show; ok is false when there is none. It asks no remote.
	Submodule(ctx context.Context, l Locator) (at Locator, ok bool, err error)
}

// Rebaser makes local commits anew on top of those that others pushed.
type Rebaser interface {
	// Rebase makes each revision of from that neither base nor onto has anew, in their order,
	// the first on top of onto, with its message, authors and times. It returns the last; one
	// that changes nothing any more is left out, so the result can be onto. Reads and Head stay
	// at the revision before, until Adopt. combine is called for a file that both have changed.
	// ErrConflict when its ok is false, or both have changed an entry that is no file;
	// ErrUnsupported when one of the revisions has not exactly one parent; ErrNotExist for one
	// that is not known locally. Then nothing has happened.
	Rebase(ctx context.Context, base, from, onto Revision, combine Combine) (Revision, error)
}

// Combine is the content that a file gets whose content base became a in one revision and b in
// another; ok is false when only a person can decide. It must not keep its arguments. union:
// the file is declared to keep the lines of both, a's first.
type Combine func(base, a, b []byte, union bool) (content []byte, ok bool)
