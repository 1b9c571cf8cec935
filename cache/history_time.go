package cache

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// past is the tree as it was before some record, as far as it was another. It
// knows the first thing that happened to each inode since: that tells where the
// inode was and what was in it. What happened to a name tells who had it.
type past struct {
	v     *Volume
	first map[table.Ino]event
	names map[table.Link]*holder
	known map[table.Ino]struct{} // what was there before, as records of that time say
	reach error                  // why not all is known
	after int64                  // the time of the last record before: what was made since was not there
	until int64                  // the time of the state: what is younger is not as it was
}

// event is what happened to an inode; its record has no Change when nothing did.
type event struct {
	id uint64
	r  *history.Record
}

// maxDepth bounds a climb through directories, should records lead in circles.
const maxDepth = 4096

// pastBefore reads the history from a record on.
func (v *Volume) pastBefore(ctx context.Context, cut uint64, s State) (*past, error) {
	p := &past{v: v, first: map[table.Ino]event{}, names: map[table.Link]*holder{}, known: map[table.Ino]struct{}{}}
	if !s.Time.IsZero() {
		p.after = table.Nanoseconds(s.Time)
		p.until = p.after
	}
	err := v.eachRecord(ctx, 0, func(v *View, id uint64, r *history.Record) {
		if id < cut {
			p.after = max(p.after, r.Time)
			p.knows(r)
			return
		}
		if p.until == 0 {
			p.until = r.Time
		}
		p.saw(v, id, cut, r)
	})
	if err != nil {
		return nil, err
	}
	if !s.Before && s.Time.IsZero() {
		p.until = p.after
	}
	p.reach = v.reachOf(s, len(p.known) > 0)
	return p, p.carry(ctx)
}

// carry adds what moved with a directory: nothing happened to it itself.
func (p *past) carry(ctx context.Context) error {
	var dirs []table.Ino
	locked := p.v.lock()
	for ino, e := range p.first {
		here := locked.placeNow(ino)
		if e.r.Mode&modeType == modeDir && here != "" && here != p.placeOf(locked, e) {
			dirs = append(dirs, ino)
		}
	}
	locked.unlock()
	for len(dirs) > 0 {
		dir := dirs[len(dirs)-1]
		if err := p.v.loadDir(&fs.Op{Cancel: ctx.Done()}, dir); err != nil {
			return err
		}
		below, err := p.carryNames(ctx, dir)
		if err != nil {
			return err
		}
		dirs = append(dirs[:len(dirs)-1], below...)
	}
	return nil
}

// carryNames is carry for what is in one directory, and gives the directories
// in it that are still to be looked into. The lock is held for a step at most.
func (p *past) carryNames(ctx context.Context, dir table.Ino) (dirs []table.Ino, err error) {
	after := ""
	for step := logStep; step == logStep && err == nil; err = ctx.Err() {
		step = 0
		locked := p.v.lock()
		locked.table.Names(dir, after, func(name string, rec table.Name) bool {
			after = name
			n := locked.table.Inode(rec.Ino)
			if _, known := p.first[rec.Ino]; n != nil && !known {
				p.first[rec.Ino] = p.stayed(locked, table.Link{Dir: dir, Name: name}, rec.Ino, n)
				if n.IsDir() {
					dirs = append(dirs, rec.Ino)
				}
			}
			step++
			return step < logStep
		})
		locked.unlock()
	}
	return dirs, err
}

// stayed is the event of an inode to which nothing happened. It stands for the last
// record of it, if there is one; if not, of what is younger than the state only that is
// known to be new which never was at the backend.
func (p *past) stayed(v *View, l table.Link, ino table.Ino, n *table.Inode) event {
	r := history.About("", "", l, ino, n)
	at, _ := v.LocalPath(l)
	r.Path = at.String()
	id, old := history.ContentOf(v, ino, l)
	switch {
	case old == nil:
		r.New = history.IsOfHere(n)
		return event{r: r}
	case old.Gen != n.ContentVersion:
		return event{r: r}
	}
	r.Of = id
	return event{id: id, r: r}
}

// pathOf is where a name was, "" if its directory was not there. noted is its path as it
// was written down.
func (p *past) pathOf(v *View, l table.Link, noted string) string {
	var names []string
	for range maxDepth {
		names = append(names, l.Name)
		if l.Dir == table.Root {
			slices.Reverse(names)
			return strings.Join(names, "/")
		}
		if e, ok := p.first[l.Dir]; ok {
			if at, _, there := p.was(e); there {
				l = at
				continue
			}
			return ""
		}
		n := v.table.Inode(l.Dir)
		if n == nil || len(n.Links) == 0 {
			return noted
		}
		l = n.Links[0]
	}
	return noted
}

// placeOf is where an inode with an event was, "" if nowhere.
func (p *past) placeOf(v *View, e event) string {
	l, noted, there := p.was(e)
	if !there {
		return ""
	}
	return p.pathOf(v, l, noted)
}

// scopeOf is where a path leads in the past. A directory is the same wherever
// it was; what is in a directory goes by its name.
func (p *past) scopeOf(ctx context.Context, path string) string {
	l, ino, err := p.v.find(ctx, path)
	if err != nil || l.Dir == 0 {
		return path
	}
	locked := p.v.lock()
	defer locked.unlock()
	if n := locked.table.Inode(ino); n != nil && n.IsDir() {
		if e, ok := p.first[ino]; ok {
			l, path, _ = p.was(e)
		}
	}
	return cmp.Or(p.pathOf(locked, l, path), path)
}

// source is where the content is that an inode had.
func (p *past) source(v *View, e event) (src contentSource) {
	r := e.r
	if r.Change == Written {
		if prev := history.Get(v, r.Prev); prev != nil {
			src = v.contentOf(r.Prev, prev)
		}
		if src.kind == contentGone {
			src = pastSource(r.Before, 0)
		}
		return src
	}
	return v.contentNow(e.id, r)
}

// contentNow is contentOf, and where the backend has it if nothing else does.
func (v *View) contentNow(id uint64, r *history.Record) contentSource {
	src := v.contentOf(id, r)
	n := v.table.Inode(r.Ino)
	gone := src.kind == contentGone || src.kind == contentPast && n != nil && len(n.RemoteLinks) > 0
	if gone && n != nil && n.IsRegular() && n.ContentVersion == r.Gen && !n.Writing {
		return contentSource{kind: contentAway, ino: r.Ino, gen: r.Gen, size: n.Size}
	}
	return src
}

// item is something that a restore brings back.
type item struct {
	path   string
	of     string    // of a version: where its file is
	was    string    // of what goes: where it was, "" if nowhere
	ino    table.Ino // that it was
	mode   uint32
	target string         // of a symbolic link
	attr   providers.Attr // of a commit
	src    contentSource
	id     uint64 // the record
}

// plan is the difference between the present and a state: first what is to be
// there, directories before what is in them, then what is not. A restore makes
// it so, and a diff shows it.
type plan struct {
	items  []item
	remove []item
	unsure []Skipped // what is not known
}

// planTo finds out how a state differs from the present, at a path and below.
func (v *Volume) planTo(ctx context.Context, path string, s State) (plan, error) {
	if err := s.check(); err != nil {
		return plan{}, err
	}
	if s.Commit != "" {
		return v.planToCommit(ctx, path, s)
	}
	if s.Version != "" && !s.Before {
		it, isOne, err := v.itemOf(ctx, path, s.Version)
		if err != nil || isOne {
			return plan{items: []item{it}}, err
		}
	}
	cut, err := v.cutOf(ctx, s)
	if err != nil {
		return plan{}, err
	}
	p, err := v.pastBefore(ctx, cut, s)
	if err != nil {
		return plan{}, err
	}
	p.add(ctx, path)
	pl := v.planFor(p, path, p.scopeOf(ctx, path))
	if p.reach != nil {
		pl.unsure = append(pl.unsure, Skipped{Path: path, Reason: p.reach.Error()})
	}
	return pl, nil
}

// itemOf is the file of a version, if a path means a file.
func (v *Volume) itemOf(ctx context.Context, path, version string) (it item, isOne bool, err error) {
	_, ino, ferr := v.find(ctx, path)
	id, ok := parseID(version)
	locked := v.lock()
	defer locked.unlock()
	r := history.Get(locked, id)
	if !ok || r == nil {
		return it, false, fmt.Errorf("%q: %w", version, ErrNoVersion)
	}
	n := locked.table.Inode(ino)
	wasIn := r.Path != path && history.Below(r.Path, path)
	if r.Mode&modeType == modeDir || ferr == nil && n != nil && n.IsDir() || n == nil && wasIn {
		return it, false, nil
	}
	it = item{path: path, of: r.Where(locked), ino: r.Ino, mode: r.Mode, target: r.Target, src: locked.contentNow(id, r), id: id}
	if path == r.Path || r.From != nil && path == r.From.Path {
		it.of = path
	}
	return it, true, nil
}

// planFor compares the past with the present, at a path and below. scope is the
// path that it had then.
func (v *Volume) planFor(p *past, now, scope string) plan {
	locked := v.lock()
	defer locked.unlock()
	c := comparison{p: p, now: now, scope: scope, want: map[string]item{}}
	for _, e := range p.inOrder() {
		c.add(locked, e.r.Ino, e)
	}
	pl := plan{unsure: c.unsure}
	for _, it := range c.want {
		pl.items = append(pl.items, it)
	}
	for _, it := range c.gone {
		if _, wanted := c.want[it.path]; !wanted {
			pl.remove = append(pl.remove, it)
		}
	}
	pl.sort()
	return pl
}

// sort puts a directory before what is in it.
func (pl *plan) sort() {
	byPath := func(a, b item) int { return strings.Compare(a.path, b.path) }
	slices.SortFunc(pl.items, byPath)
	slices.SortFunc(pl.remove, byPath)
	slices.SortFunc(pl.unsure, func(a, b Skipped) int { return strings.Compare(a.Path, b.Path) })
}

// comparison is a plan in the making.
type comparison struct {
	p          *past
	now, scope string
	want       map[string]item
	gone       []item
	unsure     []Skipped
}

// add compares where an inode is with where it was. What had a name that something else
// had first came there later.
func (c *comparison) add(v *View, ino table.Ino, e event) {
	here, at := v.placeNow(ino), c.p.placeOf(v, e)
	there := ""
	if history.Below(at, c.scope) {
		there = strings.Trim(c.now+"/"+strings.TrimPrefix(strings.TrimPrefix(at, c.scope), "/"), "/")
	}
	if _, taken := c.want[there]; taken {
		there, at = "", ""
	}
	if err := c.p.doubt(v, e); err != nil && (here != there || e.r.Change != "") {
		c.doubt(here, there, err)
		return
	}
	it := item{path: there, ino: ino, mode: e.r.Mode, target: e.r.Target, id: e.id}
	if there != "" && (there != here || e.r.Mode&modeType == modeRegular) {
		it.src = c.p.source(v, e)
		c.want[there] = it
	}
	if here != "" && here != there && history.Below(here, c.now) {
		it.path, it.was = here, at
		c.gone = append(c.gone, it)
	}
}

// doubt says that it is not known what was at a path.
func (c *comparison) doubt(here, there string, err error) {
	path := there
	if history.Below(here, c.now) {
		path = here
	}
	if path != "" {
		c.unsure = append(c.unsure, Skipped{Path: path, Reason: err.Error()})
	}
}

// placeNow is where an inode is, "" if nowhere.
func (v *View) placeNow(ino table.Ino) string {
	at, ok := v.LocalPathOf(ino)
	if !ok {
		return ""
	}
	return at.String()
}
