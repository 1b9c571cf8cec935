package bucket

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/providers"
)

// Delete implements providers.Provider. The answer to a DELETE tells neither whether there was an
// object nor that it was a directory, so without a guard of the service a look comes first.
func (p *Provider) Delete(ctx context.Context, l providers.Locator, opts providers.DeleteOptions) error {
	_, err := do(ctx, p, providers.MethodDelete, l, func(at place) (struct{}, error) {
		return struct{}{}, p.delete(ctx, at, opts.If)
	})
	return err
}

func (p *Provider) delete(ctx context.Context, at place, c providers.Condition) error {
	switch {
	case at.l.IsRoot():
		return Invalid("the root stays")
	case c.Kind == providers.ConditionDir:
		return p.deleteDir(ctx, at)
	case c.Kind == providers.ConditionVersion && c.Version.ETag != "" && at.key != "" && p.honours.Delete:
		return p.deleteVersion(ctx, at, c.Version)
	}
	if err := c.Allows(providers.MethodDelete, wanted(c)); err != nil && !errors.Is(err, providers.ErrNotExist) {
		return err // the condition makes no sense for any entry
	}
	o, err := p.file(ctx, at)
	if errors.Is(err, providers.ErrNotExist) {
		return p.deleteMissing(ctx, at, c)
	}
	if err != nil {
		return err
	}
	info := o.info(at.l)
	if err := c.Allows(providers.MethodDelete, &info); err != nil {
		return err
	}
	return p.remove(ctx, at.key, o.ETag)
}

// deleteVersion lets the service decide.
func (p *Provider) deleteVersion(ctx context.Context, at place, v providers.Version) error {
	if isMarker(at.key, v.Size) {
		return providers.ErrNotExist
	}
	err := p.remove(ctx, at.key, v.ETag)
	if errors.Is(err, providers.ErrConflict) {
		// Some services say the same of a key that is not there.
		if _, missing := p.file(ctx, at); errors.Is(missing, providers.ErrNotExist) {
			err = missing
		}
	}
	if errors.Is(err, providers.ErrNotExist) {
		return p.deleteMissing(ctx, at, providers.IfVersion(v))
	}
	return err
}

// deleteMissing is the end of a deletion that found no file: is there a
// directory?
func (p *Provider) deleteMissing(ctx context.Context, at place, c providers.Condition) error {
	err := p.kindAt(ctx, at)
	switch {
	case errors.Is(err, providers.ErrIsDir):
		return c.Allows(providers.MethodDelete, &providers.Info{Kind: providers.KindDir})
	case errors.Is(err, providers.ErrNotExist):
		return c.Allows(providers.MethodDelete, nil)
	}
	return err
}

// deleteDir removes the marker of a directory that has nothing else. A program that writes below
// it meanwhile has a directory again.
func (p *Provider) deleteDir(ctx context.Context, at place) error {
	d, err := p.lookDir(ctx, at)
	switch {
	case err != nil:
		return err
	case d.entries:
		return providers.ErrNotEmpty
	case d.marked:
		return p.remove(ctx, at.dir, d.etag)
	}
	if _, err := p.file(ctx, at); err != nil {
		return err
	}
	return providers.ErrNotDir
}
