package listing

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Listing ahead of a walk.
//
// find(1), grep -r and ls -R look at one directory after the other. A listing of each would cost a
// round trip for each, and again after the TTL. A flat store, whose directories are only common
// prefixes of names (Capabilities.ImpliedDirs), lists a thousand names with all that lies below
// for the same price. So a walk is recognised when a directory has to be listed soon after its
// parent was read, or one of its siblings had to be listed too. A lookup of a name below several
// directories, one directory after the other, is no walk. From there on the tree is listed
// recursively, page by page (page.go). A directory is covered when it lies whole within the pages.
// When the walker looks at it, the content of the pages is applied by the rules of a listing that
// was begun when the first of these pages was asked for: that is how old its names are afterwards,
// and local changes since then stay. It makes no difference whether the directory was known.
//
// A directory that the walker reaches while a page is under way waits for that page. Once the
// walker has reached a second directory, the next page is asked for as soon as the store says
// where it begins, so that the store is never idle. Pages are never more than two ahead of the
// walker, and end when the walker does not come, or is so slow that they would be too old. When
// the walk stands still the unused pages are dropped.
//
// The listing of a directory that turns out to be no small tree (Ahead.Tree) has brought the first
// page of a walk already. It is kept in case a walk follows; when none does, that says nothing
// about walks.
//
// It is a guess: a directory that the pages do not cover, or whose page fails or is older than the
// TTL, is listed by itself. Each walk of which no page was used makes the next one harder to
// begin.

const (
	WalkPause  = 2 * time.Second // a walk that stands still for longer has ended
	walkVisits = 16              // directories that are remembered as listed
	walkNeed   = 16              // looks in a row that begin a walk, at most
	walkAhead  = 2               // pages that are asked for before the walker comes to them

	pagesMost = 8       // pages that are kept, and that one directory may fill
	pageBytes = 1 << 20 // memory for a page
)

// Ahead finds walks, and lists ahead of one at a time.
type Ahead struct {
	o AheadOptions

	// The lock of the tree guards the rest.
	visits [walkVisits]visit // the last directories, in a ring
	turn   int
	row    int   // looks in a row that were near to another
	need   int   // so many begin a walk; 0: 1
	walk   *Walk // nil: there is none
}

// AheadOptions are the parts that an Ahead works with.
type AheadOptions struct {
	Tree    *tree.Tree
	Belief  *Belief
	Lists   Lister
	Room    Room
	Context context.Context // ends with the working copy
	Go      func(func())    // runs in the background, until Context ends

	// CanCover says that pages can cover directories of the remote.
	CanCover bool
}

// Lister lists directories of the remote.
type Lister interface {
	List(ctx context.Context, at providers.Locator, o providers.ListOptions) (providers.Page, error)
	// MayList reports whether listings ahead may still begin: not when the working copy closes.
	// Answered is told the duration of one.
	MayList(*tree.View) bool
	Answered(v *tree.View, took time.Duration)
}

// Room is the memory that fetched data may take.
type Room interface {
	TryTake(reader any, n int64) (release func(), ok bool)
}

// NewAhead makes one that has seen no look.
func NewAhead(o AheadOptions) *Ahead { return &Ahead{o: o} }

// visit is a look at a directory that was unknown or expired; read says that all its
// names were read, fresh or not.
type visit struct {
	at   providers.Locator
	when time.Time
	read bool
}

// Await returns the part of a walk's pages that covers a directory, and waits for the page that
// may cover it; came is called for each that arrived. nil: it is to be listed by itself. The
// caller drops the result.
func (a *Ahead) Await(ctx context.Context, dir table.Ino, came func()) *Covered {
	if !a.o.CanCover {
		return nil
	}
	for waited := false; ; waited = true {
		v := a.o.Tree.Lock()
		c, page := a.ask(v, dir, waited)
		a.o.Tree.Unlock()
		if page == nil {
			return c
		}
		select {
		case <-page.done:
			came()
		case <-ctx.Done():
			return nil
		}
	}
}

// ask returns the covered part of a directory, or else the page to wait for. waited says that one
// came already.
func (a *Ahead) ask(v *tree.View, dir table.Ino, waited bool) (*Covered, *page) {
	at, ok := v.RemotePathOf(dir)
	if !ok || !a.o.Lists.MayList(v) {
		return nil, nil
	}
	now := a.o.Belief.Now()
	near := a.isNear(at, now)
	if !waited {
		a.visited(visit{at: at, when: now})
	}
	if at.IsRoot() { // no page covers the root
		return nil, nil
	}
	r := a.walk
	if r != nil && r.has(at) {
		r.keep()
		if c := r.take(v, at, near); c != nil {
			return c, nil
		}
		switch c := r.opened(at); {
		case c != nil && r.mayWait(c):
			return nil, r.ask(v)
		case c != nil:
			return nil, nil
		case !waited && len(r.pages) > 0:
			return nil, r.pages[0]
		}
	}
	if waited || r != nil && len(r.pages) > 0 || a.o.Belief.IsFailing() {
		return nil, nil
	}
	if !near {
		a.row = 0
		return nil, nil
	}
	if a.row++; a.row < a.need {
		return nil, nil
	}
	return nil, a.begin(v, at)
}

// isNear reports whether a directory that has to be listed is one that a walk would reach now.
func (a *Ahead) isNear(at providers.Locator, now time.Time) bool {
	if a.walk != nil && a.walk.followed && a.walk.has(at) {
		return true
	}
	for _, one := range a.visits {
		since := now.Sub(one.when)
		isParent := one.read && one.at == at.Parent()
		isSibling := !one.read && one.at != at && !one.at.IsRoot() && one.at.Parent() == at.Parent()
		if (isParent || isSibling) && since >= 0 && since <= WalkPause {
			return true
		}
	}
	return false
}

func (a *Ahead) visited(one visit) {
	a.visits[a.turn] = one
	a.turn = (a.turn + 1) % walkVisits
}

// SawRead is told when a program begins to read the names of a directory.
func (a *Ahead) SawRead(dir table.Ino) {
	if !a.o.CanCover {
		return
	}
	v := a.o.Tree.Lock()
	defer a.o.Tree.Unlock()
	if at, ok := v.RemotePathOf(dir); ok {
		a.visited(visit{at: at, when: a.o.Belief.Now(), read: true})
	}
}

// begin begins the recursive listing with the names in a directory, and asks for its first page;
// nil: there is no room for it. A walk that it continues keeps its tree.
func (a *Ahead) begin(v *tree.View, at providers.Locator) *page {
	r := a.newWalk(at.Parent(), at)
	if old := a.walk; old != nil && old.followed && old.has(at) {
		r.at = old.at
	}
	if !r.start(v) {
		return nil
	}
	return r.ask(v)
}

// End drops the pages of a walk: newer ones are asked for.
func (a *Ahead) End() {
	v := a.o.Tree.Lock()
	defer a.o.Tree.Unlock()
	if a.walk != nil {
		a.walk.end(v)
	}
}

// Start is when the first page of it was asked for, and Mine the observation that it belongs to.
func (c *Covered) Start() time.Time        { return c.page.start }
func (c *Covered) Mine() *tree.Observation { return c.page.mine }

// Drop says that the covered part of a directory is needed no more.
func (a *Ahead) Drop(c *Covered) {
	v := a.o.Tree.Lock()
	defer a.o.Tree.Unlock()
	c.page.dropped(v)
}

// Holds reports whether pages of a place are still about this directory: no name on the way to it
// was changed at the remote by us, nor was it listed, since the page was asked for.
func (a *Ahead) Holds(c *Covered, dir table.Ino) bool {
	v := a.o.Tree.Lock()
	defer a.o.Tree.Unlock()
	n := v.Inode(dir)
	if n == nil || n.Loaded && time.Unix(0, n.Listed).After(c.page.start) {
		return false
	}
	for at := c.At; !at.IsRoot(); at = at.Parent() {
		above, ok := v.DirAtRemotePath(at.Parent())
		if !ok {
			return false
		}
		if _, ours := v.IsOutdated(c.page.mine, table.Link{Dir: above, Name: at.Name()}); ours {
			return false
		}
	}
	return true
}

// MayBeSmall reports whether no pages of a walk are about to bring the names below a directory, so
// that one listing of all that may be asked for.
func (a *Ahead) MayBeSmall(at providers.Locator) bool {
	a.o.Tree.Lock()
	defer a.o.Tree.Unlock()
	r := a.walk
	return r == nil || !r.has(at) || r.guess && !r.followed && r.opened(at) == nil
}

// Tree is a recursive listing of a directory, not yet asked for, which may turn out to be small.
func (a *Ahead) Tree(at providers.Locator) *Walk {
	r := a.newWalk(at, providers.Locator{})
	r.guess = true
	return r
}

// Bring takes the next page, which list brings while the caller waits. That may need several
// attempts: only the last one says where the next page begins.
func (r *Walk) Bring(list func(providers.ListOptions) (providers.Page, error)) (entries []providers.Info, last bool, err error) {
	v := r.a.o.Tree.Lock()
	p, token := r.newPage(v), r.token
	r.a.o.Tree.Unlock()
	got, err := list(r.options(token))
	v = r.a.o.Tree.Lock()
	defer r.a.o.Tree.Unlock()
	defer p.dropped(v)
	if err == nil {
		r.follows(v, p, got.Next)
		r.cover(v, got.Entries, p, r.after)
	}
	return got.Entries, p.last, err
}

// Offer has it go ahead of a walk that may follow, unless there is one already.
func (r *Walk) Offer() {
	v := r.a.o.Tree.Lock()
	defer r.a.o.Tree.Unlock()
	if !r.a.o.CanCover || !r.a.o.Lists.MayList(v) || r.a.walk != nil && r.a.walk.followed || !r.start(v) {
		r.drop(v)
	}
}

// Drop forgets the pages.
func (r *Walk) Drop() {
	v := r.a.o.Tree.Lock()
	defer r.a.o.Tree.Unlock()
	r.drop(v)
}

// All are the directories that were brought whole, parents first. The caller drops each.
func (r *Walk) All() []*Covered {
	r.a.o.Tree.Lock()
	defer r.a.o.Tree.Unlock()
	all := slices.SortedFunc(maps.Values(r.whole), func(a, b *Covered) int { return a.At.Compare(b.At) })
	r.whole = nil
	return all
}
