package cache

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// A small tree is listed at once.
//
// A flat store lists a directory with all below it for the price of the directory alone,
// as long as that fits into a page, and says of directories what no listing of the one
// above says. So a directory that was never listed is asked for that way. Directories
// count as known only when the whole answer is there; what was changed locally since the
// listing began stays as it is. Where the first page does not hold it all, the directory
// is listed by itself, and the page is the first one for a walk that may follow
// (listing_prefetch.go).

// mayBeSmall reports whether the listing of the directory may bring all below it. For a
// walk there are pages that do.
func (h *remoteDir) mayBeSmall() bool {
	v := h.v
	if !h.first || !h.clean || !v.caps.RecursiveList || !v.caps.ImpliedDirs {
		return false
	}
	locked := v.lock()
	defer locked.unlock()
	r := locked.walks.walk
	isGuess := r != nil && r.guess && !r.followed && r.opened(locked, h.at) == nil
	return r == nil || !r.has(h.at) || isGuess
}

// gatherTree is gather by a recursive listing. It reports false when that takes more
// than the directory itself would, or the store cannot do it. The tree ends when the
// listing is applied.
func (h *remoteDir) gatherTree(w *waiting, mine *tree.Observation) (done bool, err error) {
	r := h.v.newWalk(h.at, providers.Locator{})
	r.guess = true
	h.reset()
	for {
		entries, last, err := r.bring(w)
		isDeep := slices.ContainsFunc(entries, h.isBelow)
		switch {
		case errors.Is(err, providers.ErrUnsupported):
			return false, nil
		case err != nil:
			return true, err
		case last:
			h.tree = r
			return true, h.page(w, slices.DeleteFunc(entries, h.isBelow), mine)
		case isDeep:
			r.offer()
			return false, nil
		}
		// So far it is what a listing of the directory alone brings. Nothing is kept.
		if err := h.page(w, entries, mine); err != nil {
			return true, err
		}
	}
}

// isBelow reports whether an entry lies deeper than in the directory.
func (h *remoteDir) isBelow(e providers.Info) bool { return e.Locator.Parent() != h.at }

// bring brings the next page while the caller waits. Several attempts may be needed: only
// the last one says where the page behind begins.
func (r *walk) bring(w *waiting) (entries []providers.Info, last bool, err error) {
	v := r.v
	locked := v.lock()
	p, token := r.newPage(locked), r.token
	locked.unlock()
	var got providers.Page
	err = v.retry(w, func(context.Context) (err error) {
		if got, err = v.p.List(w, r.at, r.options(token)); err != nil {
			v.failed(err)
			return err
		}
		w.moved()
		return nil
	})
	locked = v.lock()
	defer locked.unlock()
	defer p.dropped(locked)
	if err == nil {
		r.follows(locked, p, got.Next)
		r.cover(locked, got.Entries, p, r.after)
	}
	return got.Entries, p.last, err
}

// offer has it go ahead of a walk that may follow, unless there is one already.
func (r *walk) offer() {
	v := r.v
	locked := v.lock()
	defer locked.unlock()
	f := &locked.walks
	if !v.prefetches || locked.closing || f.walk != nil && f.walk.followed || !r.start(locked) {
		r.drop(locked)
	}
}

// adoptTree makes the directories below known, unless there was an error. One that
// fails is listed when a program looks.
func (h *remoteDir) adoptTree(w *waiting, err error) {
	r, v := h.tree, h.v
	if err != nil {
		locked := v.lock()
		defer locked.unlock()
		r.drop(locked)
		return
	}
	for _, at := range slices.SortedFunc(maps.Keys(r.whole), providers.Locator.Compare) {
		c := r.whole[at]
		if dir, ok, err := v.walkRemotePath(w, at, false); err == nil && ok {
			v.applyCovered(w, dir, c)
			continue
		}
		locked := v.lock()
		c.page.dropped(locked)
		locked.unlock()
	}
}
