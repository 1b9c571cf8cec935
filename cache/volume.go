package cache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/drain"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/local"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/show"
	"github.com/wsmount/wsmount/cache/internal/state"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Volume is a working copy. Make it with Open.
//
// Locks, outermost first: the lock of an open inode (files.LockedInode), then the lock of the
// volume, then those of the packages below. The volume's lock is never held over a call of the
// provider, over a read or write of content, or over a notification. The state that it guards is
// read through a View, and changed for good through a Tx.
type Volume struct {
	*kernelOps // requests of the kernel
	*conflicts // those that are held back
	*describing

	p    providers.Provider
	caps providers.Capabilities
	// submodules are directories that are not changed; nil: there are none.
	submodules providers.Submoduler
	o          Options
	state      *state.Dir
	store      *content.Store

	ctx    context.Context // ends with the volume
	stop   context.CancelFunc
	waits  *waiting.Waits
	work   sync.WaitGroup                                   // in the background, which ends with ctx, and calls: Close waits
	pause  func(ctx context.Context, d time.Duration) error // time.Sleep that can be ended
	notify atomic.Pointer[fs.Notifier]                      // never nil; background work notifies without the lock
	chores *chores.Record                                   // has a lock of its own

	tree *tree.Tree
	side *local.Side
	held *tree.Guarded[View]

	// Each of these has parts that the lock guards, and parts that need none: the first argument
	// of a method (a View, a Tx or neither) tells which it uses.
	open     *files.OpenSet
	ids      upload.IDs
	sentBack files.SentBack
	pending  *pending.Queue // the changes to be sent
	// These send them name by name, and know why other names are not sent.
	exec  *upload.Executor
	send  *upload.Sender
	holds *upload.Holds
	loop  *upload.Loop
	// sets sends them as change sets; nil: they go name by name.
	sets      *commit.Committer
	kept      *commit.Kept // content for the sets
	committer Committer    // one of both
	sent      *waiting.Sent
	drain     *drain.Drain
	doing     doing
	backlog   *revision.Backlog
	follower  *revision.Follower
	pusher    *revision.Pusher
	head      revision.HeadLock // before the lock: a holder of the lock does not take it
	hydrator  *files.Hydrator
	eviction  *files.Eviction
	unloading tree.Unloading
	prefetch  *files.Prefetch
	border    *rules.Border // the lock guards it
	learner   *rules.Learner
	merger    *merge.Merger
	belief    *listing.Belief
	listings  *listing.Listings
	history   *history.Keeper
	past      *past.Past
	shows     *show.Shower
	unlinks   *files.DeferredUnlinks
	opener    *files.Opener
	tableSync *files.TableSync
	room      *files.Room
}

// guardedState is the state that the lock of a volume guards.
type guardedState struct {
	*tree.View
	updates uint64 // changes of the table
	closing bool   // Close was called
	closed  bool   // nothing new begins

	massDelete massdelete.Guard
	deletions  commitCheck
	wholePull  wholePull
	pulling    *pulling // the pull that is under way
}

var _ interface {
	fs.Volume
	fs.Binder
	fs.Describer
	fs.Pather
	fs.Closer
} = (*Volume)(nil)

// Bind implements fs.Binder.
func (v *Volume) Bind(n fs.Notifier) {
	v.notify.Store(&n)
}

func (v *Volume) notifier() fs.Notifier { return *v.notify.Load() }
