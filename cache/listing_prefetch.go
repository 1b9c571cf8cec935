package cache

import (
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// Listing ahead of a walk.
//
// find(1), grep -r and ls -R look at one directory after the other. A listing of each
// would cost a round trip for each, and again after the TTL. A flat store, whose
// directories are only what names have in common (Capabilities.ImpliedDirs), lists a
// thousand names with all that lies below for the same price. So a walk is recognised
// when a directory has to be listed soon after its parent was read, or one of its siblings
// had to be listed too. A lookup of a name below several directories, one directory
// after the other, is no walk. From there on the tree is listed recursively, page by page
// (listing_page.go). A directory is covered when it lies whole within the pages. When the
// walker looks at it, the content of the pages is applied by the rules of a listing that
// was begun when the first of these pages was asked for: that is how old its names are
// afterwards, and what was changed locally since then stays. It makes no difference
// whether the directory was known.
//
// A directory that the walker comes to while a page is under way waits for that page.
// Once the walker has come to a second directory, the next page is asked for as soon as the
// store says where it begins, so that the store is never idle. Pages are never more than
// two ahead of the walker, and end when the walker does not come, or is so slow that they
// would be too old. When the walk stands still what was not taken is dropped.
//
// The listing of a directory that turns out to be no small tree (listing_small.go) has
// brought the first page of a walk already. It is kept in case a walk follows; when none
// does, that says nothing about walks.
//
// It is a guess: a directory that the pages do not cover, or whose page fails or is older
// than the TTL, is listed by itself. Each walk of which nothing was taken makes the next
// one harder to begin.

const (
	walkPause  = 2 * time.Second // a walk that stands still for longer has ended
	walkVisits = 16              // directories that are remembered as listed
	walkNeed   = 16              // looks in a row that begin a walk, at most
	walkAhead  = 2               // pages that are asked for before the walker comes to them

	pagesMost = 8       // pages that are kept, and that one directory may fill
	pageBytes = 1 << 20 // what a page takes in memory
)

// walks finds walks, and has one at a time. The volume's lock guards it.
type walks struct {
	visits [walkVisits]visit // the last directories, in a ring
	turn   int
	row    int   // looks in a row that were near to another
	need   int   // so many begin a walk; 0: 1
	walk   *walk // nil: there is none
}

// visit is a look at a directory that was unknown or expired; read says that all its
// names were read, fresh or not.
type visit struct {
	at   providers.Locator
	when time.Time
	read bool
}

// renew makes the names of a directory known as they are: by what the pages of a walk
// say, or by a listing of it.
func (v *Volume) renew(w *waiting, dir table.Ino) error {
	if c := v.awaitCovered(w, dir); c != nil && v.applyCovered(w, dir, c) {
		return nil
	}
	return v.list(w, dir)
}

// canPrefetch reports whether pages can cover directories of the provider. A store of
// whole revisions is listed as of one revision, which a page could outlive.
func (v *Volume) canPrefetch() bool {
	if !v.caps.ImpliedDirs || !v.caps.RecursiveList || !v.caps.ListAfter {
		return false
	}
	_, whole := v.syncer()
	return !whole
}

// awaitCovered gives what the pages of a walk say of a directory, and waits for the page
// that may cover it; nil: it is to be listed by itself.
func (v *Volume) awaitCovered(w *waiting, dir table.Ino) *covered {
	if !v.prefetches {
		return nil
	}
	for waited := false; ; waited = true {
		locked := v.lock()
		c, page := locked.askCovered(dir, waited)
		locked.unlock()
		if page == nil {
			return c
		}
		select {
		case <-page.done:
			w.pages.Add(1)
			w.moved()
		case <-w.Done():
			return nil
		}
	}
}

// askCovered gives what is covered of a directory, or else the page to wait for. waited
// says that one came already.
func (v *View) askCovered(dir table.Ino, waited bool) (*covered, *page) {
	at, ok := v.RemotePathOf(dir)
	if !ok || v.closing {
		return nil, nil
	}
	f, now := &v.walks, v.o.Now()
	near := f.isNear(at, now)
	if !waited {
		f.visited(visit{at: at, when: now})
	}
	if at.IsRoot() { // which no page covers
		return nil, nil
	}
	r := f.walk
	if r != nil && r.has(at) {
		r.keep()
		if c := r.take(v, at, near); c != nil {
			return c, nil
		}
		switch c := r.opened(v, at); {
		case c != nil && r.mayWait(v, c):
			return nil, r.ask(v)
		case c != nil:
			return nil, nil
		case !waited && len(r.pages) > 0:
			return nil, r.pages[0]
		}
	}
	if waited || r != nil && len(r.pages) > 0 || v.belief.IsFailing() {
		return nil, nil
	}
	if !near {
		f.row = 0
		return nil, nil
	}
	if f.row++; f.row < f.need {
		return nil, nil
	}
	return nil, v.beginWalk(at)
}

// isNear reports whether a directory that has to be listed is one that a walk would come
// to now.
func (f *walks) isNear(at providers.Locator, now time.Time) bool {
	if f.walk != nil && f.walk.followed && f.walk.has(at) {
		return true
	}
	for _, one := range f.visits {
		since := now.Sub(one.when)
		isParent := one.read && one.at == at.Parent()
		isSibling := !one.read && one.at != at && !one.at.IsRoot() && one.at.Parent() == at.Parent()
		if (isParent || isSibling) && since >= 0 && since <= walkPause {
			return true
		}
	}
	return false
}

func (f *walks) visited(one visit) {
	f.visits[f.turn] = one
	f.turn = (f.turn + 1) % walkVisits
}

// sawRead is told when a program begins to read the names of a directory.
func (v *Volume) sawRead(dir table.Ino) {
	if !v.prefetches {
		return
	}
	locked := v.lock()
	defer locked.unlock()
	if at, ok := locked.RemotePathOf(dir); ok {
		locked.walks.visited(visit{at: at, when: v.o.Now(), read: true})
	}
}

// beginWalk begins the recursive listing with what is in a directory, and asks for its
// first page; nil: there is no room for it. A walk that this goes on with is of the same
// tree.
func (v *View) beginWalk(at providers.Locator) *page {
	r := v.newWalk(at.Parent(), at)
	if old := v.walks.walk; old != nil && old.followed && old.has(at) {
		r.at = old.at
	}
	if !r.start(v) {
		return nil
	}
	return r.ask(v)
}

// endWalk drops what the pages of a walk say: something newer is asked for.
func (v *Volume) endWalk() {
	locked := v.lock()
	defer locked.unlock()
	if r := locked.walks.walk; r != nil {
		r.end(locked)
	}
}

// applyCovered makes a directory known as pages have it. It reports false when the
// directory is to be listed instead: it was moved, or listed, since the page was asked
// for, or something failed, which its own listing says.
func (v *Volume) applyCovered(w *waiting, dir table.Ino, c *covered) bool {
	defer func() {
		locked := v.lock()
		defer locked.unlock()
		c.page.dropped(locked)
	}()
	h, err := v.newListing(dir)
	if err != nil || h == nil || h.at != c.at || !c.holds(v, dir) {
		return false
	}
	if err := h.adopt(w, c.page.start, c.entries, c.page.mine); err != nil {
		v.o.Log.Debug("a directory that was listed ahead is listed by itself", "path", c.at, "err", err)
		return false
	}
	return true
}

// holds reports whether what a page says of a place is said of this directory: we have
// changed no name on the way to it at the remote, nor was it listed, since the page was
// asked for.
func (c *covered) holds(v *Volume, dir table.Ino) bool {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(dir)
	if n == nil || n.Loaded && timeOf(n.Listed).After(c.page.start) {
		return false
	}
	for at := c.at; !at.IsRoot(); at = at.Parent() {
		above, ok := locked.DirAtRemotePath(at.Parent())
		if !ok {
			return false
		}
		if _, ours := locked.IsOutdated(c.page.mine, table.Link{Dir: above, Name: at.Name()}); ours {
			return false
		}
	}
	return true
}
