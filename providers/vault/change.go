package vault

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/localdir"
)

// Delete implements providers.Provider.
func (p *Provider) Delete(ctx context.Context, l providers.Locator, opts providers.DeleteOptions) error {
	_, err := do(ctx, p, providers.MethodDelete, l, func() (struct{}, error) {
		if l.IsRoot() {
			return struct{}{}, fmt.Errorf("the root stays: %w", providers.ErrInvalid)
		}
		return struct{}{}, p.locked(ctx, func(t *turn) error {
			if err := t.enter(ctx, l.Parent()); err != nil {
				return err
			}
			removed, err := t.remove(ctx, l, opts.If)
			if err != nil || !removed {
				return err
			}
			return t.settle()
		})
	})
	return err
}

// remove reports whether there was an entry that it removed.
func (t *turn) remove(ctx context.Context, l providers.Locator, cond providers.Condition) (bool, error) {
	p := t.p
	current, err := p.find(ctx, l, remembered)
	if err != nil && err != unix.ENOTDIR && err != unix.ELOOP { // an entry below a file is missing
		return false, err
	}
	if err := cond.Allows(providers.MethodDelete, current); err != nil || current == nil {
		return false, err
	}
	flags := 0
	if current.Kind == providers.KindDir {
		flags = unix.AT_REMOVEDIR
	}
	p.at(stepLooked)
	err = t.within(l, func(dir int, name string) error {
		if cond.Kind == providers.ConditionVersion {
			if err := p.unchanged(ctx, dir, name, current, l); err != nil {
				return err
			}
		}
		if err := t.still(); err != nil {
			return err
		}
		return retryErr(func() error { return unix.Unlinkat(dir, name, flags) })
	})
	return err == nil, err
}

// Mkdir implements providers.Provider. It needs no mutex: of two callers that make a directory,
// both find it.
func (p *Provider) Mkdir(ctx context.Context, l providers.Locator, opts providers.MkdirOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodMkdir, l, func() (providers.Info, error) {
		if info, err := p.stat(ctx, l, unread); err == nil {
			if info.Kind != providers.KindDir {
				return providers.Info{}, providers.ErrExist
			}
			return info, nil
		}
		if err := p.mkdirs(l); err != nil {
			return providers.Info{}, err
		}
		if err := p.setAttr(p.within, l, providers.KindDir, opts.Attr); err != nil {
			return providers.Info{}, err
		}
		info, err := p.stat(ctx, l, unread)
		return info, localdir.Happened(err)
	})
}

// Move implements providers.Mover.
func (p *Provider) Move(ctx context.Context, from, to providers.Locator, opts providers.MoveOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodMove, from, func() (info providers.Info, err error) {
		switch {
		case from.IsRoot() || to.IsRoot():
			return info, fmt.Errorf("the root stays: %w", providers.ErrInvalid)
		case from != to && from.Contains(to):
			return info, fmt.Errorf("a directory cannot go below itself: %w", providers.ErrInvalid)
		}
		err = p.locked(ctx, func(t *turn) error {
			if err := t.enter(ctx, from.Parent(), to.Parent()); err != nil {
				return err
			}
			source, err := p.stat(ctx, from, remembered)
			if err != nil {
				return err
			}
			if err := t.move(ctx, &source, to, opts); err != nil {
				return err
			}
			if err := t.settle(); err != nil {
				return err
			}
			info, err = p.stat(ctx, to, remembered)
			return localdir.Happened(err)
		})
		return info, err
	})
}

// move checks both conditions, then renames.
func (t *turn) move(ctx context.Context, source *providers.Info, to providers.Locator, opts providers.MoveOptions) error {
	p := t.p
	// For the source a move is a deletion.
	if err := opts.Source.Allows(providers.MethodDelete, source); err != nil {
		return err
	}
	return t.within(source.Locator, func(fromDir int, fromName string) error {
		return t.within(to, func(toDir int, toName string) error {
			target, err := p.look(ctx, toDir, toName, to, remembered)
			if err != nil {
				return err
			}
			if source.Kind == providers.KindDir && target != nil {
				return providers.ErrExist
			}
			if err := opts.Target.Allows(providers.MethodMove, target); err != nil {
				return err
			}
			p.at(stepLooked)
			if opts.Source.Kind == providers.ConditionVersion {
				if err := p.unchanged(ctx, fromDir, fromName, source, source.Locator); err != nil {
					return err
				}
			}
			if err := p.unchanged(ctx, toDir, toName, target, to); err != nil {
				return err
			}
			if err := t.still(); err != nil {
				return err
			}
			var flags uint
			if target == nil {
				flags = unix.RENAME_NOREPLACE
			}
			return changedMeanwhile(localdir.Rename(fromDir, fromName, toDir, toName, flags), opts.Target)
		})
	})
}

// Fits implements providers.AttrSetter: attributes that are not kept fit.
func (p *Provider) Fits(providers.Attr, map[string]string) error { return nil }

// SetAttr implements providers.AttrSetter. The content stays, so versions do.
func (p *Provider) SetAttr(ctx context.Context, l providers.Locator, opts providers.SetAttrOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodSetAttr, l, func() (info providers.Info, err error) {
		if lacking := opts.Attr.Valid &^ capabilities().Attributes; lacking != 0 || len(opts.Metadata) > 0 {
			return info, fmt.Errorf("attributes %s, %d metadata: %w", lacking, len(opts.Metadata), providers.ErrUnsupported)
		}
		err = p.locked(ctx, func(t *turn) error {
			if !l.IsRoot() {
				if err := t.enter(ctx, l.Parent()); err != nil {
					return err
				}
			}
			current, err := p.stat(ctx, l, remembered)
			if err != nil {
				return err
			}
			if err := errors.Join(opts.If.Allows(providers.MethodSetAttr, &current), t.still()); err != nil {
				return err
			}
			if err := p.setAttr(t.within, l, current.Kind, opts.Attr); err != nil {
				return err
			}
			info, err = p.stat(ctx, l, remembered)
			return localdir.Happened(err)
		})
		return info, err
	})
}

// setAttr changes the attributes of an entry and makes that durable. within is that of a turn, or
// of the provider.
func (p *Provider) setAttr(within func(providers.Locator, func(int, string) error) error, l providers.Locator, kind providers.Kind, attr providers.Attr) error {
	return within(l, func(dir int, name string) error {
		if attr.Valid == 0 {
			return nil
		}
		if err := setAttr(dir, name, kind, attr); err != nil {
			return err
		}
		fd, err := retry(func() (int, error) {
			return unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		})
		if err != nil { // a link, or a file that this user may not read
			return localdir.Happened(retryErr(func() error { return unix.Syncfs(p.root) }))
		}
		defer unix.Close(fd)
		return localdir.Happened(retryErr(func() error { return p.fsync(fd) }))
	})
}
