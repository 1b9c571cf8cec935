package cache

import (
	"context"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// Listing ahead.
//
// A flat store, whose directories are only what names have in common
// (Capabilities.ImpliedDirs), lists one with all below it (RecursiveList) for the
// price of the directory alone, as long as that fits into a page. So a
// directory that nobody has listed yet is asked for that way, and a walk through
// many small directories costs few requests. When the first page does not hold
// it all, the directory itself is listed for who waits, and the rest goes on
// coming for a few pages more: a tree that is larger than those is listed
// directory by directory, as somebody looks into it. Directories count as known
// only when the whole answer is there; what was changed here since the listing
// began stays as it is, as with any other listing.

// aheadPages bounds what is listed of a tree in advance, pageBytes is what a page
// of it takes in memory.
const (
	aheadPages = 8
	pageBytes  = 1 << 20
)

// ahead is a recursive listing of the directory of a harvest.
type ahead struct {
	h       *harvest
	mine    *listing
	entries []providers.Info
	next    string // token of the next page
}

// canAhead reports whether the listing of a directory may bring all below it.
func (h *harvest) canAhead() bool {
	return h.first && h.clean && h.v.caps.RecursiveList && h.v.caps.ImpliedDirs
}

// gatherAhead is gather by a recursive listing. It reports false when that takes
// more than the directory itself would: then h.ahead goes on with it later.
func (h *harvest) gatherAhead(w *waiting, mine *listing) (done bool, err error) {
	a := &ahead{h: h, mine: h.v.beginListing()}
	h.ahead = a
	switch err := a.more(w); {
	case err != nil:
		return true, err
	case a.next == "":
		h.reset()
		return true, h.page(w, a.direct(), mine)
	case a.isDeep():
		return false, nil
	}
	return a.flat(w, mine)
}

// flat goes on with a directory of many names as long as nothing deeper comes: so
// far it is what a listing of the directory alone brings. Nothing is kept.
func (a *ahead) flat(w *waiting, mine *listing) (done bool, err error) {
	a.h.reset()
	for {
		if a.isDeep() {
			a.entries, a.next = nil, "" // too much for a listing in advance
			return false, nil
		}
		entries := a.entries
		a.entries = nil
		if err := a.h.page(w, entries, mine); err != nil || a.next == "" {
			return true, err
		}
		if err := a.more(w); err != nil {
			return true, err
		}
	}
}

// more adds a page, for who waits.
func (a *ahead) more(w *waiting) error {
	v := a.h.v
	return v.retry(w, func(context.Context) error {
		err := a.page(w)
		if err != nil {
			v.failed(err)
		}
		return err
	})
}

// page adds one page.
func (a *ahead) page(w *waiting) error {
	page, err := a.h.v.p.List(w, a.h.at, providers.ListOptions{Recursive: true, Token: a.next})
	if err != nil {
		return err
	}
	w.moved()
	a.entries, a.next = append(a.entries, page.Entries...), page.Next
	return nil
}

// isDeep reports whether something has come that lies deeper than in the
// directory itself.
func (a *ahead) isDeep() bool {
	return slices.ContainsFunc(a.entries, func(e providers.Info) bool { return e.Locator.Parent() != a.h.at })
}

// direct are the entries of the directory itself.
func (a *ahead) direct() []providers.Info {
	return slices.DeleteFunc(slices.Clone(a.entries), func(e providers.Info) bool { return e.Locator.Parent() != a.h.at })
}

// end takes over what came beside the directory itself, which is known now
// unless there was an error. What is still to come does not hold anybody up.
func (a *ahead) end(w *waiting, err error) {
	v := a.h.v
	if err == nil && a.next != "" {
		v.background(a.goOn)
		return
	}
	if err == nil {
		a.below(w)
	}
	v.endListing(a.mine)
}

// goOn lists the rest, if it is not too much and there is room for it, and takes
// it over.
func (a *ahead) goOn() {
	v := a.h.v
	defer v.endListing(a.mine)
	release, ok := v.o.Fetches.TryTake(a, aheadPages*pageBytes)
	if !ok {
		return
	}
	defer release()
	w := v.wait(nil, v.o.Patience)
	defer w.close()
	for pages := 1; a.next != ""; pages++ {
		if pages == aheadPages || a.page(w) != nil {
			return
		}
	}
	v.puller.still.RLock()
	defer v.puller.still.RUnlock()
	a.below(w)
}

// below takes over what came of the directories below, where nobody has listed
// them meanwhile. What fails is listed when somebody looks.
func (a *ahead) below(w *waiting) {
	inside := map[providers.Locator][]providers.Info{}
	var dirs []providers.Locator
	for _, e := range a.entries {
		if e.Kind == providers.KindDir {
			dirs = append(dirs, e.Locator)
		}
		inside[e.Locator.Parent()] = append(inside[e.Locator.Parent()], e)
	}
	slices.SortFunc(dirs, func(x, y providers.Locator) int { return strings.Compare(x.String(), y.String()) })
	for _, at := range dirs {
		if err := a.take(w, at, inside[at]); err != nil {
			a.h.v.o.Log.Debug("a directory that was listed in advance is listed again", "path", at, "err", err)
		}
	}
}

// take makes the names of one directory known.
func (a *ahead) take(w *waiting, at providers.Locator, entries []providers.Info) error {
	v := a.h.v
	dir, ok, err := v.walkHome(w, at, false)
	if err != nil || !ok {
		return err
	}
	h, err := v.newHarvest(dir)
	if err != nil || h == nil || !h.first || !h.clean || h.at != at {
		return err
	}
	h.start = a.h.start
	h.reset()
	if err := h.page(w, entries, a.mine); err != nil {
		return err
	}
	return h.apply(w, a.mine)
}
