package revision

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// errRewritten is reported, once, when others have removed commits that the remote had.
var errRewritten = errors.New("the remote's branch was rewritten: what it no longer has was removed locally too, and stays in the history of the clone")

// setUpstream records that the head has a revision of the tracked branch, if the remote's is at
// it: commits on another branch do not count, wherever the head has gone since they were pushed.
func (f *Follower) setUpstream(ctx context.Context, r providers.Revision) error {
	if b, ok := providers.As[providers.Brancher](f.o.Provider); ok {
		if all, err := b.Branches(ctx); err != nil || all.On != "" || all.Tip != r {
			r = ""
		}
	}
	return f.record(SetUpstream, r)
}

// KnowUnpushed records which commits of a clone the remote does not have, for a working copy that
// is new, or was rebuilt, and has made none of them.
func (f *Follower) KnowUnpushed(ctx context.Context) error {
	b, ok := providers.As[providers.Brancher](f.o.Provider)
	if !ok || f.recorded(Last) != "" {
		return nil
	}
	all, err := b.Branches(ctx)
	if err != nil {
		return err
	}
	return f.o.Host.Update(func(tx *tree.Tx) error { return f.backlog.Found(tx, all.Unpushed) })
}

// knowUpstream asks a working copy's first clone for the last known tip of the tracked branch,
// before the remote is asked.
func (f *Follower) knowUpstream(ctx context.Context) error {
	b, ok := providers.As[providers.Brancher](f.o.Provider)
	if !ok || f.recorded(Upstream) != "" {
		return nil
	}
	all, err := b.Branches(ctx)
	if err != nil || all.Tip == "" || all.On != "" {
		return err
	}
	head, err := f.store.Head(ctx)
	if err != nil || head == "" {
		return err
	}
	if base, err := f.store.Base(ctx, all.Tip, head); err != nil || base != all.Tip {
		return err
	}
	return f.record(SetUpstream, all.Tip)
}

// baseOf is where the local and the remote revision part. That is the last one that both have,
// unless others have rewritten the branch: the remote's old commits are no local changes, even if
// the remote does not have them any more. Where the remote's is just older, the branch was
// rewritten if the remote was known to have more before it was asked: otherwise a local push may
// have come after.
func (f *Follower) baseOf(ctx context.Context, ours, theirs, had providers.Revision) (providers.Revision, error) {
	base, err := f.store.Base(ctx, ours, theirs)
	up := f.recorded(Upstream)
	if err != nil || up == "" || up == base || base == theirs && up != had {
		return base, err
	}
	for _, r := range []providers.Revision{ours, theirs} {
		switch last, err := f.store.Base(ctx, up, r); {
		case errors.Is(err, providers.ErrNotExist): // the recorded revision was thrown away
			return base, nil
		case err != nil:
			return "", err
		case (last == up) != (r == ours):
			return base, nil
		}
	}
	f.o.Chores.Report("pull", "", errRewritten)
	return up, nil
}
