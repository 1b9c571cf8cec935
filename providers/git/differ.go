package git

import (
	"cmp"
	"context"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// Differences implements providers.Differ.
func (p *Provider) Differences(ctx context.Context, from, to providers.Revision) ([]providers.Difference, error) {
	return do(ctx, p, providers.MethodDiffer, providers.Locator{}, func() ([]providers.Difference, error) {
		var ends [2]*view
		for i, r := range []providers.Revision{from, to} {
			c, err := p.commitOf(r)
			if err == nil {
				ends[i], err = p.repo.viewOf(c)
			}
			if err != nil {
				return nil, err
			}
		}
		d := described{ctx: ctx, was: ends[0], is: ends[1]}
		err := p.repo.compare(ends[0], ends[1], true, d.add)
		slices.SortStableFunc(d.all, func(a, b providers.Difference) int { return a.Locator.Compare(b.Locator) })
		return d.joined(), err
	})
}

// described makes what a comparison finds into what List says of it.
type described struct {
	ctx     context.Context
	was, is *view
	all     []providers.Difference
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
	if next.Was, err = d.was.told(l, e); err == nil {
		next.Is, err = d.is.told(l, f)
	}
	if next.Was != nil && next.Is != nil && next.Was.Kind == providers.KindDir && next.Is.Kind == providers.KindDir {
		return err // a submodule is a directory, at whatever commit
	}
	d.all = append(d.all, next)
	return err
}

// told is info; nil of nothing.
func (v *view) told(l providers.Locator, e *object.Entry) (*providers.Info, error) {
	if e == nil {
		return nil, nil
	}
	info, err := v.info(l, *e)
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

// between are the paths that two commits have differently, those of directories
// that only one has with a slash at the end.
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

// compare tells found of each entry that two trees have differently: its path,
// and what each has there, nil for nothing. As List has them are they without
// what is hidden, and with all that lies below a directory that only one has.
func (r *repository) compare(a, b *view, asListed bool, found func(path string, e, f *object.Entry) error) error {
	c := comparison{repo: r, asListed: asListed, found: found}
	return c.trees("", a.root, b.root)
}

type comparison struct {
	repo     *repository
	asListed bool
	found    func(path string, e, f *object.Entry) error
}

func (c *comparison) trees(at string, a, b id) error {
	if a == b {
		return nil
	}
	ours, err := c.entries(a)
	if err != nil {
		return err
	}
	theirs, err := c.entries(b)
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
		if err := c.entry(at, e, f); err != nil {
			return err
		}
	}
	return nil
}

// entry compares what two trees have under one name.
func (c *comparison) entry(at string, e, f *object.Entry) error {
	path := at + cmp.Or(e, f).Name
	if e == nil || f == nil || *e != *f && !e.Mode.IsDir() {
		if err := c.found(path, e, f); err != nil {
			return err
		}
	}
	if e != nil && f != nil || c.asListed {
		return c.trees(path+"/", dirOf(e), dirOf(f))
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

// firstOf says which of two sorted lists begins with what comes first: 0 when
// both begin with the same.
func firstOf(a, b []object.Entry) int {
	switch {
	case len(b) == 0:
		return -1
	case len(a) == 0:
		return 1
	}
	return cmp.Compare(a[0].Key(), b[0].Key())
}

func (c *comparison) entries(tree id) ([]object.Entry, error) {
	if tree.IsZero() {
		return nil, nil
	}
	raw, err := c.repo.objects.Get(tree, odb.Tree)
	if err != nil {
		return nil, err
	}
	all, err := object.Entries(raw)
	if c.asListed {
		all = slices.DeleteFunc(all, func(e object.Entry) bool { return hidden(e.Name) })
	}
	return all, err
}
