// Package ops is the operations of the kernel on a working copy: lookups, reads of directories,
// changes of names and attributes, and open files, as [fs.Volume] and [fs.File] define them.
// Each change of names is one transaction of the tree. An operation that must ask the remote,
// or wait for it, does so by [Remote] and [Uploads], before or after the transaction.
//
//	v := ops.New(ops.Options{Tree: t, Side: side, Update: update, ...})
//	e, err := v.Mkdir(op, fs.RootIno, "d", 0o777)
//
// Files are named for operations: names has those that make and remove names, file_io reads and
// writes. All methods may be called concurrently.
package ops

import (
	"context"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/local"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Remote asks the remote on behalf of a program, and waits for the answer.
type Remote struct {
	// Load lists a directory unless its names are known and fresh.
	Load func(op *fs.Op, dir table.Ino) error
	// Freshen is called before a file is opened: it revalidates the version, strictly for an
	// open that shows content. fs.ErrStale: the name leads to another inode now.
	Freshen func(op *fs.Op, ino table.Ino, strict bool) error
	// FetchAttrs fetches all attributes of an inode, if the remote answers. needs: the caller
	// cannot do without them, and waits for longer.
	FetchAttrs func(op *fs.Op, ino table.Ino, needs bool) error
	// FetchTarget fetches the target of a symbolic link, inside a do of Reach.
	FetchTarget func(ctx context.Context, ino table.Ino) error
	// Reach runs do, which may have to wait for remote content.
	Reach func(op *fs.Op, do func(ctx context.Context) error) error
	// Submodule finds a submodule at a path or below it; nil: there are none.
	Submodule func(op *fs.Op, at providers.Locator) (sub providers.Locator, found bool, err error)
}

// Uploads lets a program wait until its changes are sent.
type Uploads struct {
	// WaitForContent returns when, by the policy, the content of an inode is safe, with all
	// earlier changes of names and attributes, and WaitForNames when these are.
	WaitForContent func(op *fs.Op, ino table.Ino) error
	WaitForNames   func(op *fs.Op) error
	// IsUnsaved reports whether the remote lacks content of an inode.
	IsUnsaved func(v *tree.View, ino table.Ino) bool
}

// Options are the parts of a working copy that operations need.
type Options struct {
	Tree *tree.Tree
	Side *local.Side
	// Update runs do as one change of the tree that by asked for.
	Update func(by files.Caller, do func(*local.Tx) error) error
	// Abandon forgets inodes without a name that are not in use any more.
	Abandon func(inos ...table.Ino)

	Store    *content.Store
	Open     *files.OpenSet
	Opener   *files.Opener
	Hydrator *files.Hydrator
	Prefetch *files.Prefetch
	Syncs    *files.TableSync
	Belief   *listing.Belief
	Ahead    *listing.Ahead

	Provider     providers.Provider
	Capabilities providers.Capabilities
	NoWait       bool // close and fsync return when the working copy has the bytes
	Remote       Remote
	Uploads      Uploads
	// Report tells a person of something unexpected.
	Report func(op, path string, err error)
}

// Operations are the operations on one working copy.
type Operations struct{ o Options }

// New makes Operations.
func New(o Options) *Operations { return &Operations{o} }

// view is the tree for an operation that has its lock.
type view struct {
	*Operations
	*tree.View
	lock, update, change taken
}

// taken hides methods from the lock holder that would deadlock on the lock.
type taken struct{}

var _ = [...]taken{view{}.lock, view{}.update, view{}.change}

// tx is a change of the tree.
type tx struct {
	view
	*local.Tx
	by files.Caller // requested it
}

// lock waits for the lock of the tree.
func (v *Operations) lock() view { return view{Operations: v, View: v.o.Tree.Lock()} }

// unlock releases the lock. The view must not be used any more.
func (v view) unlock() { v.o.Tree.Unlock() }

// view runs do, which changes nothing, under the lock.
func (v *Operations) view(do func(view) error) error {
	return v.o.Tree.View(func(at *tree.View) error { return do(view{Operations: v, View: at}) })
}

// update runs do as one change that a request asked for.
func (v *Operations) update(op *fs.Op, do func(*tx) error) error {
	by := callerOf(op)
	return v.o.Update(by, func(t *local.Tx) error { return do(&tx{view{Operations: v, View: t.View}, t, by}) })
}

// callerOf is the process that requests an operation, if any.
func callerOf(op *fs.Op) files.Caller {
	if op == nil {
		return files.Caller{}
	}
	return files.Caller{Known: true, UID: op.UID, PID: op.PID}
}

// writes notes the process that opened a file for writing: later flushes are attributed to it.
func (v *Operations) writes(oi *files.OpenInode, op *fs.Op) {
	locked := v.lock()
	defer locked.unlock()
	oi.SetWriter(locked.View, callerOf(op))
}

// isGone reports whether no name leads to an inode any more: then its content may be gone too.
func (v *Operations) isGone(ino table.Ino) bool {
	locked := v.lock()
	defer locked.unlock()
	return locked.IsGone(ino)
}
