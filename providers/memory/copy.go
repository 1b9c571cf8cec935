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
		source, err := p.tree.look(from)
		switch {
		case err != nil:
			return providers.Info{}, err
		case source.isDir():
			return providers.Info{}, providers.ErrIsDir
		case !opts.Version.IsZero() && !opts.Version.Matches(source.info.Version):
			return providers.Info{}, providers.ErrConflict
		}
		metadata := opts.Metadata
		if metadata == nil {
			metadata = source.info.Metadata
		}
		return p.write(to, source.content, providers.WriteOptions{
			If: opts.If, Kind: source.info.Kind, Op: opts.Op,
			Attr: merge(source.info.Attr, opts.Attr), Metadata: maps.Clone(metadata),
		})
	})
}

// Move implements providers.Mover.
func (p *Provider) Move(ctx context.Context, from, to providers.Locator, opts providers.MoveOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodMove, from, func() (providers.Info, error) {
		source, err := p.tree.look(from)
		if err != nil {
			return providers.Info{}, err
		}
		if err := p.checkMove(source, from, to, opts); err != nil {
			return providers.Info{}, err
		}
		if from == to {
			return source.at(to), nil
		}
		p.tick()
		p.tree.remove(from)
		return source.at(to), p.tree.put(to, source)
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
	target := parent.children[to.Name()]
	if source.isDir() && target != nil {
		return providers.ErrExist
	}
	return opts.Target.Allows(providers.MethodMove, target.describe(to))
}
