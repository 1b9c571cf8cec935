// Package merge brings what the remote was seen to have into a working copy, name by name:
// for a listing that was due, for a pull of the whole tree, for a change of ours that came too
// late, and for a file that lost its name to a pull while it was open.
//
// What becomes of a name is decided by package reconcile. A [Merge] gathers the three sides of
// a name from the tree, has what must be known of contents found out without the lock, and
// carries out what was decided, all in one transaction:
//
//	m := merger.New(ctx, remote)
//	err := m.Run(func(tx *merge.Tx) error {
//		m.Take(tx, merge.News{Link: l, Info: info})
//		return m.CheckPull(tx, head)
//	})
//
// A [Merger] also asks the remote again about a name ([Merger.Revalidate]), and [Conflicts] are
// what is held back until a person decides.
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
	// Update runs do as one change of the tree. What differs because of one that sets Own is
	// sent together with what was asked for.
	Update func(do func(tx *local.Tx, sent upload.Tx) error) error
	// Retry runs do until it succeeds, fails for good, or ctx ends.
	Retry func(ctx context.Context, do func(ctx context.Context) error) error
	// Report tells a person of something that no one would expect.
	Report func(op, path string, err error)
	// Go runs f in the background, and Pause waits there.
	Go    func(f func())
	Pause func(ctx context.Context, d time.Duration) error
}

// Remote is asked for what a merge must know.
type Remote struct {
	// List makes the names of a directory known, with the head where it is.
	List func(ctx context.Context, head revision.Held, dir table.Ino) error
	// FetchTarget makes the target of a symbolic link known.
	FetchTarget func(ctx context.Context, ino table.Ino) error
	// AwaitPlace waits until it is known where the remote has an inode, and reports whether
	// it was not.
	AwaitPlace func(ctx context.Context, ino table.Ino) bool
}

// Past is what was there before.
type Past struct {
	// Keep puts a version that is about to be overwritten at the remote into the history.
	Keep func(ctx context.Context, l table.Link, info providers.Info) error
	// PreviousHead reads a version that the remote had at a place in an earlier revision.
	// io/fs.ErrNotExist: none that is known had it.
	PreviousHead func(ctx context.Context, at providers.Locator, version providers.Version) (io.ReadCloser, error)
}

// Guard stops a pull that deletes too much: see package massdelete.
type Guard struct {
	*massdelete.Guard
	// Check halts the pull for a reason, unless there is none or that was confirmed.
	Check func(v *tree.View, reason string, deleted int) error
	// PullWhole has a pull of the whole tree begin, which IsPulling then.
	PullWhole func(*tree.View)
	IsPulling func(*tree.View) bool
}

// Options are what merges need of those who use them.
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
	// Heard tells commits that wait of a conflict, and reports whether any of them will say
	// so.
	Heard func(v *tree.View, l table.Link, path string) bool
	// Pulled, if not nil, is told each path that leads to another file than before.
	Pulled  func(path string)
	Context context.Context // ends with the working copy
}

// A Merger makes merges for a working copy.
type Merger struct{ o Options }

// NewMerger makes one.
func NewMerger(o Options) *Merger { return &Merger{o} }

// view is the tree for who has its lock.
type view struct {
	*Merger
	*tree.View
	lock, update taken
}

// A Tx is a transaction of a merge.
type Tx struct {
	view
	*local.Tx
	sent upload.Tx // for what uploads have to do with it
}

// taken hides from who holds the lock what would wait for it for ever.
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

// record is what the table has of a name at the moment, and what it stands for.
func (v *Merger) record(l table.Link) (rec table.Name, n *table.Inode) {
	locked := v.lock()
	defer locked.unlock()
	rec = locked.Record(l)
	return rec, locked.Inode(rec.Ino)
}

// linksOf are the local names that an inode has at the moment, or the remote ones.
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
