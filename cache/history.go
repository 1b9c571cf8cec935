package cache

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Errors of the history.
var (
	// ErrNoVersion says that the history has no such version, or not any more.
	ErrNoVersion = past.ErrNoVersion

	// ErrNotKept says that a version is known, but not its content: it lived too short, was too
	// large, was never local, or is over the budget.
	ErrNotKept = history.ErrNotKept
)

// The values of Version.Change.
const (
	Made    = history.Made
	Written = history.Written
	Ended   = history.Ended
	Moved   = history.Moved
)

// Requests for the past, and their results: see package past.
type (
	Version     = past.Version
	LogFilter   = past.LogFilter
	State       = past.State
	DiffOptions = past.DiffOptions
)

// Log gives versions, the newest first.
func (v *Volume) Log(ctx context.Context, f LogFilter) ([]Version, error) { return v.past.Log(ctx, f) }

// Content opens the content of a version. It fails with ErrNoVersion and
// ErrNotKept. The caller closes it.
func (v *Volume) Content(id string) (r io.ReadCloser, size int64, err error) {
	return v.past.Content(id)
}

// Diff is [past.Past.Diff].
func (v *Volume) Diff(ctx context.Context, o DiffOptions) (string, error) { return v.past.Diff(ctx, o) }

// Pruned counts the parts that were given up to stay within the budget, HistoryUsage is the disk
// space of the history.
type (
	Pruned       = history.Pruned
	HistoryUsage = history.Usage
)

// HistoryUsage gives the disk space of the history, and counts the parts that were given up.
func (v *Volume) HistoryUsage() HistoryUsage { return v.history.Usage() }

func newKeeper(v *Volume) *history.Keeper {
	return history.New(history.Options{
		Tree: v.tree, Store: v.store, Open: v.open,
		Update: func(do func(history.Tx) error) error { return v.update(func(v *Tx) error { return do(v.notes) }) },
		Revision: func(at *tree.View) (r providers.Revision, keeps bool) {
			_, keeps = providers.As[providers.Snapshotter](v.p)
			return revision.Synced(at, v.o.shown()), keeps
		},
		Ended: v.chores.Ended, Budget: v.o.Policy.History, Asked: v.o.Policy.Commit == DueAsked,
		Now: v.o.Now, Context: v.ctx, Log: v.o.Log,
	})
}

func newPast(v *Volume) *past.Past {
	return past.New(past.Options{Tree: v.tree, Store: v.store, Keeper: v.history, Remote: v.p, Volume: remembering{v}, Context: v.ctx})
}

// remembering adapts a volume for its past.
type remembering struct{ v *Volume }

// Find implements past.Volume.
func (r remembering) Find(ctx context.Context, path string) (l table.Link, ino table.Ino, err error) {
	return r.v.listings.Find(ctx, path)
}

// Load implements past.Volume.
func (r remembering) Load(ctx context.Context, dir table.Ino) error {
	return r.v.listings.Load(&fs.Op{Cancel: ctx.Done()}, dir)
}

// Open implements past.Volume.
func (r remembering) Open(ctx context.Context, ino table.Ino) (io.ReadCloser, int64, error) {
	v := r.v
	oi, err := v.openContent(ino, files.ForUs)
	if err != nil {
		return nil, 0, err
	}
	var snap *content.Snapshot
	err = v.hydrator.Follow(ctx, func() (err error) {
		snap, err = oi.Content().Snapshot(ctx)
		return err
	})
	if err != nil {
		v.opener.Release(oi)
		return nil, 0, err
	}
	return &openReader{snap.Reader(), func() { snap.Close(); v.opener.Release(oi) }}, snap.Size(), nil
}

type openReader struct {
	io.Reader
	done func()
}

func (r *openReader) Close() error {
	r.done()
	return nil
}

// Readlink implements past.Volume.
func (r remembering) Readlink(ctx context.Context, ino table.Ino) (string, error) {
	target, err := r.v.Readlink(&fs.Op{Cancel: ctx.Done()}, fs.Ino(ino))
	if errors.Is(err, fs.ErrStale) {
		err = ErrNotKept
	}
	return target, err
}

// Differing implements past.Volume.
func (r remembering) Differing(ctx context.Context, from providers.Revision) ([]string, error) {
	v := r.v
	if !v.follower.IsStore() {
		return nil, fmt.Errorf("the store keeps no commits: %w", ErrNoVersion)
	}
	head, paths, err := v.differing(ctx)
	if err != nil {
		return nil, err
	}
	w := v.waits.For(&fs.Op{Cancel: ctx.Done()}, v.o.Patience)
	defer w.Close()
	diffs, err := v.follower.Differences(w, from, head)
	for _, d := range diffs {
		paths = append(paths, d.Locator.String())
	}
	return paths, err
}

// StaysLocal implements past.Volume.
func (r remembering) StaysLocal(at *tree.View, l table.Link, n *table.Inode) bool {
	rec := at.Record(l)
	if rec.Local || rec.Remote != nil || !r.v.border.Ignoring {
		return rec.Local
	}
	is, _ := r.v.border.Ignores.Ignored(at, l, n.IsDir())
	return is
}

// keepRemote has the history take the remote's entry under a name, which is about to be
// overwritten: when it reports true the disk has it. It reports false for content of more than most
// bytes, which the history cannot have: then it is not to be overwritten.
func (v *Volume) keepRemote(ctx context.Context, l table.Link, info providers.Info, most int64) (kept bool, err error) {
	if info.Kind == providers.KindFile && info.Size > most {
		return false, nil
	}
	var made files.Made
	target := []byte(nil)
	switch info.Kind {
	case providers.KindSymlink:
		if target, _, err = providers.Fetch(ctx, v.p, info.Locator, providers.ReadOptions{Version: info.Version}); err != nil {
			return false, err
		}
	case providers.KindFile:
		c, err := providers.Stream(ctx, v.p, info.Locator, providers.ReadOptions{Version: info.Version})
		if err != nil {
			return false, err
		}
		defer c.Body.Close()
		if made, err = files.MakeDurable(ctx, v.tree, v.store, info.Locator.String(), c.Body); err != nil {
			return false, err
		}
		if made.Blocks*512 > most { // the budget counts room on the disk: it would go at once
			v.store.Remove(made.Ino)
			return false, nil
		}
	}
	if err := v.history.Overwritten(l, info, made.Ino, string(target)); err != nil {
		return false, err
	}
	return true, nil
}

// Actor says on whose behalf files change, for the history.
type Actor = history.Actor

// SetActor sets the actor on whose behalf all later changes are made.
func (v *Volume) SetActor(a Actor) { v.history.SetActor(a) }
