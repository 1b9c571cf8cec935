package bucket

import (
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/providers"
)

// SetAttr implements providers.AttrSetter. Where metadata cannot be changed, it
// is a copy of the object onto itself, on the condition that it is still the
// one that was looked at.
func (p *Provider) SetAttr(ctx context.Context, l providers.Locator, opts providers.SetAttrOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodSetAttr, l, func(at place) (providers.Info, error) {
		if opts.Attr.Valid&^attributes != 0 {
			return providers.Info{}, fmt.Errorf("attributes %s: %w", opts.Attr.Valid, providers.ErrUnsupported)
		}
		if err := opts.If.Allows(providers.MethodSetAttr, wanted(opts.If)); err != nil && !errors.Is(err, providers.ErrNotExist) {
			return providers.Info{}, err
		}
		o, err := p.file(ctx, at)
		if errors.Is(err, providers.ErrNotExist) {
			return p.setDir(ctx, at, opts)
		}
		if err != nil {
			return providers.Info{}, err
		}
		return p.setFile(ctx, at, o, opts)
	})
}

func (p *Provider) setFile(ctx context.Context, at place, o *object, opts providers.SetAttrOptions) (providers.Info, error) {
	info := o.info(at.l)
	if err := opts.If.Allows(providers.MethodSetAttr, &info); err != nil {
		if opts.Op != "" && o.meta.op == opts.Op {
			return info, nil // this operation did it, and its answer got lost
		}
		return providers.Info{}, err
	}
	o.meta = o.meta.with(opts.Attr, opts.Metadata, opts.Op)
	c := providers.IfVersion(o.Version())
	info, err := p.rewrite(ctx, o, c)
	info.Locator = at.l
	info, err = p.settle(ctx, at, info, c, opts.Op, err)
	if errors.Is(err, providers.ErrNotExist) {
		err = providers.ErrConflict // it was there a moment ago
	}
	return info, err
}

// rewrite gives an object the metadata that o has by now.
func (p *Provider) rewrite(ctx context.Context, o *object, c providers.Condition) (providers.Info, error) {
	patcher, ok := p.store.(Patcher)
	if !ok {
		return p.copy(ctx, o, o.Key, c)
	}
	m, err := p.making(o.Key, o.meta, c)
	if err != nil {
		return providers.Info{}, err
	}
	began := p.now()
	made, err := patcher.Patch(ctx, o.Object, m)
	if err != nil {
		return providers.Info{}, err
	}
	return p.made(made, o.Key, o.Size, o.meta, began), nil
}

// setDir gives a directory a marker with the attributes.
func (p *Provider) setDir(ctx context.Context, at place, opts providers.SetAttrOptions) (providers.Info, error) {
	d, err := p.lookDir(ctx, at)
	if err != nil {
		return providers.Info{}, err
	}
	var there *providers.Info
	if d.there {
		there = &providers.Info{Kind: providers.KindDir}
	}
	if err := opts.If.Allows(providers.MethodSetAttr, there); err != nil {
		return providers.Info{}, err
	}
	switch {
	case !d.there:
		return providers.Info{}, providers.ErrNotExist
	case at.l.IsRoot(), at.partial: // the attributes of a whole bucket are not shown
		return providers.Info{}, fmt.Errorf("this directory has no marker: %w", providers.ErrUnsupported)
	}
	m, c := meta{kind: providers.KindDir}, providers.IfAbsent()
	if d.marked {
		o, err := p.head(ctx, at.dir)
		if err != nil {
			return providers.Info{}, err
		}
		// All markers have one ETag: this condition holds as long as there is a marker.
		m, c = o.meta, providers.IfVersion(o.Version())
	}
	m = m.with(opts.Attr, opts.Metadata, opts.Op)
	m.kind = providers.KindDir
	if m, err = p.mark(ctx, at.dir, m, c); err != nil {
		return providers.Info{}, conditionError(c, err)
	}
	return dirInfo(at.l, m), nil
}
