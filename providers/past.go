package providers

import (
	"context"
	"time"
)

// Snapshotter shows the past.
type Snapshotter interface {
	// At is the tree at a revision, for reading only: changes of it fail with
	// ErrReadOnly. What is the same in two revisions has versions that match.
	// ErrNotExist when the revision is not known here. The caller closes it.
	At(ctx context.Context, r Revision) (Provider, error)
	// Find is the revision of a name, or the only one whose name begins so, of
	// MinShort characters or more. ErrNotExist when none that is known here does;
	// ErrInvalid when several do, or when it is shorter and no whole name.
	Find(ctx context.Context, name string) (Found, error)
}

// MinShort is how many characters the beginning of a revision's name needs.
const MinShort = 4

// Found is a revision, and those that it was made of: what it changed is how it
// differs from the first.
type Found struct {
	Revision Revision
	Parents  []Revision
	Time     time.Time // when it was made; zero: nobody says
}

// Differ tells two revisions apart, in time that depends on what they have
// differently and not on the size of the tree.
type Differ interface {
	// Differences are the entries that two revisions have differently, by
	// Locator, so that a directory comes before what is in it. ErrNotExist for
	// a revision that is not known here.
	Differences(ctx context.Context, from, to Revision) ([]Difference, error)
}

// Difference is what two revisions have at one place, each as its List says it;
// nil: nothing. A directory that both have is none; all that is below one that
// only one has is.
type Difference struct {
	Locator Locator
	Was, Is *Info
}
