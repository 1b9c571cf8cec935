package providers

import (
	"context"
	"time"
)

// Brancher keeps commits apart from the tracked branch, on branches of its own, until they are
// merged into it.
//
// On such a branch, Push without a name sends to it, and nothing as long as all commits are in
// the tracked branch already. Fetch asks for the branch that the head was pushed to, and for
// the tracked one before the first push and once the pushed commits have been merged: pushed
// commits are never rewritten because of changes to the tracked branch by others.
type Brancher interface {
	// Branches is the present branch, and the unmerged ones. It asks no remote.
	Branches(ctx context.Context) (Branches, error)
	// Begin is the revision from which a branch continues: the branch's own, local or remote,
	// if the tracked branch lacks some of its commits, else the tracked branch's; "" where
	// neither has a revision yet. With ask the remote is asked first, and missing commits are
	// fetched; without, the local state decides.
	Begin(ctx context.Context, branch string, ask bool) (Revision, error)
	// Start switches to a branch, and makes reads show to instead of from, in one step and with
	// the errors of Adopt; "" is the tracked branch, as for Begin. A name that git does not
	// accept, or the tracked branch's, is ErrInvalid. As long as there is no revision at all it
	// does nothing: the first one goes to the tracked branch.
	Start(ctx context.Context, branch string, from, to Revision) error
	// Propose finds or opens the pull request from a branch to the tracked one, and gives its
	// URL; "" when there is nothing to merge. The wish for one is recorded, so that a failed
	// attempt shows in Branches until another succeeds. ErrInvalid for the tracked branch;
	// ErrUnsupported where the service has no pull requests.
	Propose(ctx context.Context, branch string, pr PullRequest) (url string, err error)
}

// Branches is the state of a Brancher.
type Branches struct {
	On      string   // "": the tracked branch
	Tracked string   // its name
	Tip     Revision // its last known revision; "": none
	// Unpushed counts the commits in the head's history that the remote is not known to have.
	Unpushed int
	// Unmerged are the branches with commits that the tracked one lacks, by name, and the
	// tracked one itself if a push to it was refused. A branch that was pushed in full and then
	// deleted at the remote is not among them.
	Unmerged []Branch
}

// Branch is the known state of a branch.
type Branch struct {
	Name     string
	Revision Revision // the local one
	Commits  int      // that the tracked branch lacks
	Pushed   bool     // the remote has all of them
	// Refused is why the remote refused the last push, if it did.
	Refused Refusal
	URL     string    // of its pull request, once there is one
	Wanted  time.Time // since when there should be one, while there is none
}

// Refusal is why a remote refused a push. The zero Refusal is none.
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

// RetryAfter is an error's cause that tells when to try again.
type RetryAfter interface {
	error
	RetryAfter() time.Duration
}
