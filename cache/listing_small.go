package cache

import (
	"context"
	"errors"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
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
// (listing.Ahead).

// mayBeSmall reports whether the listing of the directory may bring all below it. For a
// walk there are pages that do.
func (h *remoteDir) mayBeSmall() bool {
	v := h.v
	if !h.first || !h.clean || !v.caps.RecursiveList || !v.caps.ImpliedDirs {
		return false
	}
	return v.ahead.MayBeSmall(h.at)
}

// gatherTree is gather by a recursive listing. It reports false when that takes more
// than the directory itself would, or the store cannot do it. The tree ends when the
// listing is applied.
func (h *remoteDir) gatherTree(w *waiting.Context, mine *tree.Observation) (done bool, err error) {
	r := h.v.ahead.Tree(h.at)
	h.reset()
	for {
		entries, last, err := r.Bring(func(o providers.ListOptions) (providers.Page, error) { return h.v.listPage(w, h.at, o) })
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
			r.Offer()
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

// listPage lists a page, with all patience.
func (v *Volume) listPage(w *waiting.Context, at providers.Locator, o providers.ListOptions) (page providers.Page, err error) {
	err = v.waits.Retry(w, func(context.Context) (err error) {
		if page, err = v.p.List(w, at, o); err != nil {
			v.failed(err)
			return err
		}
		w.Moved()
		return nil
	})
	return page, err
}

// adoptTree makes the directories below known, unless there was an error. One that
// fails is listed when a program looks.
func (h *remoteDir) adoptTree(w *waiting.Context, head revision.Held, err error) {
	v := h.v
	if err != nil {
		h.tree.Drop()
		return
	}
	for _, c := range h.tree.All() {
		locked := v.lock()
		dir, ok := locked.DirAtRemotePath(c.At)
		locked.unlock()
		if ok {
			v.applyCovered(w, head, dir, c)
		} else {
			v.ahead.Drop(c)
		}
	}
}
