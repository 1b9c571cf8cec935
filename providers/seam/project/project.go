package project

import (
	"context"
	"fmt"
	"path"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// Layout is the name of the directory that has the projects.
type Layout string

// The layouts. Memory that has the older directory alone keeps to it.
const (
	Current Layout = "projects"
	Legacy  Layout = "personal-projects"
)

// Project is where a project is.
type Project struct {
	Slug    string
	Locator seam.Locator // of what memory has of it, which need not be there
	Backend seam.Backend // the memory
	Root    string       // its checkout on this machine
	Layout  Layout
}

// Resolve finds the project of a checkout, by its absolute name: under the slug that it is
// registered with, or else that of its directory.
func Resolve(ctx context.Context, b seam.Backend, root string) (Project, error) {
	if !path.IsAbs(root) {
		return Project{}, fmt.Errorf("project: %q is not absolute: %w", root, providers.ErrInvalid)
	}
	root = path.Clean(root)
	list, err := Repos(ctx, b)
	if err != nil {
		return Project{}, err
	}
	slug := path.Base(root)
	for _, r := range list {
		if path.Clean(r.Root) == root {
			slug = r.Slug
			break
		}
	}
	return at(ctx, b, slug, root)
}

// Named finds the project that is registered with a slug. providers.ErrNotExist if none is.
func Named(ctx context.Context, b seam.Backend, slug string) (Project, error) {
	list, err := Repos(ctx, b)
	if err != nil {
		return Project{}, err
	}
	for _, r := range list {
		if r.Slug == slug {
			return at(ctx, b, slug, r.Root)
		}
	}
	return Project{}, fmt.Errorf("project: %q is not registered: %w", slug, providers.ErrNotExist)
}

func at(ctx context.Context, b seam.Backend, slug, root string) (Project, error) {
	if err := checkSlug(slug); err != nil {
		return Project{}, err
	}
	p := Project{Slug: slug, Backend: b, Root: root, Layout: Current}
	there := map[Layout]bool{}
	for _, layout := range []Layout{Current, Legacy} {
		dir, err := b.Resolve(string(layout))
		if err == nil {
			there[layout], err = b.Exists(ctx, dir)
		}
		if err != nil {
			return Project{}, err
		}
	}
	if there[Legacy] && !there[Current] {
		p.Layout = Legacy
	}
	var err error
	p.Locator, err = b.Resolve(string(p.Layout), slug)
	return p, err
}

// checkSlug refuses what is not the name of one directory.
func checkSlug(slug string) error {
	l, err := seam.ParseLocator(slug)
	if err == nil && (slug == "" || l.Name() != slug) {
		err = fmt.Errorf("project: %q is no slug, which names one directory: %w", slug, providers.ErrInvalid)
	}
	return err
}
