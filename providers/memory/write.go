package memory

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	"github.com/wsmount/wsmount/providers"
)

// Write implements providers.Provider. The body is read before the lock is
// taken.
func (p *Provider) Write(ctx context.Context, l providers.Locator, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	var content bytes.Buffer
	if _, err := body.CopyTo(ctx, &content); err != nil {
		return providers.Info{}, providers.Fail(name, providers.MethodWrite, l, err, providers.ErrUnavailable)
	}
	return do(ctx, p, providers.MethodWrite, l, func() (providers.Info, error) {
		return p.write(l, content.Bytes(), opts)
	})
}

// write is Write under the lock, also as a part of a change set.
func (p *Provider) write(l providers.Locator, content []byte, opts providers.WriteOptions) (providers.Info, error) {
	if err := checkWrite(l, content, opts); err != nil {
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
	n := p.newFile(content, opts)
	return n.at(l), p.tree.put(l, n)
}

// repeats reports whether n is what an earlier attempt of op left.
func repeats(n *node, op string) bool { return n != nil && op != "" && n.op == op }

func checkWrite(l providers.Locator, content []byte, opts providers.WriteOptions) error {
	switch {
	case l.IsRoot():
		return fmt.Errorf("the root is a directory: %w", providers.ErrInvalid)
	case opts.Kind == providers.KindDir || opts.Kind > providers.KindSymlink:
		return fmt.Errorf("a %s cannot be written: %w", opts.Kind, providers.ErrInvalid)
	case opts.Kind == providers.KindSymlink && len(content) == 0:
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
		n = nil // below a file there is nothing
	}
	switch err := cond.Allows(providers.MethodDelete, n.describe(l)); {
	case err != nil:
		return err
	case n == nil:
		return nil
	case len(n.children) > 0:
		return providers.ErrNotEmpty
	}
	p.tick()
	p.tree.remove(l)
	return nil
}

// Mkdir implements providers.Provider.
func (p *Provider) Mkdir(ctx context.Context, l providers.Locator, opts providers.MkdirOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodMkdir, l, func() (providers.Info, error) {
		return p.mkdir(l, opts)
	})
}

func (p *Provider) mkdir(l providers.Locator, opts providers.MkdirOptions) (providers.Info, error) {
	n, err := p.tree.find(l)
	switch {
	case err != nil:
		return providers.Info{}, err
	case n != nil && !n.isDir():
		return providers.Info{}, providers.ErrExist
	case n != nil:
		return n.at(l), nil
	}
	p.tick()
	n = newDir(opts.Attr, maps.Clone(opts.Metadata))
	return n.at(l), p.tree.put(l, n)
}

// SetAttr implements providers.AttrSetter.
func (p *Provider) SetAttr(ctx context.Context, l providers.Locator, opts providers.SetAttrOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodSetAttr, l, func() (providers.Info, error) {
		n, err := p.tree.look(l)
		if err != nil {
			return providers.Info{}, err
		}
		if err := opts.If.Allows(providers.MethodSetAttr, n.describe(l)); err != nil {
			return providers.Info{}, err
		}
		changed := *n
		changed.info.Attr = merge(n.info.Attr, opts.Attr)
		if opts.Metadata != nil {
			changed.info.Metadata = maps.Clone(opts.Metadata)
		}
		modified := p.tick()
		if n.isDir() {
			n.info = changed.info // what is below stays the same node's
			return n.at(l), nil
		}
		changed.info.Version.Modified = modified
		return changed.at(l), p.tree.put(l, &changed)
	})
}

// merge is old with the valid fields of change.
func merge(old, change providers.Attr) providers.Attr {
	if change.Valid.Has(providers.AttrMode) {
		old.Mode = change.Mode
	}
	if change.Valid.Has(providers.AttrOwner) {
		old.UID, old.GID = change.UID, change.GID
	}
	if change.Valid.Has(providers.AttrModTime) {
		old.ModTime = change.ModTime
	}
	old.Valid |= change.Valid
	return old
}
