package project

import (
	"context"
	"fmt"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// Layout is the name of the directory that has the projects.
type Layout string

// The layouts. A project that has the older directory alone keeps to it.
const (
	Current Layout = "projects"
	Legacy  Layout = "personal-projects"
)

// Project is where a project is.
type Project struct {
	Slug    string
	Locator seam.Locator // of its directory in memory, which may be missing
	Backend seam.Backend // the memory
	Root    string       // its checkout on this machine
	Layout  Layout
}

// Resolve finds the project of the checkout that a directory lies in, by the directory's absolute
// name. It has the slug of the checkout's own files or of its registration; anything unclear is
// an UnclearError. ErrNone where there is no slug.
func Resolve(ctx context.Context, b seam.Backend, root string) (Project, error) {
	list, err := Repos(ctx, b)
	if err != nil {
		return Project{}, err
	}
	if root, err = checkoutOf(root, list); err != nil {
		return Project{}, err
	}
	return resolve(ctx, b, list, nil, root, "")
}

// resolve finds the project of a checkout, which was asked for by the slug asked; "": it was not.
func resolve(ctx context.Context, b seam.Backend, list []Repo, own []registration, root, asked string) (Project, error) {
	c, err := readCheckout(root)
	if err != nil {
		return Project{}, err
	}
	c.own = own
	slug, err := slugOf(c, list, asked)
	if err != nil {
		return Project{}, err
	}
	return at(ctx, b, slug, root)
}

// Named finds the project that is registered with a slug. providers.ErrNotExist if none is.
func Named(ctx context.Context, b seam.Backend, slug string) (Project, error) {
	list, err := Repos(ctx, b)
	if err != nil {
		return Project{}, err
	}
	r, err := named(list, nil, slug)
	if err != nil {
		return Project{}, err
	}
	return at(ctx, b, slug, r.Root)
}

// named is the checkout that is registered with a slug: of several that of this machine, or else
// the first. If two are of this machine, it is an error.
func named(list []Repo, own []registration, slug string) (Repo, error) {
	list = slices.DeleteFunc(slices.Clone(list), func(r Repo) bool { return r.Slug != slug })
	switch len(list) {
	case 0:
		return Repo{}, fmt.Errorf("%q is not registered: %w", slug, providers.ErrNotExist)
	case 1:
		return list[0], nil
	}
	all := sight(list)
	i := slices.IndexFunc(all, func(s seen) bool { return s.here })
	if i < 0 {
		return list[0], nil
	}
	c := checkout{root: all[i].real, repository: all[i].repository}
	for j, s := range all {
		s.recall(list[j], own)
		if err := list[j].refuse(c, s); err != nil {
			return Repo{}, err
		}
	}
	return list[i], nil
}

func at(ctx context.Context, b seam.Backend, slug, root string) (Project, error) {
	if err := checkSlug(slug); err != nil {
		return Project{}, err
	}
	p := Project{Slug: slug, Backend: b, Root: root, Layout: Current}
	for _, layout := range []Layout{Current, Legacy} {
		dir, err := b.Resolve(string(layout), slug)
		if err != nil {
			return Project{}, err
		}
		if layout == Current {
			p.Locator = dir
		}
		there, err := b.Exists(ctx, dir)
		if err != nil {
			return Project{}, err
		}
		if there {
			p.Locator, p.Layout = dir, layout
			break
		}
	}
	return p, nil
}

// checkSlug refuses a slug that is not the name of one directory.
func checkSlug(slug string) error {
	l, err := seam.ParseLocator(slug)
	if err == nil && (slug == "" || l.Name() != slug) {
		err = fmt.Errorf("%q is no slug, which names one directory: %w", slug, providers.ErrInvalid)
	}
	return err
}
