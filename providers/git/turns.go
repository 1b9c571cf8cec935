package git

import "github.com/go-git/go-git/v5/plumbing"

// Turns of clones of one repository that share a directory, and are without blobs: one at a time
// brings a batch and lends its packs, and the next borrows those first. So together they ask the
// server once. Blobs that a caller waits for do not wait for a turn.

// turnName is the lock for a batch's whole time. The directory's own is held for moments.
const turnName = "turn"

// turn waits until no other clone brings a batch, and borrows the packs that they have lent. end
// lends this clone's, if there is news.
func (w *partial) turn() (end func(news bool)) {
	if w.shared == "" {
		return func(bool) {}
	}
	dir := sharedDir(w.shared, w.repo.state.URL)
	lock := lockShared(w.ctx, dir, turnName)
	if lock == nil {
		return func(bool) {}
	}
	if pool := openShared(w.ctx, w.shared, w.repo.state.URL); pool != nil {
		w.borrow(pool)
		pool.close()
	}
	return func(news bool) {
		defer func() { _ = lock.Close() }()
		if !news {
			return
		}
		if pool := openShared(w.ctx, w.shared, w.repo.state.URL); pool != nil {
			defer pool.close()
			w.lend(pool)
		}
	}
}

// borrow adds packs of commits that are local, so that all of their history is. A damaged pack is
// no error: the server has it too.
func (w *partial) borrow(pool *shared) {
	for _, l := range pool.list {
		if w.repo.hasCommit(plumbing.NewHash(l.Commit)) {
			_ = pool.borrow(w.repo, l)
		}
	}
}

// lend offers this clone's packs, as long as all of them came with its first commit.
func (w *partial) lend(pool *shared) {
	branch, first := w.repo.state.Branch, plumbing.NewHash(w.repo.state.First)
	tip, err := w.repo.refs.Get(originRef(branch))
	if err != nil || first.IsZero() || tip != first {
		return
	}
	for _, l := range pool.list {
		if l.Branch == branch && (!w.repo.hasCommit(plumbing.NewHash(l.Commit)) || !l.Partial) {
			return // that entry is of a later commit, or lacks no blobs
		}
	}
	_ = pool.offer(w.repo, branch, first)
}
