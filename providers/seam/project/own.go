package project

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// Own has the checkouts that this machine remembers to have registered. The registry does not
// tell: other machines see it too, and have a checkout elsewhere, or another at the same name.
// The zero value remembers nothing.
type Own struct {
	// Open opens a place that no other machine sees, and makes it if make is true. A missing
	// place, if make is false, is providers.ErrNotExist.
	Open func(make bool) (seam.Backend, error)
}

// registration is a checkout that this machine has registered.
type registration struct {
	Slug       string `json:"slug"`
	Root       string `json:"root"`                 // as the registry has it
	Repository string `json:"repository,omitempty"` // as of a checkout
}

const ownFile = "checkouts.json"

// list are the remembered registrations.
func (o Own) list(ctx context.Context) (list []registration, err error) {
	b, l, err := o.open(false)
	if b == nil || err != nil {
		return nil, err
	}
	text, err := b.Read(ctx, l)
	if errors.Is(err, providers.ErrNotExist) {
		text, err = "[]", nil
	}
	if err == nil {
		list, err = parseOwn(l, text)
	}
	return list, errors.Join(err, b.Close())
}

// open opens the place; nil: there is none.
func (o Own) open(make bool) (seam.Backend, seam.Locator, error) {
	if o.Open == nil {
		return nil, seam.Locator{}, nil
	}
	b, err := o.Open(make)
	if !make && errors.Is(err, providers.ErrNotExist) {
		return nil, seam.Locator{}, nil
	}
	if err != nil {
		return nil, seam.Locator{}, err
	}
	l, err := b.Resolve(ownFile)
	return b, l, err
}

func parseOwn(l seam.Locator, text string) (list []registration, err error) {
	if err = json.Unmarshal([]byte(text), &list); err != nil {
		err = corrupt(l, err)
	}
	return list, err
}

// change remembers the result of f for the list. An unchanged list is not written.
func (o Own) change(ctx context.Context, f func([]registration) []registration) error {
	was, err := o.list(ctx)
	if err != nil || slices.Equal(f(slices.Clone(was)), was) {
		return err
	}
	b, l, err := o.open(true)
	if b == nil || err != nil {
		return err
	}
	err = seam.Update(ctx, b, l, func(text string, there bool) (string, bool, error) {
		var list []registration
		if there {
			var err error
			if list, err = parseOwn(l, text); err != nil {
				return "", false, err
			}
		}
		changed, err := json.MarshalIndent(f(list), "", "  ")
		return string(changed) + "\n", true, err
	})
	return errors.Join(err, b.Close())
}

// remember adds a checkout under the names that the registry has it by.
func (o Own) remember(ctx context.Context, c checkout, slug string, roots ...string) error {
	return o.change(ctx, func(list []registration) []registration {
		for _, root := range roots {
			one := registration{slug, filepath.Clean(root), c.repository}
			list = slices.DeleteFunc(list, func(r registration) bool { return r.is(slug, root) && r != one })
			if !slices.Contains(list, one) {
				list = append(list, one)
			}
		}
		return list
	})
}

// forget removes checkouts that the registry no longer has; without roots, all of a slug.
func (o Own) forget(ctx context.Context, slug string, roots ...string) error {
	return o.change(ctx, func(list []registration) []registration {
		return slices.DeleteFunc(list, func(r registration) bool {
			return r.Slug == slug && (len(roots) == 0 || slices.ContainsFunc(roots, func(root string) bool { return r.is(slug, root) }))
		})
	})
}

func (r registration) is(slug, root string) bool {
	return r.Slug == slug && r.Root == filepath.Clean(root)
}
