package git

import "github.com/go-git/go-git/v5/plumbing"

// What clones of one repository do that share a directory, and are without blobs: one
// at a time brings a batch and lends what it has, and the next borrows that first. So
// all of them ask the server once. What somebody waits for does not wait for a turn.

// turnName is the lock of who brings a batch. The directory's own is held for moments.
const turnName = "turn"

// turn waits until no other clone brings a batch, and borrows what they have lent. end
// lends what this one has, if there is news.
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

// borrow adds packs of commits that are here, so that all of their history is ours. What
// is wrong with one is no error: the server has it too.
func (w *partial) borrow(pool *shared) {
	for _, l := range pool.list {
		if w.repo.hasCommit(plumbing.NewHash(l.Commit)) {
			_ = pool.borrow(w.repo, l)
		}
	}
}

// lend offers what this clone has, as long as all of that came with its first commit.
func (w *partial) lend(pool *shared) {
	branch, first := w.repo.state.Branch, plumbing.NewHash(w.repo.state.First)
	tip, err := w.repo.refs.Get(originRef(branch))
	if err != nil || first.IsZero() || tip != first {
		return
	}
	for _, l := range pool.list {
		if l.Branch == branch && (!w.repo.hasCommit(plumbing.NewHash(l.Commit)) || !l.Partial) {
			return // it is of a later one, or there is nothing that it lacks
		}
	}
	_ = pool.offer(w.repo, branch, first)
}
