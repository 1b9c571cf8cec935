package bucket

import (
	"context"
	"errors"
	"maps"

	"github.com/wsmount/wsmount/providers"
)

// Copy implements providers.Copier.
func (p *Provider) Copy(ctx context.Context, from, to providers.Locator, opts providers.CopyOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodCopy, from, func(source place) (providers.Info, error) {
		target, err := p.find(to)
		if err == nil {
			err = p.checkPlace(ctx, providers.MethodCopy, target)
		}
		if err == nil {
			_, err = p.checkWrite(target, providers.WriteOptions{If: opts.If, Metadata: opts.Metadata, Op: opts.Op})
		}
		if err != nil {
			return providers.Info{}, err
		}
		o, err := p.source(ctx, source, opts.Version)
		if err != nil {
			if done, ok := p.done(ctx, target, opts.Op); ok && opts.Op != "" {
				return done, nil // whatever the source has become
			}
			return providers.Info{}, err
		}
		if err := p.allowed(ctx, target, opts.If, opts.Looked); err != nil {
			return p.settle(ctx, target, providers.Info{}, opts.If, opts.Op, err)
		}
		o.meta = o.meta.with(opts.Attr, opts.Metadata, opts.Op)
		info, err := p.copy(ctx, o, target.key, opts.If)
		info.Locator = to
		return p.settle(ctx, target, info, opts.If, opts.Op, err)
	})
}

// source is the object to copy, in the version asked for.
func (p *Provider) source(ctx context.Context, at place, v providers.Version) (*object, error) {
	if at.l.IsRoot() {
		return nil, providers.ErrIsDir
	}
	o, err := p.file(ctx, at)
	switch {
	case errors.Is(err, providers.ErrNotExist):
		return nil, p.kindAt(ctx, at)
	case err == nil && !v.IsZero() && !v.Matches(o.Version()):
		return nil, providers.ErrConflict
	}
	return o, err
}

// copy makes key from o, with o's metadata as they are by now. Of the ways that keep the
// condition, the cheapest is taken: Copy where the service honours conditions for it, else parts,
// whose completion does.
func (p *Provider) copy(ctx context.Context, o *object, key string, c providers.Condition) (providers.Info, error) {
	m, err := p.making(key, o.meta, c)
	if err != nil {
		return providers.Info{}, err
	}
	guarded := c.Kind == providers.ConditionNone || p.honours.Copy
	switch {
	case o.Size == 0:
		return p.put(ctx, key, bytesBody(nil), o.meta, c)
	case guarded && o.Size <= p.service.Copy:
		return p.copyWhole(ctx, o, key, m)
	}
	return p.copyParts(ctx, o, key, m, c)
}

func (p *Provider) copyWhole(ctx context.Context, o *object, key string, m Making) (providers.Info, error) {
	began := p.now()
	made, err := p.store.Copy(ctx, o.Object, key, m)
	if err != nil {
		return providers.Info{}, err
	}
	return p.made(made, key, o.Size, o.meta, began), nil
}

func (p *Provider) copyParts(ctx context.Context, o *object, key string, m Making, c providers.Condition) (providers.Info, error) {
	u, err := p.begin(ctx, key, o.meta, m)
	if err != nil {
		return providers.Info{}, err
	}
	u.cond = c
	most := p.service.Parts.Max
	return u.inParts(ctx, func() error {
		for n, offset := 1, int64(0); offset < o.Size; n, offset = n+1, offset+most {
			if err := u.copyRange(ctx, n, o.Object, offset, min(most, o.Size-offset)); err != nil {
				return err
			}
		}
		return nil
	})
}

// clone keeps a caller's map out of ours.
func clone(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return maps.Clone(m)
}
