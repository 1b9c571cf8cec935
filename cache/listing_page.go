package cache

import (
	"time"

	"github.com/wsmount/wsmount/providers"
)

// walk is the recursive listing that goes ahead of a walk. Volume.mu guards it.
type walk struct {
	v       *Volume
	at      providers.Locator // what is listed
	after   providers.Locator // the directory that it begins with
	release func()            // gives its room back
	idle    *time.Timer       // ends it

	page  *page // under way; nil: none
	count int   // pages that were asked for
	come  int   // and have come
	token string
	ended bool // the last page has come
	over  bool // nothing of it is used any more

	whole    map[providers.Locator]*covered // covered, and not taken
	open     []*covered                     // in which the last page ended, from above down
	followed bool                           // the walker took more than it began with
	brought  int                            // directories that the last page completed
	taken    int                            // of these, that the walker has taken
}

// page is one page of it.
type page struct {
	number int
	done   chan struct{} // closed when it has come, or failed
	start  time.Time     // when it was asked for
	mine   *listing      // since then
	users  int           // directories of which it was the first page, and itself while under way
}

// covered is what pages say of one directory.
type covered struct {
	at      providers.Locator
	page    *page // the first
	last    int   // the number of the page that completed it
	entries []providers.Info
	pages   int  // that it fills so far
	deep    bool // something lies below its directories
	partial bool // something of it is missing: it is never whole
}

// has reports whether the listing may come to a directory.
func (r *walk) has(at providers.Locator) bool { return at != r.at && r.at.Contains(at) }

// keep says that the walk goes on.
func (r *walk) keep() { r.idle.Reset(walkPause) }

// pause ends a walk that stands still.
func (r *walk) pause() {
	r.v.mu.Lock()
	defer r.v.mu.Unlock()
	r.end()
}

// end drops all that was not taken. mu is held.
func (r *walk) end() {
	if r.over {
		return
	}
	r.over = true
	r.idle.Stop()
	f := &r.v.prefetch
	f.walk, f.row, f.need = nil, 0, min(max(2*f.need, 2), walkNeed)
	if r.followed {
		f.need = 1
	}
	for _, c := range r.whole {
		c.page.dropped(r.v)
	}
	for _, c := range r.open {
		c.page.dropped(r.v)
	}
	r.whole, r.open = nil, nil
	r.release()
}

// dropped says that one user of a page needs it no more. mu is held.
func (p *page) dropped(v *Volume) {
	if p.users--; p.users == 0 {
		delete(v.listings, p.mine)
	}
}

// isNew reports whether what a page says can be believed still. mu is held.
func (r *walk) isNew(p *page) bool {
	life := r.v.o.Policy.TTL
	if life == 0 {
		life = staleFor
	}
	since := r.v.o.Now().Sub(p.start)
	return since >= 0 && since < life
}

// take gives what is covered of a directory, if it is new; the caller drops its page.
// What lies behind is asked for when enough was taken. mu is held.
func (r *walk) take(at providers.Locator) *covered {
	c := r.whole[at]
	if c == nil {
		return nil
	}
	delete(r.whole, at)
	if !r.isNew(c.page) {
		c.page.dropped(r.v)
		return nil
	}
	if at != r.after {
		r.followed, r.v.prefetch.need = true, 1
		if c.last == r.come {
			r.taken++
		}
	}
	if r.taken >= walkTaken || r.taken > 0 && 2*r.taken >= r.brought {
		r.ask()
	}
	return c
}

// opened is what is covered so far of a directory in which the last page ended, if it
// is new. mu is held.
func (r *walk) opened(at providers.Locator) *covered {
	for _, c := range r.open {
		if c.at == at && r.isNew(c.page) {
			return c
		}
	}
	return nil
}

// mayWait reports whether the next pages are worth more than a listing of the directory
// alone: they are needed anyhow, or bring nothing else so far. mu is held.
func (r *walk) mayWait(c *covered) bool {
	return !c.partial && (r.followed || !c.deep)
}

// ask gives the page that is under way, or asks for the next; nil: there is none. mu is
// held.
func (r *walk) ask() *page {
	if r.page == nil && !r.ended && !r.over && !r.v.closing {
		r.count++
		p := &page{number: r.count, done: make(chan struct{}), start: r.v.o.Now(), mine: r.v.newListing(), users: 1}
		r.page = p
		r.v.background(func() { r.fetch(p, r.token) })
	}
	return r.page
}

// fetch brings a page. One that fails ends the walk: each directory is listed by itself
// then, which tries again and says what is wrong.
func (r *walk) fetch(p *page, token string) {
	v := r.v
	w := v.wait(nil, v.o.Patience/2)
	defer w.close()
	began := time.Now()
	got, err := v.p.List(w, r.at, providers.ListOptions{Recursive: true, After: r.after, Token: token})
	v.mu.Lock()
	defer v.mu.Unlock()
	defer close(p.done)
	defer p.dropped(v)
	r.page = nil
	switch {
	case err != nil:
		v.o.Log.Debug("directories are not listed ahead", "path", r.at, "err", err)
		r.end()
	case !r.over:
		v.answered(time.Since(began), nil)
		r.token, r.ended = got.Next, got.Next == ""
		r.cover(got.Entries, p)
	}
}

// cover takes what a page says. All that lies below a directory comes together, in
// whatever order directories are: it is whole when something follows that lies
// elsewhere. mu is held.
func (r *walk) cover(entries []providers.Info, p *page) {
	r.come, r.brought, r.taken = p.number, 0, 0
	if p.number == 1 {
		r.push(r.after, p)
	}
	for _, e := range entries {
		for n := len(r.open); n > 0 && !r.open[n-1].at.Contains(e.Locator); n-- {
			r.pop()
		}
		r.add(e)
		if e.Kind == providers.KindDir {
			r.push(e.Locator, p)
		}
	}
	for r.ended && len(r.open) > 0 {
		r.pop()
	}
	for _, c := range r.open {
		if c.pages++; c.pages >= pagesMost {
			c.partial, c.entries = true, nil
		}
	}
	for at, c := range r.whole { // the walker has passed it
		if c.page.number <= p.number-pagesMost {
			delete(r.whole, at)
			c.page.dropped(r.v)
		}
	}
}

// push begins a directory. mu is held.
func (r *walk) push(at providers.Locator, p *page) {
	p.users++
	r.open = append(r.open, &covered{at: at, page: p})
}

// pop ends the last directory that was begun. That with which the listing begins is not
// told: it may be gone when nothing is in it. mu is held.
func (r *walk) pop() {
	n := len(r.open) - 1
	c := r.open[n]
	r.open = r.open[:n]
	if old := r.whole[c.at]; old != nil {
		old.page.dropped(r.v)
		delete(r.whole, c.at)
	}
	if c.partial || c.at == r.after && len(c.entries) == 0 {
		c.page.dropped(r.v)
		return
	}
	c.last = r.come
	r.whole[c.at] = c
	r.brought++
}

// add takes an entry into the directory that it is in. One whose directory was not told
// says that something is missing above. mu is held.
func (r *walk) add(e providers.Info) {
	for i, c := range r.open {
		switch {
		case e.Locator.Parent() == c.at && !c.partial:
			c.entries = append(c.entries, e)
		case i == len(r.open)-1 && e.Locator.Parent() != c.at:
			c.partial, c.entries = true, nil
		case i < len(r.open)-1:
			c.deep = true
		}
	}
}
