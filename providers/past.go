package providers

import (
	"context"
	"time"
)

// Snapshotter shows past revisions.
type Snapshotter interface {
	// At is the tree at a revision, for reading only: changes of it fail with ErrReadOnly. An
	// entry that is the same in two revisions has versions that match. ErrNotExist when the
	// revision is not known locally. The caller closes it.
	At(ctx context.Context, r Revision) (Provider, error)
	// Find is the revision with a name, or the only one whose name begins so, of MinShort
	// characters or more. ErrNotExist when no locally known one does; ErrInvalid when several
	// do, or when it is shorter and no whole name.
	Find(ctx context.Context, name string) (Found, error)
}

// MinShort is the least length of an abbreviated revision name, in characters.
const MinShort = 4

// Found is a revision with its parents: its changes are the difference from the first parent.
type Found struct {
	Revision Revision
	Parents  []Revision
	Time     time.Time // when it was made; zero: unknown
}

// Differ compares two revisions, in time that depends on their difference and not on the size
// of the tree.
type Differ interface {
	// Differences are the entries that differ between two revisions, by Locator, so that a
	// directory comes before its entries. ErrNotExist for a revision that is not known locally.
	Differences(ctx context.Context, from, to Revision) ([]Difference, error)
}

// Difference is the entries of two revisions at one place, each as List reports it; nil: none.
// A directory in both is no Difference; below a directory in only one, every entry is.
type Difference struct {
	Locator Locator
	Was, Is *Info
}
