package providers

import (
	"context"
	"io"
	"time"
)

// Archive reads the state that a provider has kept in Settings.StateDir, while none is open on
// it and without asking the remote, whose address may have changed or whose credentials may be
// gone: to rescue commits that were never pushed. It is for one goroutine.
type Archive interface {
	// Unpushed are the branches with commits that the remote did not have by its last answer:
	// first the one that the head is on, then the others by name.
	Unpushed(ctx context.Context) ([]UnpushedBranch, error)
	// Has reports whether a local branch, or a known remote one, has a revision in its history.
	Has(r Revision) (bool, error)
	// Files visits each file and link, by its name, that unpushed commits of the head's branch
	// have made or changed, in the head's version. open gives its content, or the target of the
	// link, and fails with ErrNotExist where only the remote has that.
	Files(ctx context.Context, visit func(f Info, open Opener) error) error
	// Bundle has the unpushed commits of all branches as a git bundle (gitformat-bundle), from
	// which git fetches them into a clone that has their bases. The caller closes it.
	Bundle(ctx context.Context) (io.ReadCloser, error)
	// Large visits the content that unpushed commits keep outside of git (Git LFS) and that the
	// remote does not have, by its SHA-256 in hexadecimal digits.
	Large(ctx context.Context, visit func(sum string, open Opener) error) error
	Close() error
}

// Opener opens content, which the caller closes.
type Opener func() (io.ReadCloser, error)

// UnpushedBranch is a branch with commits that a remote does not have.
type UnpushedBranch struct {
	Name    string           `json:"name"`
	On      bool             `json:"on,omitempty"` // the head is on it
	Commits []UnpushedCommit `json:"commits"`      // the last first
}

// UnpushedCommit is a commit that a remote does not have.
type UnpushedCommit struct {
	Revision Revision  `json:"revision"`
	Author   string    `json:"author"` // name and e-mail address
	Time     time.Time `json:"time"`   // when it was made
	Subject  string    `json:"subject"`
}
