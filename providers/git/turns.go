package git

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing"
)

// Turns of clones of one repository that share a directory, and are without blobs: one at a time
// brings a batch and lends its packs, and the next borrows those first. So together they ask the
// server once. Blobs that a caller waits for do not wait for a turn.

// turnName is the lock for a batch's whole time. The directory's own is held for moments.
const turnName = "turn"

// turn waits until no other clone that shares a directory brings a batch, and borrows the packs
// that they have lent. end lends this clone's, if there is news.
func (r *repository) turn(ctx context.Context, shared string) (end func(news bool)) {
	if shared == "" {
		return func(bool) {}
	}
	dir := sharedDir(shared, r.state.URL)
	lock := lockShared(ctx, dir, turnName)
	if lock == nil {
		return func(bool) {}
	}
	if pool := openShared(ctx, shared, r.state.URL); pool != nil {
		r.borrow(pool)
		pool.close()
	}
	return func(news bool) {
		defer func() { _ = lock.Close() }()
		if !news {
			return
		}
		if pool := openShared(ctx, shared, r.state.URL); pool != nil {
			defer pool.close()
			r.lend(pool)
		}
	}
}

// borrow adds packs of commits that are local, so that all of their history is. A damaged pack is
// no error: the server has it too.
func (r *repository) borrow(pool *shared) {
	for _, l := range pool.list {
		if r.hasCommit(plumbing.NewHash(l.Commit)) {
			_ = pool.borrow(r, l)
		}
	}
}

// lend offers this clone's packs, as long as all of them came with its first commit.
func (r *repository) lend(pool *shared) {
	branch, first := r.state.Branch, plumbing.NewHash(r.state.First)
	tip, err := r.refs.Get(originRef(branch))
	if err != nil || first.IsZero() || tip != first {
		return
	}
	for _, l := range pool.list {
		if l.Branch == branch && (!r.hasCommit(plumbing.NewHash(l.Commit)) || !l.Partial) {
			return // that entry is of a later commit, or lacks no blobs
		}
	}
	_ = pool.offer(r, branch, first)
}
