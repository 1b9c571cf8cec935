package providers

import (
	"context"
	"time"
)

// Brancher keeps what is committed apart from the tracked branch, on branches of
// its own, until somebody merges them there.
//
// On such a branch, Push without a name sends to it, and nothing as long as all
// is in the tracked branch already. Fetch asks for the branch that the head was
// pushed to, and for the tracked one before the first push and once what was
// pushed has been merged: what was pushed is never rewritten for the sake of what
// others do to the tracked branch.
type Brancher interface {
	// Branches says where the provider is, and what is not merged. It asks
	// nobody.
	Branches(ctx context.Context) (Branches, error)
	// Begin says where a branch begins: where it is already, here or at the
	// remote, if the tracked branch lacks something of it, else where the
	// tracked branch is; "" where there is nothing yet. With ask the remote is
	// asked before, and what is missing comes here; without, it is as far as is
	// known.
	Begin(ctx context.Context, branch string, ask bool) (Revision, error)
	// Start goes to a branch, and makes reads show to instead of from, in one
	// step and with the errors of Adopt; "" is the tracked branch, here and for
	// Begin. A name that git does not take, or the
	// tracked branch's, is ErrInvalid. As long as there is no revision at all it
	// does nothing: the first one goes to the tracked branch.
	Start(ctx context.Context, branch string, from, to Revision) error
	// Propose finds or opens the pull request from a branch to the tracked one,
	// and gives its URL; "" when there is nothing to merge. It is remembered
	// that one is wanted, so that an attempt which failed shows in Branches
	// until another succeeds. ErrInvalid for the tracked branch; ErrUnsupported
	// where there is no such thing.
	Propose(ctx context.Context, branch string, pr PullRequest) (url string, err error)
}

// Branches is where a Brancher is.
type Branches struct {
	On      string   // "": the tracked branch
	Tracked string   // its name
	Tip     Revision // where that was when we last heard of it; "": nowhere
	// Unpushed is how many commits the head has in its history that the remote is not known
	// to have.
	Unpushed int
	// Unmerged are the branches with commits that the tracked one lacks, by
	// name, and the tracked one itself if a push to it was refused. A branch
	// that was pushed in full and then deleted at the remote is none of them.
	Unmerged []Branch
}

// Branch is what is known of one.
type Branch struct {
	Name     string
	Revision Revision // here
	Commits  int      // that the tracked branch lacks
	Pushed   bool     // the remote has all of them
	// Refused is what the remote had against the last push, if it refused it.
	Refused Refusal
	URL     string    // of its pull request, once there is one
	Wanted  time.Time // since when there should be one, while there is none
}

// Refusal is why a remote did not take a push. The zero Refusal is none.
type Refusal struct {
	Code  string // one of the Refused constants
	Says  string // the remote's words
	Since time.Time
}

// The codes of a Refusal, which are also Error.Code of the Push.
const (
	RefusedBranch   = "protected-branch"
	RefusedWorkflow = "workflows-permission"
	RefusedSize     = "file-size"
	RefusedSecret   = "secret"
	RefusedHook     = "hook"
	RefusedService  = "service" // it takes no pushes at all
	RefusedOther    = "refused"
)

// RetryAfter is an error's cause that knows when it is worth to try again.
type RetryAfter interface {
	error
	RetryAfter() time.Duration
}
