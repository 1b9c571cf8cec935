package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/wsmount/wsmount/providers"
)

// Rebase implements providers.Rebaser.
func (r *Repository) Rebase(ctx context.Context, base, from, onto providers.Revision, combine providers.Combine) (providers.Revision, error) {
	return do(ctx, r.files, providers.MethodRebase, providers.Locator{}, func() (providers.Revision, error) {
		if err := r.mustHave(base, from, onto); err != nil {
			return "", err
		}
		r.remote.mu.Lock()
		defer r.remote.mu.Unlock()
		return r.rebase(base, from, onto, combine)
	})
}

// rebase is Rebase under both locks.
func (r *Repository) rebase(base, from, onto providers.Revision, combine providers.Combine) (providers.Revision, error) {
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
	now, steps := r.remote.revisions.tree(onto), []*revision{}
	for _, c := range slices.Backward(line) {
		t := threeWay{combine: combine, mint: &r.files.mint}
		root := t.entry("", r.remote.revisions.tree(c.parents[0]).root, now.root, c.tree.root)
		switch {
		case t.err != nil:
			return "", t.err
		case root == nil:
			root = emptyDir
		}
		if !same(root, now.root) {
			now.root = root
			steps = append(steps, &revision{tree: now, set: c.set})
		}
	}
	for _, c := range steps {
		onto = r.remote.revisions.add(c.tree, c.set, onto)
		r.has[onto] = true
	}
	return onto, nil
}

// threeWay merges trees. err is the first conflict.
type threeWay struct {
	combine providers.Combine
	mint    *mint
	err     error
}

// entry applies the change of a name from base to theirs to ours, and returns the resulting
// entry; nil stands for no entry, in all of them.
func (t *threeWay) entry(path string, base, ours, theirs *node) *node {
	isDir := func(n *node) bool { return n != nil && n.isDir() }
	isFile := func(n *node) bool { return n != nil && n.kind == providers.KindFile }
	switch {
	case same(base, theirs), same(ours, theirs):
		return ours
	case same(base, ours):
		return theirs
	case (base == nil || isDir(base)) && isDir(ours) && isDir(theirs):
		return t.dir(path, base, ours, theirs)
	case isFile(base) && isFile(ours) && isFile(theirs) && base.attr.Equal(theirs.attr):
		if content, ok := t.combine(base.content, ours.content, theirs.content, false); ok {
			return t.mint.file(content, providers.WriteOptions{Attr: ours.attr, Metadata: ours.metadata})
		}
	}
	if t.err == nil {
		t.err = fmt.Errorf("%s: changed on both sides: %w", path, providers.ErrConflict)
	}
	return nil
}

func (t *threeWay) dir(path string, base, ours, theirs *node) *node {
	if base == nil {
		base = emptyDir
	}
	names := map[string]bool{}
	note := func(name string, _ *node) bool { names[name] = true; return true }
	base.entries.from("", note)
	theirs.entries.from("", note)
	made := ours
	for name := range names {
		n := t.entry(path+"/"+name, base.entries.get(name), ours.entries.get(name), theirs.entries.get(name))
		if n != nil || made.entries.get(name) != nil {
			made = made.with(name, n)
		}
	}
	if made.entries == nil {
		return nil
	}
	return made
}
