package cache

import (
	"context"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// A small tree is listed at once.
//
// A flat store lists a directory with all below it for the price of the directory alone,
// as long as that fits into a page, and says of directories what no listing of the one
// above says. So a directory that was never listed is asked for that way. Where the first
// page does not hold it all, the directory is listed by itself, and for a walk there are
// the pages of listing_prefetch.go. Directories count as known only when the whole answer
// is there; what was changed locally since the listing began stays as it is.

// smallTree is a recursive listing of the directory of a harvest.
type smallTree struct {
	h       *harvest
	mine    *listing
	entries []providers.Info
	next    string // token of the next page
}

// mayBeSmall reports whether the listing of the directory may bring all below it. For a
// walk there are pages that do.
func (h *harvest) mayBeSmall() bool {
	v := h.v
	if !h.first || !h.clean || !v.caps.RecursiveList || !v.caps.ImpliedDirs {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.prefetch.walk == nil || !v.prefetch.walk.has(h.at)
}

// gatherTree is gather by a recursive listing. It reports false when that takes more
// than the directory itself would. The tree ends when the harvest is applied.
func (h *harvest) gatherTree(w *waiting, mine *listing) (done bool, err error) {
	t := &smallTree{h: h, mine: h.v.beginListing()}
	h.tree = t
	h.reset()
	for {
		err := t.more(w)
		switch {
		case err != nil:
			return true, err
		case t.next == "":
			return true, h.page(w, t.direct(), mine)
		case t.isDeep():
			t.entries = nil
			return false, nil
		}
		// So far it is what a listing of the directory alone brings. Nothing is kept.
		entries := t.entries
		t.entries = nil
		if err := h.page(w, entries, mine); err != nil {
			return true, err
		}
	}
}

// more adds a page.
func (t *smallTree) more(w *waiting) error {
	v := t.h.v
	return v.retry(w, func(context.Context) error {
		page, err := v.p.List(w, t.h.at, providers.ListOptions{Recursive: true, Token: t.next})
		if err != nil {
			v.failed(err)
			return err
		}
		w.moved()
		t.entries, t.next = append(t.entries, page.Entries...), page.Next
		return nil
	})
}

// isDeep reports whether something has come that lies deeper than in the directory.
func (t *smallTree) isDeep() bool {
	return slices.ContainsFunc(t.entries, func(e providers.Info) bool { return e.Locator.Parent() != t.h.at })
}

// direct are the entries of the directory itself.
func (t *smallTree) direct() []providers.Info {
	return slices.DeleteFunc(slices.Clone(t.entries), func(e providers.Info) bool { return e.Locator.Parent() != t.h.at })
}

// end takes over what came beside the directory itself, which is known now unless there
// was an error, unless another request has listed it meanwhile. A directory that fails is listed
// when a program looks.
func (t *smallTree) end(w *waiting, err error) {
	v := t.h.v
	defer v.endListing(t.mine)
	if err != nil {
		return
	}
	inside := map[providers.Locator][]providers.Info{}
	var dirs []providers.Locator
	for _, e := range t.entries {
		if e.Kind == providers.KindDir {
			dirs = append(dirs, e.Locator)
		}
		inside[e.Locator.Parent()] = append(inside[e.Locator.Parent()], e)
	}
	slices.SortFunc(dirs, func(x, y providers.Locator) int { return strings.Compare(x.String(), y.String()) })
	for _, at := range dirs {
		if err := t.take(w, at, inside[at]); err != nil {
			v.o.Log.Debug("a directory that was listed with the one above is listed again", "path", at, "err", err)
		}
	}
}

// take makes the names of one directory known.
func (t *smallTree) take(w *waiting, at providers.Locator, entries []providers.Info) error {
	v := t.h.v
	dir, ok, err := v.walkHome(w, at, false)
	if err != nil || !ok {
		return err
	}
	h, err := v.newHarvest(dir)
	if err != nil || h == nil || !h.first || !h.clean || h.at != at {
		return err
	}
	return h.adopt(w, t.h.start, entries, t.mine)
}
