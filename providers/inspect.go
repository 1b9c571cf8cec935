package providers

import (
	"context"
	"io"
	"time"
)

// Inspector is a provider whose service has programs of its own that look at a
// tree of files, as git does: what they need is shown beside the tree, and cannot
// be changed.
type Inspector interface {
	// Inspect shows it for a working copy of the provider at a path, in which
	// something else stands at covered paths. It does no work yet.
	Inspect(root string, covered []string, work Changes) Inspection
}

// Changes are the paths at which a working copy may differ from the head, those
// of directories that may differ as a whole included, and what it has that never
// goes to the backend: never one too few.
type Changes func(ctx context.Context) (head Revision, paths []string, err error)

// Inspection is what an Inspector shows. Show may be called from many goroutines.
type Inspection struct {
	// Names are those in the root of the tree which the programs look for, each
	// with the path in Show that it leads to. A file is listed, a directory is not.
	Names map[string]string

	// Show says what is at a slash-separated path. The error is ErrNotExist when
	// nothing is there.
	Show func(ctx context.Context, path string) (Exhibit, error)
}

// Exhibit is a file or a directory of an Inspection.
type Exhibit struct {
	Names []string // what is in a directory, those of directories with a slash at the end; nil in a file
	Size  int64    // of a file
	Time  time.Time

	// Version is that of the content of a file; "" when it is made anew each time.
	Version string

	// Lasting says that the path will never lead to anything else, unless to
	// nothing.
	Lasting bool

	// Open opens a file: the content that was described.
	Open func() (ExhibitFile, error)
}

// ExhibitFile is the content of a file. Closing it may be needed.
type ExhibitFile interface {
	io.ReaderAt
	io.Closer
}
