package listing

import (
	"cmp"
	"context"
	"time"

	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/providers"
)

// Walk is the recursive listing that goes ahead of a walk. The lock of the tree guards it.
type Walk struct {
	a       *Ahead
	at      providers.Locator // the directory that is listed
	after   providers.Locator // the directory that it begins with; the root: at the beginning
	guess   bool              // begun by a listing of at: no walk was seen
	release func()            // gives its room back
	idle    *time.Timer       // ends it

	pages []*page // under way, in order
	count int     // pages that were asked for
	token string  // of the next page
	known bool    // token is
	over  bool    // no page of it is used any more

	covering
	first    providers.Locator // the directory that the walker took first; the root: none
	followed bool              // and it took another
	pace     pace
}

// page is one page of it.
type page struct {
	number int
	last   bool              // no page follows
	told   bool              // last is known
	done   chan struct{}     // closed when it has come, or failed
	start  time.Time         // when it was asked for
	mine   *tree.Observation // since then
	users  int               // directories of which it was the first page, and itself while under way
	dirs   int               // directories that it completed
}

// pace is how fast the walker goes through the pages.
type pace struct {
	reached int           // the last page of which it took a directory
	since   time.Time     // when it took the first of that
	taken   int           // directories of that page which it took
	page    time.Duration // the time that it needs for a page, once known
}

// took notes that the walker took a directory which page p completed.
func (t *pace) took(p *page, now time.Time) {
	if p.number > t.reached {
		t.reached, t.since, t.taken = p.number, now, 0
	}
	if p.number == t.reached {
		if t.taken > 0 {
			t.page = now.Sub(t.since) * time.Duration(p.dirs) / time.Duration(t.taken)
		}
		t.taken++
	}
}

// newWalk is a recursive listing, not yet asked for.
func (a *Ahead) newWalk(at, after providers.Locator) *Walk {
	return &Walk{a: a, at: at, after: after, first: after, known: true, covering: covering{whole: map[providers.Locator]*Covered{}}}
}

// has reports whether the listing may reach a directory.
func (r *Walk) has(at providers.Locator) bool { return at != r.at && r.at.Contains(at) }

// keep says that the walk goes on.
func (r *Walk) keep() { r.idle.Reset(WalkPause) }

// pause ends a walk that stands still.
func (r *Walk) pause() {
	v := r.a.o.Tree.Lock()
	defer r.a.o.Tree.Unlock()
	r.end(v)
}

// start makes it the one walk there is; false: there is no room for it.
func (r *Walk) start(v *tree.View) bool {
	a := r.a
	if a.walk != nil {
		a.walk.end(v)
	}
	release, ok := a.o.Room.TryTake(r, pagesMost*pageBytes)
	if !ok {
		return false
	}
	a.walk, a.row, r.release = r, 0, release
	r.idle = time.AfterFunc(WalkPause, r.pause)
	return true
}

// end drops the unused pages.
func (r *Walk) end(v *tree.View) {
	if r.over {
		return
	}
	r.over = true
	r.idle.Stop()
	a := r.a
	a.walk, a.row = nil, 0
	switch {
	case r.followed:
		a.need = 1
	case !r.guess:
		a.need = min(max(2*a.need, 2), walkNeed)
	}
	r.drop(v)
	r.release()
}

// life is how long a page is believed.
func (r *Walk) life() time.Duration { return cmp.Or(r.a.o.Belief.TTL, StaleFor) }

// isNew reports whether a page can still be believed.
func (r *Walk) isNew(p *page) bool {
	since := r.a.o.Belief.Now().Sub(p.start)
	return since >= 0 && since < r.life()
}

// take returns the covered part of a directory, if it is new; the caller drops its page. near says
// that a walk would reach it.
func (r *Walk) take(v *tree.View, at providers.Locator, near bool) *Covered {
	c := r.whole[at]
	if c == nil {
		return nil
	}
	delete(r.whole, at)
	if !r.isNew(c.page) {
		c.page.dropped(v)
		return nil
	}
	r.pace.took(c.last, r.a.o.Belief.Now())
	switch {
	case !near:
	case r.first.IsRoot():
		r.first = at
	case at != r.first:
		r.followed, r.a.need = true, 1
	}
	r.goOn(v)
	return c
}

// opened is the part covered so far of a directory in which the last page ended, if it is new.
func (r *Walk) opened(at providers.Locator) *Covered {
	for _, c := range r.open {
		if c.At == at && r.isNew(c.page) {
			return c
		}
	}
	return nil
}

// mayWait reports whether the next pages are worth more than a listing of the directory alone:
// they are needed anyhow, or bring nothing else so far.
func (r *Walk) mayWait(c *Covered) bool {
	return !c.partial && (r.followed || !c.deep)
}

// ask returns the next page, which is asked for unless it is under way; nil: there is none.
func (r *Walk) ask(v *tree.View) *page {
	if len(r.pages) == 0 {
		r.askMore(v)
	}
	if len(r.pages) == 0 {
		return nil
	}
	return r.pages[0]
}

// goOn asks for the next page if the walker is not far behind, and so fast that it is through the
// earlier pages before that is too old.
func (r *Walk) goOn(v *tree.View) {
	behind := r.count - r.pace.reached
	if r.followed && behind < walkAhead && time.Duration(behind+2)*r.pace.page < r.life() {
		r.askMore(v)
	}
}

// askMore asks for one page more, if it is known where that begins.
func (r *Walk) askMore(v *tree.View) {
	if !r.known || r.over || !r.a.o.Lists.MayList(v) {
		return
	}
	var before *page
	if n := len(r.pages); n > 0 {
		before = r.pages[n-1]
	}
	p, token := r.newPage(v), r.token
	r.pages = append(r.pages, p)
	r.a.o.Go(func() { r.fetch(p, before, token) })
}

// newPage is a page that is asked for now.
func (r *Walk) newPage(v *tree.View) *page {
	r.count++
	r.known = false
	return &page{number: r.count, done: make(chan struct{}), start: r.a.o.Belief.Now(), mine: v.Observe(), users: 1}
}

// options ask the provider for the page that a token names.
func (r *Walk) options(token string) providers.ListOptions {
	return providers.ListOptions{Recursive: true, After: r.after, Token: token}
}

// follows notes where the page after p begins; "": p is the last.
func (r *Walk) follows(v *tree.View, p *page, next string) {
	if p.told {
		return
	}
	p.told, p.last = true, next == ""
	r.token, r.known = next, !p.last
	r.goOn(v)
}

// fetch brings a page, and takes it after the one before. A failure ends the walk: each directory
// is listed by itself then, which tries again and reports the error.
func (r *Walk) fetch(p, before *page, token string) {
	ctx, cancel := context.WithTimeout(r.a.o.Context, r.a.o.Belief.Patience)
	defer cancel()
	opts := r.options(token)
	opts.Ahead = func(next string) {
		v := r.a.o.Tree.Lock()
		defer r.a.o.Tree.Unlock()
		r.follows(v, p, next)
	}
	began := time.Now()
	got, err := r.a.o.Lists.List(ctx, r.at, opts)
	took := time.Since(began)
	if before != nil {
		<-before.done
	}
	v := r.a.o.Tree.Lock()
	defer r.a.o.Tree.Unlock()
	defer close(p.done)
	defer p.dropped(v)
	switch {
	case r.over:
	case err != nil:
		r.a.o.Belief.Log.Debug("directories are not listed ahead", "path", r.at, "err", err)
		r.end(v)
	default:
		r.pages = r.pages[1:]
		r.a.o.Lists.Answered(v, took)
		r.follows(v, p, got.Next)
		r.cover(v, got.Entries, p, r.after)
		r.goOn(v)
	}
}

// dropped says that one user of a page needs it no more.
func (p *page) dropped(v *tree.View) {
	if p.users--; p.users == 0 {
		v.EndObservation(p.mine)
	}
}
