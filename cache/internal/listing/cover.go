package listing

import (
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// covering holds the directories that the pages of a recursive listing cover. The lock of the tree
// guards it.
type covering struct {
	whole map[providers.Locator]*Covered // covered, and not taken
	open  []*Covered                     // in which the last page ended, from above down
}

// Covered is the part of the pages that is about one directory.
type Covered struct {
	At      providers.Locator
	page    *page // the first
	last    *page // that completed it
	Entries []providers.Info
	pages   int  // pages that it fills so far
	deep    bool // there are entries below its directories
	partial bool // entries of it are missing: it is never whole
}

// cover takes the entries of a page; after is where the listing begins. All that lies below a
// directory comes together, in whatever order directories are: it is whole when an entry follows
// that lies elsewhere.
func (r *covering) cover(v *tree.View, entries []providers.Info, p *page, after providers.Locator) {
	if p.number == 1 && !after.IsRoot() {
		r.push(v, after, p)
	}
	pop := func() {
		n := len(r.open) - 1
		c := r.open[n]
		r.open = r.open[:n]
		r.close(v, c, p, c.At == after)
	}
	for _, e := range entries {
		for n := len(r.open); n > 0 && !r.open[n-1].At.Contains(e.Locator); n-- {
			pop()
		}
		r.add(v, e)
		if e.Kind == providers.KindDir {
			r.push(v, e.Locator, p)
		}
	}
	for p.last && len(r.open) > 0 {
		pop()
	}
	for _, c := range r.open {
		if c.pages++; c.pages >= pagesMost {
			c.partial, c.Entries = true, nil
		}
	}
	for at, c := range r.whole { // the walker has passed it
		if c.page.number <= p.number-pagesMost {
			delete(r.whole, at)
			c.page.dropped(v)
		}
	}
}

// push begins a directory.
func (r *covering) push(v *tree.View, at providers.Locator, p *page) {
	p.users++
	r.open = append(r.open, &Covered{At: at, page: p})
}

// close ends a directory, with page p. The one with which the listing begins is not reported: it
// may be gone when it has no entries.
func (r *covering) close(v *tree.View, c *Covered, p *page, isFirst bool) {
	if old := r.whole[c.At]; old != nil {
		old.page.dropped(v)
		delete(r.whole, c.At)
	}
	if c.partial || isFirst && len(c.Entries) == 0 {
		c.page.dropped(v)
		return
	}
	p.dirs++
	c.last = p
	r.whole[c.At] = c
}

// add takes an entry into its directory. An entry whose directory was not reported says that
// entries are missing above.
func (r *covering) add(v *tree.View, e providers.Info) {
	for i, c := range r.open {
		switch {
		case e.Locator.Parent() == c.At && !c.partial:
			c.Entries = append(c.Entries, e)
		case i == len(r.open)-1 && e.Locator.Parent() != c.At:
			c.partial, c.Entries = true, nil
		case i < len(r.open)-1:
			c.deep = true
		}
	}
}

// drop forgets the unused directories.
func (r *covering) drop(v *tree.View) {
	for _, c := range r.whole {
		c.page.dropped(v)
	}
	for _, c := range r.open {
		c.page.dropped(v)
	}
	r.whole, r.open = nil, nil
}
