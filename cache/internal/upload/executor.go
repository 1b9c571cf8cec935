package upload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

var (
	// ErrAgain has a name planned anew at once.
	ErrAgain = errors.New("look again")
	// ErrMoot says that there is nothing to do any more.
	ErrMoot = errors.New("moot")
	// ErrSuspect holds back content until a person has looked at it.
	ErrSuspect = errors.New("a loss of power may have cost it bytes: see wsmount recover")
)

// Volume is a working copy, as an Executor needs it.
type Volume interface {
	// Update runs do as one change of the tree by an operation itself: the names that it makes
	// dirty are due at once, and callers that wait for the operation wait for them too.
	Update(do func(Tx) error) error
	// Retry runs do until it succeeds or fails for good.
	Retry(ctx context.Context, do func(ctx context.Context) error) error
	// Report tells a person of an unexpected event.
	Report(op, path string, err error)
}

// Names ask the remote about names before a change of them is sent.
type Names interface {
	// List makes the names of a directory known. That may fail without an error.
	List(dir table.Ino) error
	// FetchAttrs asks for the attributes of an inode if they are unknown. ErrAgain says that the
	// inode changed meanwhile. An inode that the remote lost is no error.
	FetchAttrs(ctx context.Context, ino table.Ino) error
	// FetchTarget asks for the target of a symbolic link.
	FetchTarget(ctx context.Context, ino table.Ino) error
}

// Content is the content of inodes.
type Content interface {
	// Open opens it until Release. ErrMoot says that no name leads to the inode any more.
	Open(ino table.Ino) (*files.OpenInode, error)
	Release(oi *files.OpenInode)
	// Renamed says that a state of content has another name than before, see Follow.
	Renamed(v *tree.View, ino table.Ino, was, now string)
	// HydrateBeforeDelete fetches content that a program still reads, and of which the remote is
	// about to lose the last copy: the one under this name.
	HydrateBeforeDelete(ctx context.Context, l table.Link) error
	// Unsendable deals with a name whose content could not be read because of cause. ErrAgain says
	// that the name leads to another inode now; else the error is cause, or the reason why it
	// could not be dealt with.
	Unsendable(ctx context.Context, l table.Link, cause error) error
}

// A Tx is a change of the tree by an operation, or by a caller that notes the outcome of one.
type Tx struct {
	*tree.Tx
	Rest Rest
}

// Rest is the part that the rest of a working copy has in such a change. Its methods are called
// within the transaction.
type Rest interface {
	// Sending says that an attempt is about to send the state of an inode.
	Sending(ino table.Ino, a *table.Attempt)
	// Succeeded says that a directory is in the place of one that was removed: facts known of
	// names in the old one hold for names in the new one.
	Succeeded(old, dir table.Ino)
	// Resurrected gives a directory that came back its local name.
	Resurrected(l table.Link, dir table.Ino)
	// Wake has names looked at again after the transaction.
	Wake()
}

// ExecutorOptions are the parts that an Executor works with.
type ExecutorOptions struct {
	Provider   providers.Provider
	Name       string // of the provider, in errors
	Tree       *tree.Tree
	Volume     Volume
	Names      Names
	Content    Content
	Attributes attrs.Mapping
	NewID      func(*tree.View) string // a new operation id
	// Passes reports whether the same request may succeed soon after an error, without
	// intervention.
	Passes   func(error) bool
	PartSize int64 // 0: 8 MiB
	Log      *slog.Logger
}

// Executor makes operations.
type Executor struct {
	o     ExecutorOptions
	caps  providers.Capabilities
	slots chan struct{} // one for each part on its way
}

// NewExecutor makes one that has nothing on its way.
func NewExecutor(o ExecutorOptions) *Executor {
	if o.PartSize == 0 {
		o.PartSize = partSize
	}
	return &Executor{o, o.Provider.Capabilities(), make(chan struct{}, partsAtOnce)}
}

// A Try is an operation while it is made.
type Try struct {
	*Operation
	// Unmade is the attempt of a change that was found not to have happened: if it is made
	// again, it has the same id, so that neither harms the other. The lock guards it.
	Unmade *table.Attempt
	// Sent is told how many bytes of content went; a negative number takes back bytes that have to
	// go again.
	Sent func(n int)
}

// Do makes an operation: one request, framed by changes of the table. The attempt is in the table
// before the request, its outcome after the answer; without an answer the attempt stays, and its
// outcome is resolved first. ErrAgain says that there is more to do for the name.
func (x *Executor) Do(ctx context.Context, s *Try) error {
	if err := x.o.Content.HydrateBeforeDelete(ctx, s.Link); err != nil {
		return err
	}
	switch s.Verb {
	case VerbWrite:
		return x.write(ctx, s)
	case VerbMkdir:
		return x.mkdir(ctx, s)
	case VerbDelete:
		return x.delete(ctx, s)
	case VerbMove:
		return x.move(ctx, s)
	case VerbCopy:
		return x.copy(ctx, s)
	case VerbAttr:
		return x.setAttr(ctx, s)
	case VerbResolve:
		return x.resolveAttempt(ctx, s)
	case VerbEmpty:
		return x.empty(ctx, s.Ino)
	case VerbPart:
		if err := x.o.Names.FetchAttrs(ctx, s.Ino); err != nil { // impossible after it left its place
			return err
		}
		return x.part(s.Ino)
	case VerbAdopt:
		return x.adopt(s)
	}
	return fmt.Errorf("no such operation: %s", s)
}
