package memory

import (
	"context"
	"fmt"
	"maps"

	"github.com/wsmount/wsmount/providers"
)

// Copy implements providers.Copier.
func (p *Provider) Copy(ctx context.Context, from, to providers.Locator, opts providers.CopyOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodCopy, from, func() (providers.Info, error) {
		if err := p.able(providers.AbilityCopy); err != nil {
			return providers.Info{}, err
		}
		if n, _ := p.tree.look(to); repeats(n, opts.Op) {
			return n.at(to), nil // even if the source has changed since
		}
		source, err := p.tree.look(from)
		switch {
		case err != nil:
			return providers.Info{}, err
		case source.isDir():
			return providers.Info{}, providers.ErrIsDir
		case !opts.Version.IsZero() && !opts.Version.Matches(source.version):
			return providers.Info{}, providers.ErrConflict
		}
		metadata := opts.Metadata
		if metadata == nil {
			metadata = source.metadata
		}
		return p.write(to, source.content, providers.WriteOptions{
			If: opts.If, Kind: source.kind, Op: opts.Op,
			Attr: source.attr.Merge(opts.Attr), Metadata: maps.Clone(metadata),
		})
	})
}

// Move implements providers.Mover.
func (p *Provider) Move(ctx context.Context, from, to providers.Locator, opts providers.MoveOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodMove, from, func() (providers.Info, error) {
		if err := p.able(providers.AbilityMove); err != nil {
			return providers.Info{}, err
		}
		if n, _ := p.tree.look(to); repeats(n, opts.Op) {
			return n.at(to), nil // even if from has another entry by now
		}
		source, err := p.tree.look(from)
		if err != nil {
			return providers.Info{}, err
		}
		if err := p.checkMove(source, from, to, opts); err != nil {
			return providers.Info{}, err
		}
		moved := *source
		moved.op = p.mint.op(opts.Op)
		if from != to {
			p.mint.tick()
			p.tree.remove(from)
		}
		return moved.at(to), p.tree.put(to, &moved)
	})
}

func (p *Provider) checkMove(source *node, from, to providers.Locator, opts providers.MoveOptions) error {
	if from.IsRoot() || to.IsRoot() {
		return fmt.Errorf("the root stays: %w", providers.ErrInvalid)
	}
	if source.isDir() && from != to && from.Contains(to) {
		return fmt.Errorf("a directory cannot go below itself: %w", providers.ErrInvalid)
	}
	// For the source a move is a deletion.
	if err := opts.Source.Allows(providers.MethodDelete, source.describe(from)); err != nil {
		return err
	}
	parent, err := p.tree.find(to.Parent())
	switch {
	case err != nil:
		return err
	case parent == nil:
		return providers.ErrNotExist
	case !parent.isDir():
		return providers.ErrNotDir
	}
	target := parent.entries.get(to.Name())
	if source.isDir() && target != nil {
		return providers.ErrExist
	}
	return opts.Target.Allows(providers.MethodMove, target.describe(to))
}
