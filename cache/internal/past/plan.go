package past

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
)

// Plan is the difference between the present and a state: first the entries that exist in the
// state, directories before their entries, then those to remove. A restore applies it, and a diff
// shows it.
type Plan struct {
	Items  []Item
	Remove []Item
	Unsure []history.Skipped // paths whose state is not known
}

// Plan finds the differences of a state from the present, at a path and below.
func (h *Past) Plan(ctx context.Context, path string, s State) (Plan, error) {
	if err := s.check(); err != nil {
		return Plan{}, err
	}
	if s.Commit != "" {
		return h.planToCommit(ctx, path, s)
	}
	if s.Version != "" && !s.Before {
		it, isOne, err := h.itemOf(ctx, path, s.Version)
		if err != nil || isOne {
			return Plan{Items: []Item{it}}, err
		}
	}
	cut, err := h.cutOf(ctx, s)
	if err != nil {
		return Plan{}, err
	}
	p, err := h.before(ctx, cut, s)
	if err != nil {
		return Plan{}, err
	}
	p.add(ctx, path)
	pl := h.planFor(p, path, p.scopeOf(ctx, path))
	if p.reach != nil {
		pl.Unsure = append(pl.Unsure, history.Skipped{Path: path, Reason: p.reach.Error()})
	}
	return pl, nil
}

// itemOf is the file of a version, if the path means a file.
func (h *Past) itemOf(ctx context.Context, path, version string) (it Item, isOne bool, err error) {
	_, ino, ferr := h.o.Volume.Find(ctx, path)
	id, ok := parseID(version)
	v := h.o.Tree.Lock()
	defer h.o.Tree.Unlock()
	r := history.Get(v, id)
	if !ok || r == nil {
		return it, false, fmt.Errorf("%q: %w", version, ErrNoVersion)
	}
	n := v.Inode(ino)
	wasIn := r.Path != path && history.Below(r.Path, path)
	if r.Mode&syscall.S_IFMT == syscall.S_IFDIR || ferr == nil && n != nil && n.IsDir() || n == nil && wasIn {
		return it, false, nil
	}
	it = Item{Path: path, Of: r.Where(v), Ino: r.Ino, Mode: r.Mode, Target: r.Target, src: contentNow(v, id, r), id: id}
	if path == r.Path || r.From != nil && path == r.From.Path {
		it.Of = path
	}
	return it, true, nil
}

// planFor compares the past with the present, at a path and below. scope is the path that it had
// then.
func (h *Past) planFor(p *before, now, scope string) Plan {
	v := h.o.Tree.Lock()
	defer h.o.Tree.Unlock()
	c := comparison{p: p, now: now, scope: scope, want: map[string]Item{}}
	for _, e := range p.inOrder() {
		c.add(v, e.r.Ino, e)
	}
	pl := Plan{Unsure: c.unsure}
	for _, it := range c.want {
		pl.Items = append(pl.Items, it)
	}
	for _, it := range c.gone {
		if _, wanted := c.want[it.Path]; !wanted {
			pl.Remove = append(pl.Remove, it)
		}
	}
	pl.sort()
	return pl
}

// sort puts a directory before its entries.
func (pl *Plan) sort() {
	byPath := func(a, b Item) int { return strings.Compare(a.Path, b.Path) }
	slices.SortFunc(pl.Items, byPath)
	slices.SortFunc(pl.Remove, byPath)
	slices.SortFunc(pl.Unsure, func(a, b history.Skipped) int { return strings.Compare(a.Path, b.Path) })
}

// comparison is a plan in the making.
type comparison struct {
	p          *before
	now, scope string
	want       map[string]Item
	gone       []Item
	unsure     []history.Skipped
}

// add compares the present path of an inode with its path then. If two claim a name, the one that
// is added later came to it later.
func (c *comparison) add(v *tree.View, ino table.Ino, e event) {
	here, at := placeNow(v, ino), c.p.placeOf(v, e)
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
	it := Item{Path: there, Ino: ino, Mode: e.r.Mode, Target: e.r.Target, id: e.id}
	if there != "" && (there != here || e.r.Mode&syscall.S_IFMT == syscall.S_IFREG) {
		it.src = c.p.source(v, e)
		c.want[there] = it
	}
	if here != "" && here != there && history.Below(here, c.now) {
		it.Path, it.Was = here, at
		c.gone = append(c.gone, it)
	}
}

// doubt says that the state of a path is not known.
func (c *comparison) doubt(here, there string, err error) {
	path := there
	if history.Below(here, c.now) {
		path = here
	}
	if path != "" {
		c.unsure = append(c.unsure, history.Skipped{Path: path, Reason: err.Error()})
	}
}

// placeNow is the path of an inode, "" if it has none.
func placeNow(v *tree.View, ino table.Ino) string {
	at, ok := v.LocalPathOf(ino)
	if !ok {
		return ""
	}
	return at.String()
}
