package git

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/trees"
)

// Differences implements providers.Differ.
func (p *Provider) Differences(ctx context.Context, from, to providers.Revision) ([]providers.Difference, error) {
	return do(ctx, p, providers.MethodDiffer, providers.Locator{}, func() ([]providers.Difference, error) {
		var ends [2]*view
		for i, r := range []providers.Revision{from, to} {
			c, err := p.repo.commitOf(r)
			if err == nil {
				ends[i], err = p.repo.viewOf(c)
			}
			if err != nil {
				return nil, err
			}
		}
		d := described{ctx: ctx, was: ends[0], is: ends[1]}
		c := comparison{ctx: ctx, repo: p.repo, asListed: true, asShown: true, found: d.find}
		err := c.trees("", side{tree: ends[0].root}, side{tree: ends[1].root})
		if err == nil {
			err = d.describe()
		}
		slices.SortStableFunc(d.all, func(a, b providers.Difference) int { return a.Locator.Compare(b.Locator) })
		return d.joined(), err
	})
}

// described makes List's descriptions of the entries that a comparison finds.
type described struct {
	ctx     context.Context
	was, is *view
	found   []differing
	blobs   []id // of the entries found
	all     []providers.Difference
}

// differing is an entry that was found, and is not described yet.
type differing struct {
	path string
	e, f *object.Entry
}

// find takes an entry of the comparison.
func (d *described) find(path string, e, f *object.Entry) error {
	d.found = append(d.found, differing{path, e, f})
	for _, side := range []*object.Entry{e, f} {
		if side != nil && !side.Mode.IsDir() && !side.Mode.IsSubmodule() {
			d.blobs = append(d.blobs, side.ID)
		}
	}
	return nil
}

// describe describes all found entries, and first fetches their missing content together.
func (d *described) describe() error {
	if err := d.is.repo.partial.Need(d.ctx, d.blobs...); err != nil {
		return err
	}
	for _, x := range d.found {
		if err := d.add(x.path, x.e, x.f); err != nil {
			return err
		}
	}
	return nil
}

func (d *described) add(path string, e, f *object.Entry) error {
	if err := d.ctx.Err(); err != nil {
		return err
	}
	l, err := providers.Locator{}.Child(path)
	if err != nil {
		return err
	}
	next := providers.Difference{Locator: l}
	if next.Was, err = d.was.told(d.ctx, l, e); err == nil {
		next.Is, err = d.is.told(d.ctx, l, f)
	}
	if next.Was != nil && next.Is != nil && next.Was.Kind == providers.KindDir && next.Is.Kind == providers.KindDir {
		return err // a submodule is a directory, at whatever commit
	}
	d.all = append(d.all, next)
	return err
}

// told is the Info of an entry; nil for none.
func (v *view) told(ctx context.Context, l providers.Locator, e *object.Entry) (*providers.Info, error) {
	if e == nil {
		return nil, nil
	}
	var f *attributes.Filters
	if !e.Mode.IsDir() {
		var err error
		if _, f, err = v.look(ctx, l); err != nil && !errors.Is(err, providers.ErrNotExist) { // below a directory that is a file as well
			return nil, err
		}
	}
	info, err := v.info(ctx, l, *e, f)
	return &info, err
}

// joined makes one difference of two at one place: git has a file and a
// directory of one name apart from one another.
func (d *described) joined() []providers.Difference {
	kept := d.all[:0]
	for _, next := range d.all {
		if n := len(kept); n > 0 && kept[n-1].Locator == next.Locator {
			last := &kept[n-1]
			last.Was, last.Is = cmp.Or(last.Was, next.Was), cmp.Or(last.Is, next.Is)
			if last.Was != nil && last.Is != nil && last.Was.Kind == providers.KindDir && last.Is.Kind == providers.KindDir {
				kept = kept[:n-1]
			}
			continue
		}
		kept = append(kept, next)
	}
	return kept
}

// between are the paths that differ between two commits, those of directories that only one has
// with a slash at the end.
func (r *repository) between(a, b id) (paths []string, err error) {
	one, err := r.viewOf(a)
	if err != nil {
		return nil, err
	}
	other, err := r.viewOf(b)
	if err != nil {
		return nil, err
	}
	err = r.compare(one, other, false, func(path string, e, f *object.Entry) error {
		if cmp.Or(e, f).Mode.IsDir() {
			path += "/"
		}
		paths = append(paths, path)
		return nil
	})
	return paths, err
}

// compare calls found for each entry that differs between two trees: with its path, and the entry
// of each, nil for none. With asListed it is as List has them: without hidden entries, and with
// all entries below a directory that only one has.
func (r *repository) compare(a, b *view, asListed bool, found func(path string, e, f *object.Entry) error) error {
	c := comparison{repo: r, asListed: asListed, found: found}
	return c.trees("", side{tree: a.root}, side{tree: b.root})
}

type comparison struct {
	ctx      context.Context // with asShown
	repo     *repository
	asListed bool
	asShown  bool // also entries that are the same and show other content
	found    func(path string, e, f *object.Entry) error
}

// side is a directory of a comparison.
type side struct {
	tree    id
	filters *attributes.Filters // those above, and then its own
}

func (c *comparison) trees(at string, a, b side) error {
	if a.tree == b.tree && a.filters.Equal(b.filters) {
		return nil
	}
	ours, err := c.entries(at, &a)
	if err != nil {
		return err
	}
	theirs, err := c.entries(at, &b)
	if err != nil {
		return err
	}
	for len(ours) > 0 || len(theirs) > 0 {
		var e, f *object.Entry
		order := firstOf(ours, theirs)
		if order <= 0 {
			e, ours = &ours[0], ours[1:]
		}
		if order >= 0 {
			f, theirs = &theirs[0], theirs[1:]
		}
		if err := c.entry(at, e, f, a.filters, b.filters); err != nil {
			return err
		}
	}
	return nil
}

// entry compares what two trees have under one name.
func (c *comparison) entry(at string, e, f *object.Entry, was, is *attributes.Filters) error {
	path := at + cmp.Or(e, f).Name
	differs := e == nil || f == nil || *e != *f && !e.Mode.IsDir()
	if !differs && !was.Equal(is) {
		var err error
		if differs, err = c.repo.turned(path, *e, was, is); err != nil {
			return err
		}
	}
	if differs {
		if err := c.found(path, e, f); err != nil {
			return err
		}
	}
	if e != nil && f != nil || c.asListed {
		return c.trees(path+"/", side{dirOf(e), was}, side{dirOf(f), is})
	}
	return nil
}

// dirOf is the tree of an entry that is a directory, else zero.
func dirOf(e *object.Entry) id {
	if e == nil || !e.Mode.IsDir() {
		return id{}
	}
	return e.ID
}

// firstOf tells which of two sorted lists begins with the lesser name: 0 when both begin with the
// same.
func firstOf(a, b []object.Entry) int {
	switch {
	case len(b) == 0:
		return -1
	case len(a) == 0:
		return 1
	}
	return cmp.Compare(a[0].Key(), b[0].Key())
}

// turned reports whether an entry shows other content by other filters: the text of a pointer, or
// the content of that pointer.
func (r *repository) turned(path string, e object.Entry, was, is *attributes.Filters) (bool, error) {
	if e.Mode.IsDir() || e.Mode.IsSubmodule() {
		return false, nil
	}
	size, err := r.objects.Size(e.ID)
	if err != nil || size > lfs.MaxPointer {
		return false, err
	}
	parts := strings.Split(path, "/")
	if r.large.mayBe(was, parts, e.Mode, size) == r.large.mayBe(is, parts, e.Mode, size) {
		return false, nil
	}
	_, turned, err := r.pointerIn(e.ID)
	return turned, err
}

// entries are those of a directory, whose filters it notes.
func (c *comparison) entries(at string, dir *side) ([]object.Entry, error) {
	if dir.tree.IsZero() {
		return nil, nil
	}
	raw, err := c.repo.objects.Get(dir.tree, odb.Tree)
	if err == nil && c.asShown {
		dir.filters, err = c.repo.filters(c.ctx, dir.filters, strings.Count(at, "/"), raw)
	}
	if err != nil {
		return nil, err
	}
	all, err := object.Entries(raw)
	if c.asListed {
		all = slices.DeleteFunc(all, func(e object.Entry) bool { return trees.Hidden(e.Name) })
	}
	return all, err
}
