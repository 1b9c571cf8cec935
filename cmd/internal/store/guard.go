package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/seam"
)

// guarded is a part's store, or a place in a mount, with the refusals of a mount of the part.
type guarded struct {
	seam.Backend
	readOnly  string                // why, or empty
	governing []string              // files that decide about the workspace: not changed from inside
	exclude   *mountspec.ExcludeSet // names that stay out of the store
	// real resolves symbolic links in a name; nil: there are none.
	real func(seam.Locator) (seam.Locator, error)
}

func refuse(op providers.Method, l seam.Locator, kind error, format string, args ...any) error {
	return providers.Fail("", op, l.Place(), fmt.Errorf(format, args...), kind)
}

// check refuses a change at l, of a directory or not.
func (g *guarded) check(op providers.Method, l seam.Locator, dir bool) error {
	is := l
	if g.real != nil && g.readOnly == "" {
		var err error
		if is, err = g.real(l); err != nil {
			return err
		}
	}
	key := is.Key()
	below := func(at, of string) bool { return strings.HasPrefix(at, of+"/") }
	governs := func(file string) bool { return key == file || below(key, file) || !dir && below(file, key) }
	switch {
	case g.readOnly != "":
		return refuse(op, l, providers.ErrReadOnly, "%s", g.readOnly)
	case slices.ContainsFunc(g.governing, governs):
		return refuse(op, l, providers.ErrReadOnly, "it governs the workspace, and is not changed from inside")
	case g.exclude.Match(key, dir):
		return refuse(op, l, providers.ErrPermission, "storage.exclude of the workspace keeps it out of the store")
	}
	return nil
}

// hides reports whether l is excluded, which may depend on whether it is a directory.
func (g *guarded) hides(ctx context.Context, l seam.Locator) (bool, error) {
	file, dir := g.exclude.Match(l.Key(), false), g.exclude.Match(l.Key(), true)
	if file == dir {
		return file, nil
	}
	info, err := g.Backend.Info(ctx, l)
	return info.IsDir == dir, err
}

// hidden is ErrNotExist, for a verb that reads, if l is excluded.
func (g *guarded) hidden(ctx context.Context, op providers.Method, l seam.Locator) error {
	is, err := g.hides(ctx, l)
	if err == nil && is {
		err = refuse(op, l, providers.ErrNotExist, "storage.exclude of the workspace hides it")
	}
	return err
}

func (g *guarded) Read(ctx context.Context, l seam.Locator) (string, error) {
	if err := g.hidden(ctx, providers.MethodRead, l); err != nil {
		return "", err
	}
	return g.Backend.Read(ctx, l)
}

func (g *guarded) Info(ctx context.Context, l seam.Locator) (seam.Info, error) {
	if err := g.hidden(ctx, providers.MethodStat, l); err != nil {
		return seam.Info{}, err
	}
	return g.Backend.Info(ctx, l)
}

func (g *guarded) Exists(ctx context.Context, l seam.Locator) (bool, error) {
	there, err := g.Backend.Exists(ctx, l)
	if err != nil || !there {
		return false, err
	}
	is, err := g.hides(ctx, l)
	return !is, err
}

func (g *guarded) List(ctx context.Context, l seam.Locator) ([]seam.Locator, error) {
	children, err := g.Backend.List(ctx, l)
	var unnamed *seam.UnnamedError
	if err != nil && !errors.As(err, &unnamed) || g.exclude.Empty() {
		return children, err
	}
	var failed error
	children = slices.DeleteFunc(children, func(child seam.Locator) bool {
		is, err := g.hides(ctx, child)
		if err != nil && failed == nil {
			failed = err
		}
		return is
	})
	if failed != nil {
		return nil, failed
	}
	return children, err
}

func (g *guarded) Write(ctx context.Context, l seam.Locator, content string) (seam.Locator, error) {
	if err := g.check(providers.MethodWrite, l, false); err != nil {
		return seam.Locator{}, err
	}
	return g.Backend.Write(ctx, l, content)
}

// WriteIf implements seam.Conditional as far as the store does.
func (g *guarded) WriteIf(ctx context.Context, l seam.Locator, old seam.ETag, content string) (seam.Locator, error) {
	c, ok := g.Backend.(seam.Conditional)
	err := g.check(providers.MethodWrite, l, false)
	if err == nil && !ok {
		err = errUnguarded(l)
	}
	if err != nil {
		return seam.Locator{}, err
	}
	return c.WriteIf(ctx, l, old, content)
}

func (g *guarded) Mkdir(ctx context.Context, l seam.Locator) (seam.Locator, error) {
	if err := g.check(providers.MethodMkdir, l, true); err != nil {
		return seam.Locator{}, err
	}
	return g.Backend.Mkdir(ctx, l)
}
