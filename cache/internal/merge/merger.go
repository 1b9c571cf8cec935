// Package merge brings the remote state, as last seen, into a working copy, name by name: for a
// listing that was due, for a pull of the whole tree, for a change of ours that came too late, and
// for a file that lost its name to a pull while it was open.
//
// Package reconcile decides about each name. A [Merge] gathers the three sides of a name from the
// tree, has the facts about contents found out without the lock, and carries out the decision, all
// in one transaction:
//
//	m := merger.New(ctx, remote)
//	err := m.Run(func(tx *merge.Tx) error {
//		m.Take(tx, merge.News{Link: l, Info: info})
//		return m.CheckPull(tx, head)
//	})
//
// A [Merger] also asks the remote again about a name ([Merger.Revalidate]), and [Conflicts] are
// the names that are held back until a person decides.
package merge

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/local"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// Volume is a working copy as merges need it.
type Volume struct {
	// Update runs do as one change of the tree. With Own set, the names that it makes dirty are
	// due at once, and waiters wait for them too.
	Update func(do func(tx *local.Tx, sent upload.Tx) error) error
	// Retry runs do until it succeeds, fails for good, or ctx ends.
	Retry func(ctx context.Context, do func(ctx context.Context) error) error
	// Report tells a person of an unexpected event.
	Report func(op, path string, err error)
	// Go runs f in the background. Pause waits for d; the end of ctx is an error.
	Go    func(f func())
	Pause func(ctx context.Context, d time.Duration) error
}

// Remote asks the remote for facts that a merge needs.
type Remote struct {
	// List makes the names of a directory known, with the head where it is.
	List func(ctx context.Context, head revision.Held, dir table.Ino) error
	// FetchTarget makes the target of a symbolic link known.
	FetchTarget func(ctx context.Context, ino table.Ino) error
	// AwaitPlace waits until the place of an inode at the remote is known, and reports whether
	// there was anything to wait for.
	AwaitPlace func(ctx context.Context, ino table.Ino) bool
}

// Past reads and keeps earlier versions.
type Past struct {
	// Keep puts a version that is about to be overwritten at the remote into the history; false:
	// it is too large for that, and stays.
	Keep func(ctx context.Context, l table.Link, info providers.Info) (kept bool, err error)
	// PreviousHead reads a version that the remote had at a place in an earlier revision.
	// io/fs.ErrNotExist: no known revision had it.
	PreviousHead func(ctx context.Context, at providers.Locator, version providers.Version) (io.ReadCloser, error)
}

// Guard stops a pull that deletes too much: see package massdelete.
type Guard struct {
	Halts func(v *tree.View) *massdelete.Guard
	// Check halts the pull for a reason, unless that is empty or was confirmed.
	Check func(v *tree.View, reason string, deleted int) error
	// PullWhole starts a pull of the whole tree; IsPulling reports one under way.
	PullWhole func(*tree.View)
	IsPulling func(*tree.View) bool
}

// Options are the parts that a Merger works with.
type Options struct {
	Tree     *tree.Tree
	Side     *local.Side
	Store    *content.Store
	Open     *files.OpenSet
	Hydrator *files.Hydrator
	History  *history.Keeper
	Versions *past.Past
	Executor *upload.Executor
	Jobs     *upload.Jobs
	Head     revision.HeadLock

	Provider     providers.Provider
	Capabilities providers.Capabilities
	Conflict     reconcile.Conflict
	Looks        bool        // directories are listed again after a while
	DirAttrs     func() bool // the remote tells and takes attributes of directories

	Volume Volume
	Remote Remote
	Past   Past
	Guard  Guard
	// Heard tells waiting commits of a conflict, and reports whether any of them will report it.
	Heard func(v *tree.View, l table.Link, path string) bool
	// Pulled, if not nil, is called with each path that leads to another file than before.
	Pulled  func(path string)
	Context context.Context // ends with the working copy
}

// A Merger makes merges for a working copy.
type Merger struct{ o Options }

// NewMerger makes one.
func NewMerger(o Options) *Merger { return &Merger{o} }

// view is the tree for the lock holder.
type view struct {
	*Merger
	*tree.View
	lock, update taken
}

// A Tx is a transaction of a merge.
type Tx struct {
	view
	*local.Tx
	sent upload.Tx // for the part of uploads in it
}

// taken hides from the lock holder the methods that would wait for the lock for ever.
type taken struct{}

var _ = [...]taken{view{}.lock, view{}.update}

func (v *Merger) lock() view { return view{Merger: v, View: v.o.Tree.Lock()} }

// unlock gives the lock back. The view must not be used any more.
func (v view) unlock() { v.o.Tree.Unlock() }

func (v *Merger) update(do func(*Tx) error) error {
	return v.o.Volume.Update(func(t *local.Tx, sent upload.Tx) error {
		return do(&Tx{view{Merger: v, View: t.View}, t, sent})
	})
}

// record is the present record of a name, and its inode.
func (v *Merger) record(l table.Link) (rec table.Name, n *table.Inode) {
	locked := v.lock()
	defer locked.unlock()
	rec = locked.Record(l)
	return rec, locked.Inode(rec.Ino)
}

// linksOf are the present names of an inode, the remote ones or the local ones.
func (v *Merger) linksOf(ino table.Ino, remote bool) []table.Link {
	locked := v.lock()
	defer locked.unlock()
	n := locked.Inode(ino)
	switch {
	case n == nil:
		return nil
	case remote:
		return slices.Clone(n.RemoteLinks)
	}
	return slices.Clone(n.Links)
}
