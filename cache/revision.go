package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/commit"
	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/merge"
	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/providers"
)

// Requests and reports about revisions: see package revision.
type (
	PullReport    = revision.PullReport
	PushReport    = revision.PushReport
	BranchOptions = revision.BranchOptions
	BranchReport  = revision.BranchReport
	// Unpushed is the known state of commits that the remote does not have.
	Unpushed = revision.Unpushed
)

// makeRevisions makes the follower of the remote's head, and the pusher.
func makeRevisions(v *Volume) {
	_, canPush := providers.As[providers.Pusher](v.p)
	v.backlog = revision.NewBacklog(revision.BacklogOptions{CanPush: canPush, Empty: func() { v.chores.Succeeded(chores.Push) }, Now: v.o.Now})
	v.follower = revision.NewFollower(revision.Options{
		Provider: v.p, Tree: v.tree, Head: v.head, Shown: v.o.shown(), Attributes: v.attrs(),
		MergeCommits: v.o.Policy.MergeCommits, Combine: v.o.Policy.Conflict.CombineTexts,
		Chores: v.chores, Host: following{committing{uploading{v}}}, Names: names{v.listings, v}, Now: v.o.Now,
	}, v.backlog)
	v.pusher = revision.NewPusher(revision.PusherOptions{Follower: v.follower, Copy: following{committing{uploading{v}}}, Context: v.ctx, Log: v.o.Log})
}

// shown says which names of a revision the table has.
func (o *Options) shown() revision.Rules { return revision.RulesOf(o.IgnoreFile, o.Exclude) }

// Push is [revision.Pusher.Push]. It fails when the remote cannot be reached, or takes nothing
// more, for Options.Patience; Status shows since when the push is owed, and why.
func (v *Volume) Push(ctx context.Context, o providers.PushOptions) (PushReport, error) {
	done, err := v.enter()
	if err != nil {
		return PushReport{}, err
	}
	defer done()
	return v.pusher.Push(ctx, o)
}

// Branch is [revision.Follower.Branch], of a working copy that commits.
func (v *Volume) Branch(ctx context.Context, name string, o BranchOptions) (r BranchReport, err error) {
	done, err := v.enter()
	if err != nil {
		return r, err
	}
	defer done()
	if !v.o.ReadOnly {
		w := v.waits.With(ctx, v.o.Patience/2)
		defer w.Close()
		r, err = v.follower.Branch(w, name, o)
	}
	v.chores.Ended(chores.Branch, err)
	if err != nil {
		err = fmt.Errorf("branch %s: %w", name, err)
	}
	return r, err
}

// knowUnpushed is [revision.Follower.KnowUnpushed]. While the outcome of a change set is open it
// counts nothing: if the set became a commit, that is counted when the outcome is resolved.
func (v *Volume) knowUnpushed(ctx context.Context) error {
	locked := v.lock()
	open := commit.IsUnresolved(locked.View)
	locked.unlock()
	if open {
		return nil
	}
	return v.follower.KnowUnpushed(ctx)
}

// following adapts a volume for its revisions, as far as that differs from change sets.
type following struct{ committing }

var _ interface {
	revision.Host
	revision.Copy
} = following{}

// Update implements revision.Host.
func (f following) Update(do func(*tree.Tx) error) error { return f.v.updateTree(do) }

// Patiently implements revision.Host.
func (f following) Patiently(ctx context.Context, do func(revision.Waiting) error) error {
	w := f.v.doing.beating(f.v.waits.For(nil, f.v.o.Patience))
	defer w.Close()
	defer context.AfterFunc(ctx, func() { w.End(context.Cause(ctx)) })()
	err := w.Cause(do(w))
	late := errors.Is(err, waiting.ErrPatience) || errors.Is(err, context.DeadlineExceeded)
	if !late || errors.Is(err, providers.ErrUnavailable) {
		return err
	}
	if err == context.Cause(w) { // no error names the cause
		err = providers.Kinded(errors.New("the remote has not answered in time"), err)
	}
	return providers.Kinded(err, providers.ErrUnavailable)
}

// Resolve implements revision.Host, also of a volume that commits no sets.
func (f following) Resolve(ctx context.Context, head revision.Moving) error {
	if f.v.sets == nil {
		return nil
	}
	return f.v.waits.Retry(ctx, func(ctx context.Context) error { return f.v.sets.Resolve(ctx, head) })
}

// Pull implements revision.Copy.
func (f following) Pull(ctx context.Context) (PullReport, error) { return f.v.Pull(ctx, PullOptions{}) }

// Recommit implements revision.Copy.
func (f following) Recommit(ctx context.Context) (pending.Report, error) {
	if f.v.sets == nil {
		return pending.Report{}, nil
	}
	return f.v.Commit(ctx, CommitOptions{})
}

// setRevisions adapts the revisions of a volume for its change sets.
type setRevisions struct {
	*revision.Follower
	v *Volume
}

var _ commit.Revisions = setRevisions{}

// CountUnpushed implements commit.Revisions.
func (r setRevisions) CountUnpushed() error {
	return r.v.updateOwn(func(v *Tx) error {
		if !commit.CountOnce(uploadTx(v)) {
			return nil
		}
		return v.backlog.Add(v.Tx, 1)
	})
}

// Push implements commit.Revisions.
func (r setRevisions) Push() {
	if r.v.o.Policy.Push {
		r.v.pusher.Begin()
	}
}

// bringContent fetches all content of an inode. Its errors are those of [files.Hydrator.Fetch].
func (v *Volume) bringContent(ctx context.Context, x table.Ino, kind providers.Kind) error {
	if kind == providers.KindSymlink {
		return v.fetchTarget(ctx, x)
	}
	oi, err := v.openContent(x, files.ForUs)
	if err != nil {
		return err
	}
	defer v.opener.Release(oi)
	return oi.Content().FetchAll(ctx)
}

// readPreviousHead reads a version that the remote had at a place in an earlier revision.
// iofs.ErrNotExist when none of the known ones had it.
func (v *Volume) readPreviousHead(ctx context.Context, at providers.Locator, version providers.Version) (io.ReadCloser, error) {
	locked := v.lock()
	all := revision.PreviousHeads(locked)
	locked.unlock()
	s, ok := providers.As[providers.Snapshotter](v.p)
	if !ok {
		all = nil
	}
	for _, r := range all {
		then, err := s.At(ctx, r)
		if err != nil {
			continue // the revision has been thrown away
		}
		c, err := providers.Stream(ctx, then, at, providers.ReadOptions{Version: version})
		if err == nil {
			return &past.Body{ReadCloser: c.Body, Revision: then}, nil
		}
		then.Close()
		if !merge.NotThere(err) && !files.IsElsewhere(err) {
			return nil, errno.Translate(err)
		}
	}
	return nil, fmt.Errorf("no revision that is known has that version: %w", iofs.ErrNotExist)
}
