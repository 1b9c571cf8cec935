package cache

import (
	"context"
	"time"

	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/revision"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/cache/internal/waiting"
	"github.com/wsmount/wsmount/providers"
)

// lister lists directories ahead of a walk.
type lister struct{ v *Volume }

var _ listing.Lister = lister{}

// List implements listing.Lister.
func (l lister) List(ctx context.Context, at providers.Locator, o providers.ListOptions) (providers.Page, error) {
	return l.v.p.List(ctx, at, o)
}

// MayList implements listing.Lister.
func (l lister) MayList(*tree.View) bool { return !l.v.held.closing }

// Answered implements listing.Lister.
func (l lister) Answered(_ *tree.View, took time.Duration) { l.v.held.answered(took, nil) }

// newAhead makes what lists directories ahead. Pages can cover directories where they are
// only what keys lie below; but not those of a store of whole revisions, which is listed
// as of one revision: a page could outlive that.
func (v *Volume) newAhead() *listing.Ahead {
	_, whole := revision.StoreOf(v.p)
	return listing.NewAhead(listing.AheadOptions{Tree: v.tree, Belief: v.belief, Lists: lister{v}, Room: v.o.Fetches, Context: v.ctx, Go: v.background,
		CanCover: v.caps.ImpliedDirs && v.caps.RecursiveList && v.caps.ListAfter && !whole})
}

// renew makes the names of a directory known as they are: by what the pages of a walk
// say, of which each that came is told, or by a listing of it.
func (v *Volume) renew(w *waiting.Context, dir table.Ino, came func()) error {
	// Walks are ahead in stores that keep no revisions only.
	if c := v.ahead.Await(w, dir, came); c != nil && v.applyCovered(w, revision.NoHead(), dir, c) {
		return nil
	}
	return v.list(w, dir)
}

// applyCovered makes a directory known as pages have it, which are dropped. It reports
// false when the directory is to be listed instead: it was moved, or listed, since the page
// was asked for, or something failed, which its own listing says.
func (v *Volume) applyCovered(w *waiting.Context, head revision.Held, dir table.Ino, c *listing.Covered) bool {
	defer v.ahead.Drop(c)
	h, err := v.newListing(dir)
	if err != nil || h == nil || h.at != c.At || !v.ahead.Holds(c, dir) {
		return false
	}
	if err := h.adopt(w, head, c.Start(), c.Entries, c.Mine()); err != nil {
		v.o.Log.Debug("a directory that was listed ahead is listed by itself", "path", c.At, "err", err)
		return false
	}
	return true
}
