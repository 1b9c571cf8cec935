package memory

import (
	"bytes"
	"context"
	"fmt"

	"github.com/wsmount/wsmount/providers"
)

// Write implements providers.Provider. The body is read before the lock is taken.
func (p *Provider) Write(ctx context.Context, l providers.Locator, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	content, err := whole(ctx, body)
	if err != nil {
		return providers.Info{}, providers.Fail(name, providers.MethodWrite, l, err, providers.ErrUnavailable)
	}
	return do(ctx, p, providers.MethodWrite, l, func() (providers.Info, error) { return p.write(l, content, opts) })
}

// believed is the largest announced size of a body that memory is reserved for.
const believed = 64 << 20

// whole reads all content of a body. Memory for an announced size is reserved at once.
func whole(ctx context.Context, body providers.Body) ([]byte, error) {
	var content bytes.Buffer
	if body.Size > 0 && body.Size <= believed {
		content.Grow(int(body.Size) + bytes.MinRead)
	}
	_, err := body.CopyTo(ctx, &content)
	return content.Bytes(), err
}

// write is the verb of Write.
func (p *Provider) write(l providers.Locator, content []byte, opts providers.WriteOptions) (providers.Info, error) {
	if err := checkWrite(l, int64(len(content)), opts.Kind, p.mint.caps); err != nil {
		return providers.Info{}, err
	}
	if err := p.Fits(opts.Attr, nil); err != nil {
		return providers.Info{}, err
	}
	current, err := p.tree.find(l)
	if err != nil {
		return providers.Info{}, err
	}
	if err := opts.If.Allows(providers.MethodWrite, current.describe(l)); err != nil {
		if repeats(current, opts.Op) {
			return current.at(l), nil
		}
		return providers.Info{}, err
	}
	n := p.mint.file(content, opts)
	return n.at(l), p.tree.put(l, n)
}

// repeats reports whether an earlier attempt of op left n.
func repeats(n *node, op string) bool { return n != nil && op != "" && n.op == op }

func checkWrite(l providers.Locator, size int64, kind providers.Kind, caps providers.Capabilities) error {
	switch {
	case l.IsRoot():
		return fmt.Errorf("the root is a directory: %w", providers.ErrInvalid)
	case kind == providers.KindDir || kind > providers.KindSymlink:
		return fmt.Errorf("a %s cannot be written: %w", kind, providers.ErrInvalid)
	case kind == providers.KindSymlink && !caps.Symlinks:
		return fmt.Errorf("symbolic link: %w", providers.ErrUnsupported)
	case kind == providers.KindSymlink && size == 0:
		return fmt.Errorf("a link without target: %w", providers.ErrInvalid)
	}
	return nil
}

// Delete implements providers.Provider.
func (p *Provider) Delete(ctx context.Context, l providers.Locator, opts providers.DeleteOptions) error {
	_, err := do(ctx, p, providers.MethodDelete, l, func() (struct{}, error) {
		return struct{}{}, p.delete(l, opts.If)
	})
	return err
}

func (p *Provider) delete(l providers.Locator, cond providers.Condition) error {
	if l.IsRoot() {
		return fmt.Errorf("the root stays: %w", providers.ErrInvalid)
	}
	n, err := p.tree.find(l)
	if err != nil {
		n = nil // below a file there is no entry
	}
	switch err := cond.Allows(providers.MethodDelete, n.describe(l)); {
	case err != nil:
		return err
	case n == nil:
		return nil
	case n.entries != nil:
		return providers.ErrNotEmpty
	}
	p.mint.tick()
	p.tree.remove(l)
	return nil
}

// Mkdir implements providers.Provider.
func (p *Provider) Mkdir(ctx context.Context, l providers.Locator, opts providers.MkdirOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodMkdir, l, func() (providers.Info, error) {
		if !p.mint.caps.EmptyDirs {
			return providers.Info{}, providers.ErrUnsupported
		}
		n, err := p.tree.find(l)
		switch {
		case err != nil:
			return providers.Info{}, err
		case n != nil && !n.isDir():
			return providers.Info{}, providers.ErrExist
		case n != nil:
			return n.at(l), p.tree.own(l)
		}
		n = p.mint.dir(opts.Attr, opts.Metadata)
		if err := p.tree.put(l, n); err != nil {
			return providers.Info{}, err
		}
		return n.at(l), p.tree.own(l.Parent())
	})
}

// Fits implements providers.AttrSetter.
func (p *Provider) Fits(attr providers.Attr, _ map[string]string) error {
	sum := 0
	for name, value := range attr.Xattrs {
		sum += len(name) + len(value)
	}
	if most := p.opts.MaxXattrs; most > 0 && sum > most {
		return fmt.Errorf("%d bytes of extended attributes, %d fit: %w", sum, most, providers.ErrTooLarge)
	}
	return nil
}

// SetAttr implements providers.AttrSetter.
func (p *Provider) SetAttr(ctx context.Context, l providers.Locator, opts providers.SetAttrOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodSetAttr, l, func() (providers.Info, error) {
		if err := p.able(providers.AbilityAttr); err != nil {
			return providers.Info{}, err
		}
		n, err := p.tree.look(l)
		switch {
		case err != nil:
			return providers.Info{}, err
		case opts.Attr.Valid&^p.mint.caps.Attributes != 0, opts.Metadata != nil && !p.mint.caps.Metadata:
			return providers.Info{}, fmt.Errorf("attributes %s, metadata %q: %w", opts.Attr.Valid, opts.Metadata, providers.ErrUnsupported)
		}
		if err := p.Fits(opts.Attr, nil); err != nil {
			return providers.Info{}, err
		}
		if err := opts.If.Allows(providers.MethodSetAttr, n.describe(l)); err != nil {
			if repeats(n, opts.Op) {
				return n.at(l), nil
			}
			return providers.Info{}, err
		}
		n = p.mint.changed(n, opts.Attr, opts.Metadata, opts.Op)
		return n.at(l), p.tree.put(l, n)
	})
}
