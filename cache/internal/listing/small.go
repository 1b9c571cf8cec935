package listing

import (
	"context"
	"errors"
	"slices"

	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// A small tree is listed at once.
//
// A flat store lists a directory with all below it for the price of the directory alone, as long
// as that fits into a page, and tells facts about directories that a listing of the parent leaves
// out. So a directory that was never listed is asked for that way. Directories count as known only
// when the whole answer is there; local changes since the listing began stay. If the first page
// does not hold it all, the directory is listed by itself, and the page is the first one for a
// walk that may follow (Ahead).

// mayBeSmall reports whether the listing of the directory may bring all below it. For a walk there
// are pages that do.
func (h *remoteDir) mayBeSmall() bool {
	if !h.first || !h.clean || !h.of.o.Capabilities.RecursiveList || !h.of.o.Capabilities.ImpliedDirs {
		return false
	}
	return h.of.Ahead.MayBeSmall(h.at)
}

// gatherTree is gather by a recursive listing. It reports false when that takes more than the
// directory itself would, or the store cannot do it. The tree ends when the listing is applied.
func (h *remoteDir) gatherTree(w revision.Waiting, mine *tree.Observation) (done bool, err error) {
	r := h.of.Ahead.Tree(h.at)
	handedOver := false // to this listing, or to a walk that may follow
	defer func() {
		if !handedOver {
			r.Drop()
		}
	}()
	h.reset()
	for {
		entries, last, err := r.Bring(func(o providers.ListOptions) (providers.Page, error) { return h.of.listPage(w, h.at, o) })
		isDeep := slices.ContainsFunc(entries, h.isBelow)
		switch {
		case errors.Is(err, providers.ErrUnsupported), errors.Is(err, providers.ErrBrokenOff):
			return false, nil
		case err != nil:
			return true, err
		case last:
			h.tree, handedOver = r, true
			return true, h.page(w, slices.DeleteFunc(entries, h.isBelow), mine)
		case isDeep:
			r.Offer()
			handedOver = true
			return false, nil
		}
		// So far it is the listing of the directory alone. No page is kept.
		if err := h.page(w, entries, mine); err != nil {
			return true, err
		}
	}
}

// isBelow reports whether an entry lies deeper than in the directory.
func (h *remoteDir) isBelow(e providers.Info) bool { return e.Locator.Parent() != h.at }

// listPage lists a page, with all patience.
func (ls *Listings) listPage(w revision.Waiting, at providers.Locator, o providers.ListOptions) (page providers.Page, err error) {
	err = ls.o.Waits.Retry(w, func(context.Context) (err error) {
		if page, err = ls.o.Provider.List(w, at, o); err != nil {
			ls.failed(err)
			return err
		}
		w.Moved()
		return nil
	})
	return page, providers.PageError(o, err)
}

// adoptTree makes the directories below known, unless there was an error. One that fails is listed
// when a program looks.
func (h *remoteDir) adoptTree(w revision.Waiting, head revision.Held, err error) {
	if err != nil {
		h.tree.Drop()
		return
	}
	for _, c := range h.tree.All() {
		v := h.of.o.Tree.Lock()
		dir, ok := v.DirAtRemotePath(c.At)
		h.of.o.Tree.Unlock()
		if ok {
			h.of.applyCovered(w, head, dir, c)
		} else {
			h.of.Ahead.Drop(c)
		}
	}
}

// renew makes the present names of a directory known: by the pages of a walk, with a call of came
// for each that arrived, or by a listing of it.
func (ls *Listings) renew(w revision.Waiting, dir table.Ino, came func()) error {
	// Walks are ahead in stores that keep no revisions only.
	if c := ls.Ahead.Await(w, dir, came); c != nil && ls.applyCovered(w, revision.NoHead(), dir, c) {
		return nil
	}
	return ls.List(w, dir)
}

// applyCovered makes a directory known by pages, which are dropped. It reports false when the
// directory is to be listed instead: it was moved, or listed, since the page was asked for, or an
// error occurred, which its own listing reports.
func (ls *Listings) applyCovered(w revision.Waiting, head revision.Held, dir table.Ino, c *Covered) bool {
	defer ls.Ahead.Drop(c)
	h, err := ls.newListing(dir)
	if err != nil || h == nil || h.at != c.At || !ls.Ahead.Holds(c, dir) {
		return false
	}
	if err := h.adopt(w, head, c.Start(), c.Entries, c.Mine()); err != nil {
		ls.o.Belief.Log.Debug("a directory that was listed ahead is listed by itself", "path", c.At, "err", err)
		return false
	}
	return true
}
