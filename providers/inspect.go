package providers

import (
	"context"
	"io"
	"time"
)

// Inspector is a provider whose service has programs of its own that read a tree of files, as
// git does: the files that they need are shown beside the tree, and cannot be changed.
type Inspector interface {
	// Inspect shows these files for a working copy of the provider at a path root, with other
	// files at covered paths. It does no work yet.
	Inspect(root string, covered []string, work Changes) Inspection
}

// Changes are the paths at which a working copy may differ from the head, including directories
// that may differ as a whole, and paths that are never sent to the backend: never one too few.
type Changes func(ctx context.Context) (head Revision, paths []string, err error)

// Inspection is the files that an Inspector shows. Show may be called from many goroutines.
type Inspection struct {
	// Names are the names in the root of the tree that the programs look for, each with its
	// path in Show. A file is listed, a directory is not.
	Names map[string]string

	// Show is the file or directory at a slash-separated path. ErrNotExist when there is none.
	Show func(ctx context.Context, path string) (Exhibit, error)
}

// Exhibit is a file or a directory of an Inspection.
type Exhibit struct {
	Names []string // of a directory, subdirectories with a slash at the end; nil in a file
	Size  int64    // of a file
	Time  time.Time

	// Version is that of the content of a file; "" when it is made anew each time.
	Version string

	// Lasting: the path will never lead to another file, but may cease to exist.
	Lasting bool

	// Open opens a file: the described version of its content.
	Open func() (ExhibitFile, error)
}

// ExhibitFile is the content of a file. Closing it may be needed.
type ExhibitFile interface {
	io.ReaderAt
	io.Closer
}
