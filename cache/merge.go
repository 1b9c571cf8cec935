package cache

import (
	"context"
	"time"

	"github.com/wsmount/wsmount/cache/internal/local"
	"github.com/wsmount/wsmount/cache/internal/massdelete"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/upload"
	"github.com/wsmount/wsmount/providers"
)

// ErrTooLarge says that a conflict cannot end with the remote's version overwritten, which the
// history has no room for.
var ErrTooLarge = merge.ErrTooLarge

// ErrNoConflict says that nothing is held back as a conflict at a path.
var ErrNoConflict = merge.ErrNoConflict

// Held conflicts and their resolution: see package merge.
type (
	ConflictInfo = merge.ConflictInfo
	Side         = merge.Side
	Resolution   = merge.Resolution
	conflicts    = merge.Conflicts
)

// The sides of a conflict.
const (
	SideBase   = merge.SideBase
	SideOurs   = merge.SideOurs
	SideTheirs = merge.SideTheirs
)

func newMerger(v *Volume) *merge.Merger {
	return merge.NewMerger(merge.Options{
		Tree: v.tree, Side: v.side, Store: v.store, Open: v.open, Hydrator: v.hydrator, History: v.history, Versions: v.past,
		Executor: v.exec, Jobs: v.send.Jobs(), Head: v.head, Provider: v.p, Capabilities: v.caps,
		Conflict: v.o.Policy.Conflict, Looks: v.o.Policy.TTL > 0, DirAttrs: func() bool { return v.sets == nil && v.exec.TellsDirAttrs() },
		Volume: merge.Volume{
			Update: func(do func(*local.Tx, upload.Tx) error) error {
				return v.update(func(v *Tx) error { return do(v.local, uploadTx(v)) })
			},
			Retry: v.waits.Retry, Report: v.chores.Report, Go: v.work.Go, Pause: v.pause,
		},
		Remote: merge.Remote{List: v.listings.Learn, FetchTarget: v.fetchTarget, AwaitPlace: v.sent.Place},
		Past: merge.Past{
			Keep: func(ctx context.Context, l table.Link, info providers.Info) (bool, error) {
				return v.keepRemote(ctx, l, info, v.o.Policy.History.Bytes)
			},
			PreviousHead: v.readPreviousHead,
		},
		Guard: merge.Guard{
			Halts: func(at *tree.View) *massdelete.Guard { return &v.held.Of(at).massDelete },
			Check: func(at *tree.View, why string, deleted int) error {
				return v.held.Of(at).checkMassDelete(massdelete.Pull, why, deleted)
			},
			PullWhole: func(at *tree.View) { v.held.Of(at).pullWhole() },
			IsPulling: func(at *tree.View) bool { return v.held.Of(at).wholePull.underWay },
		},
		// A conflict that is decided at once is not held back, and yet the Commits that asked for
		// the name have to report it.
		Heard: func(at *tree.View, l table.Link, path string) bool {
			waits, sets := v.pending.Conflict(at, l, path), v.committer.Conflict(at, path)
			return waits || sets
		},
		Pulled: v.o.Pulled, Context: v.ctx,
	})
}

// remoteNames are the names under which the remote has inodes, as files.Revalidator.
type remoteNames struct{ v *Volume }

// Revalidate implements files.Revalidator.
func (r remoteNames) Revalidate(ctx context.Context, x table.Ino) error {
	return r.v.merger.RevalidateInode(ctx, x)
}

// AwaitPlace implements files.Revalidator.
func (r remoteNames) AwaitPlace(ctx context.Context, x table.Ino) bool {
	return r.v.sent.Place(ctx, x)
}

// FetchAttrs implements upload.Names.
func (u uploading) FetchAttrs(ctx context.Context, x table.Ino) error {
	return u.v.merger.FetchAttrs(ctx, x)
}

// Unsendable implements upload.Content.
func (u uploading) Unsendable(ctx context.Context, l table.Link, cause error) error {
	return u.v.merger.Unsendable(ctx, l, cause)
}

// wholePull is the pull begun when a look at one directory sees so much deleted that it must judge.
type wholePull struct {
	underWay bool
	ended    time.Time     // the last one
	pause    time.Duration // after which the next may begin
}

// pullWhole begins a pull, unless one ended a moment ago: half of the time the remote is left
// alone, however large the tree is.
func (v *View) pullWhole() {
	p, began := &v.wholePull, v.o.Now()
	if d := began.Sub(p.ended); p.underWay || d >= 0 && d < p.pause {
		return
	}
	p.underWay = true
	v.work.Go(func() {
		_, _ = v.Pull(v.ctx, PullOptions{alone: true}) // Status shows its result
		locked := v.Volume.lock()
		defer locked.unlock()
		p.ended, p.underWay = v.o.Now(), false
		p.pause = max(v.o.Policy.TTL, p.ended.Sub(began))
	})
}
