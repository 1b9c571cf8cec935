package revision

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// errRewritten is told, once, when others have taken back what the remote had.
var errRewritten = errors.New("the remote's branch was rewritten: what it no longer has was removed locally too, and stays in the history of the clone")

// setUpstream notes that the head has a revision of the tracked branch, if the remote's
// is there: commits on a branch of our own are no such, wherever the head has gone since
// they were pushed.
func (f *Follower) setUpstream(ctx context.Context, r providers.Revision) error {
	if b, ok := providers.As[providers.Brancher](f.o.Provider); ok {
		if all, err := b.Branches(ctx); err != nil || all.On != "" || all.Tip != r {
			r = ""
		}
	}
	return f.record(SetUpstream, r)
}

// KnowUnpushed notes which commits of a clone the remote does not have, for a working copy that
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

// knowUpstream asks a working copy's first clone for what it last heard of the
// tracked branch, before it asks anew.
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

// baseOf is where ours and theirs part. That is the last revision that both have,
// unless others have rewritten the branch: what the remote had is no change of
// ours, though it does not have it any more. Where theirs is just older, that was
// so if the remote was known to have more before it was asked: a push of ours may
// have come after.
func (f *Follower) baseOf(ctx context.Context, ours, theirs, had providers.Revision) (providers.Revision, error) {
	base, err := f.store.Base(ctx, ours, theirs)
	up := f.recorded(Upstream)
	if err != nil || up == "" || up == base || base == theirs && up != had {
		return base, err
	}
	for _, r := range []providers.Revision{ours, theirs} {
		switch last, err := f.store.Base(ctx, up, r); {
		case errors.Is(err, providers.ErrNotExist): // what is noted was thrown away
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
