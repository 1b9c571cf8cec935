package providers

import (
	"context"
)

// Pusher sends what was committed to where others see it.
type Pusher interface {
	// Push sends the head, with the history that it has, to opts.Branch of the
	// remote. A branch that is not there is made. ErrConflict, and nothing
	// happened, when that would undo what others did: the remote's branch is
	// no part of the head's history, or it is the tracked branch and is gone
	// since we last heard of it. Fetch, then decide. Nothing to send is no
	// error, so that a Push whose answer got lost can be repeated.
	// ErrNotExist before the first revision; ErrUnsupported for a
	// PullRequest where there is no such thing.
	Push(ctx context.Context, opts PushOptions) (PushResult, error)
}

// PushOptions: the zero value pushes to the branch that the provider is on.
type PushOptions struct {
	Branch string   // "": the tracked one, or that of Brancher.Start
	Lease  Revision // overwrite, but only this revision (else ErrConflict); "": never overwrite
	// PullRequest asks to find or open one from Branch to the tracked branch.
	PullRequest *PullRequest
	// Sent is told of bytes that go out, how many, and of those that turn out to be
	// there already, so that who waits knows that a Push goes on which takes long;
	// nil: nobody is. Any goroutine may call it.
	Sent func(n int)
}

// PullRequest is what a new pull request says.
type PullRequest struct{ Title, Text string }

// PushResult says what a Push did.
type PushResult struct {
	Revision Revision // what the remote's branch is at now
	Pushed   bool     // false: it was there already
	URL      string   // of the pull request, if one was asked for
}

// Syncer learns what others pushed.
type Syncer interface {
	// Fetch asks the remote and brings its tracked branch here, where At knows
	// it then. Reads and Head show what they showed before. ErrNotExist when
	// the remote has no such branch, because it is new or was deleted. An
	// unchanged remote costs one round trip.
	Fetch(ctx context.Context) (Revision, error)
	// Adopt makes reads show to instead of from, in one step. When the head is
	// at to already, that is no error. ErrConflict when it is not at from any
	// more, ErrNotExist for a to that is not known here. What only from had
	// stays known, and is not pushed any more.
	Adopt(ctx context.Context, from, to Revision) error
	// Base is the last revision that is in the histories of both a and b, or
	// "" when there is none: a when b only goes on from a. ErrNotExist for
	// a revision that is not known here.
	Base(ctx context.Context, a, b Revision) (Revision, error)
}

// Submoduler tells which directories of the tree are other repositories, as the
// submodules of git are. They have no entries here, nothing can be made in them, and
// they are neither moved nor removed.
type Submoduler interface {
	// Submodule is the first such directory at l or below it, in the tree that reads
	// show; ok is false when there is none. It asks no remote.
	Submodule(ctx context.Context, l Locator) (at Locator, ok bool, err error)
}

// Rebaser makes what was committed here anew on top of what others pushed.
type Rebaser interface {
	// Rebase makes each revision of from that neither base nor onto has anew, in
	// their order, the first on top of onto, with its message, authors and times.
	// It returns the last; one that changes nothing any more is left out, so that
	// can be onto. Reads and Head show what they showed before, until Adopt.
	// combine is asked for a file that both have changed. ErrConflict when it
	// has no answer, or both have changed what is no file; ErrUnsupported when
	// one of the revisions has not exactly one before it; ErrNotExist for one
	// that is not known here. Then nothing has happened.
	Rebase(ctx context.Context, base, from, onto Revision, combine Combine) (Revision, error)
}

// Combine is the content that a file gets whose content base became a in one
// revision and b in another; ok is false when only a person can say. It must
// not keep what it is given. union says that the file is declared to keep the lines of
// both, a's first.
type Combine func(base, a, b []byte, union bool) (content []byte, ok bool)
