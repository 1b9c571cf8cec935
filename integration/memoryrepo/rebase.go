package memoryrepo

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// Rebase implements providers.Rebaser.
func (r *Repository) Rebase(ctx context.Context, base, from, onto providers.Revision, combine providers.Combine) (providers.Revision, error) {
	return do(ctx, r, providers.MethodRebase, providers.Locator{}, func() (providers.Revision, error) {
		if err := r.mustHave(base, from, onto); err != nil {
			return "", err
		}
		r.remote.mu.Lock()
		defer r.remote.mu.Unlock()
		return r.rebase(ctx, base, from, onto, combine)
	})
}

// rebase is the verb of Rebase.
func (r *Repository) rebase(ctx context.Context, base, from, onto providers.Revision, combine providers.Combine) (providers.Revision, error) {
	has, line := r.remote.revisions.history(onto), []*revision{}
	maps.Copy(has, r.remote.revisions.history(base))
	for id := from; !has[id]; {
		c := r.remote.revisions[id]
		if len(c.parents) != 1 {
			return "", fmt.Errorf("revision %q: %w", id, providers.ErrUnsupported)
		}
		line = append(line, c)
		id = c.parents[0]
	}
	now, steps := r.remote.revisions.files(onto), []*revision{}
	for _, c := range slices.Backward(line) {
		next := now.Fork(r.opts)
		t := threeWay{base: r.remote.revisions.files(c.parents[0]), ours: now, theirs: c.files, combine: combine}
		if err := t.into(ctx, next); err != nil {
			return "", err
		}
		changed, err := differences(ctx, now, next)
		if err != nil {
			return "", err
		}
		if len(changed) > 0 {
			now = next
			steps = append(steps, &revision{files: now, set: c.set})
		}
	}
	for _, c := range steps {
		onto = r.remote.revisions.add(c.files, c.set, onto)
		r.has[onto] = true
	}
	return onto, nil
}

// threeWay applies the changes from base to theirs to ours.
type threeWay struct {
	base, ours, theirs *memory.Provider
	combine            providers.Combine

	removed, made []providers.Change
}

// into changes a fork of ours. ErrConflict when both sides changed a name in ways that do not
// combine.
func (t *threeWay) into(ctx context.Context, fork *memory.Provider) error {
	base, err := filesOf(ctx, t.base)
	if err != nil {
		return err
	}
	ours, err := filesOf(ctx, t.ours)
	if err != nil {
		return err
	}
	theirs, err := filesOf(ctx, t.theirs)
	if err != nil {
		return err
	}
	all := maps.Clone(base)
	maps.Copy(all, theirs)
	for l := range all {
		if err := t.file(ctx, l, base[l], ours[l], theirs[l]); err != nil {
			return err
		}
	}
	if _, err := fork.Commit(ctx, providers.ChangeSet{Changes: t.removed}); err != nil {
		return err
	}
	// A directory of one side may be a file of the other.
	if _, err := fork.Commit(ctx, providers.ChangeSet{Changes: t.made}); err != nil {
		return fmt.Errorf("%v: %w", err, providers.ErrConflict)
	}
	return nil
}

// file decides about a name that base or theirs has.
func (t *threeWay) file(ctx context.Context, l providers.Locator, base, ours, theirs *providers.Info) error {
	isFile := func(i *providers.Info) bool { return i != nil && i.Kind == providers.KindFile }
	switch {
	case same(base, theirs), same(ours, theirs):
		return nil
	case same(base, ours) && theirs == nil:
		t.removed = append(t.removed, providers.Change{Locator: l, Delete: true, If: providers.Unconditional()})
		return nil
	case same(base, ours):
		content, _, err := providers.Fetch(ctx, t.theirs, l, providers.ReadOptions{})
		t.make(theirs, content)
		return err
	case isFile(base) && isFile(ours) && isFile(theirs) && base.Attr.Equal(theirs.Attr):
		var sides [3][]byte
		for i, p := range []*memory.Provider{t.base, t.ours, t.theirs} {
			var err error
			if sides[i], _, err = providers.Fetch(ctx, p, l, providers.ReadOptions{}); err != nil {
				return err
			}
		}
		if content, ok := t.combine(sides[0], sides[1], sides[2], false); ok {
			t.make(ours, content)
			return nil
		}
	}
	return fmt.Errorf("%s: changed on both sides: %w", l, providers.ErrConflict)
}

// make notes an entry like another, with content.
func (t *threeWay) make(like *providers.Info, content []byte) {
	t.made = append(t.made, providers.Change{
		Locator: like.Locator, Kind: like.Kind, Attr: like.Attr, Body: providers.Bytes(content), If: providers.Unconditional(),
	})
}

// filesOf are the entries of a tree without its directories, which files make.
func filesOf(ctx context.Context, files *memory.Provider) (map[providers.Locator]*providers.Info, error) {
	all, err := entries(ctx, files)
	maps.DeleteFunc(all, func(_ providers.Locator, i *providers.Info) bool { return i.Kind == providers.KindDir })
	return all, err
}
