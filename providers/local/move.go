package local

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

// Move implements providers.Mover.
func (p *Provider) Move(ctx context.Context, from, to providers.Locator, opts providers.MoveOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodMove, from, func() (info providers.Info, err error) {
		if err := checkMove(from, to); err != nil {
			return info, err
		}
		err = p.locked(func() error {
			source, err := p.stat(from)
			if err != nil {
				return err
			}
			return p.move(&source, to, opts)
		})
		if err != nil {
			return info, err
		}
		info, err = p.stat(to)
		return info, errors.Join(err, p.syncDir(to.Parent()), p.syncDir(from.Parent()))
	})
}

func checkMove(from, to providers.Locator) error {
	switch {
	case from.IsRoot() || to.IsRoot():
		return fmt.Errorf("the root stays: %w", providers.ErrInvalid)
	case from != to && from.Contains(to):
		return fmt.Errorf("a directory cannot go below itself: %w", providers.ErrInvalid)
	}
	return errors.Join(checkTemp(from), checkTemp(to))
}

// move asks both conditions, then renames.
func (p *Provider) move(source *providers.Info, to providers.Locator, opts providers.MoveOptions) error {
	// For the source a move is a deletion.
	if err := opts.Source.Allows(providers.MethodDelete, source); err != nil {
		return err
	}
	return p.within(source.Locator, func(fromDir int, fromName string) error {
		return p.within(to, func(toDir int, toName string) error {
			target, err := stat(toDir, toName, to)
			if err != nil {
				return err
			}
			if source.Kind == providers.KindDir && target != nil {
				return providers.ErrExist
			}
			if err := opts.Target.Allows(providers.MethodMove, target); err != nil {
				return err
			}
			var flags uint
			if target == nil {
				flags = unix.RENAME_NOREPLACE
			}
			return changedMeanwhile(rename(fromDir, fromName, toDir, toName, flags), opts.Target)
		})
	})
}

// Fits implements providers.AttrSetter: what is not kept fits.
func (p *Provider) Fits(providers.Attr, map[string]string) error { return nil }

// SetAttr implements providers.AttrSetter.
func (p *Provider) SetAttr(ctx context.Context, l providers.Locator, opts providers.SetAttrOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodSetAttr, l, func() (info providers.Info, err error) {
		if lacking := opts.Attr.Valid &^ capabilities().Attributes; lacking != 0 || len(opts.Metadata) > 0 {
			return info, fmt.Errorf("attributes %s, %d metadata: %w", lacking, len(opts.Metadata), providers.ErrUnsupported)
		}
		err = p.locked(func() error {
			current, err := p.stat(l)
			if err != nil {
				return err
			}
			if err := opts.If.Allows(providers.MethodSetAttr, &current); err != nil {
				return err
			}
			return p.within(l, func(dir int, name string) error { return setAttr(dir, name, current.Kind, opts.Attr) })
		})
		if err != nil {
			return info, err
		}
		return p.stat(l)
	})
}
