package memory

import (
	"context"
	"slices"

	"github.com/wsmount/wsmount/providers"
)

// Differences implements providers.Differ.
func (r *Repository) Differences(ctx context.Context, from, to providers.Revision) ([]providers.Difference, error) {
	return do(ctx, r.files, providers.MethodDiffer, providers.Locator{}, func() ([]providers.Difference, error) {
		if err := r.mustHave(from, to); err != nil {
			return nil, err
		}
		r.remote.mu.Lock()
		defer r.remote.mu.Unlock()
		var d differing
		err := d.below(providers.Locator{}, r.remote.revisions.tree(from).root, r.remote.revisions.tree(to).root)
		slices.SortFunc(d, func(a, b providers.Difference) int { return a.Locator.Compare(b.Locator) })
		return d, err
	})
}

type differing []providers.Difference

// below adds the differences between two directories; nil is an empty one. Shared parts are not
// compared.
func (d *differing) below(at providers.Locator, was, is *node) error {
	if was == is {
		return nil
	}
	ours, theirs := childrenOf(was), childrenOf(is)
	for name, n := range ours {
		if err := d.at(at, name, n, theirs[name]); err != nil {
			return err
		}
	}
	for name, n := range theirs {
		if ours[name] == nil {
			if err := d.at(at, name, nil, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *differing) at(dir providers.Locator, name string, was, is *node) error {
	if was == is {
		return nil
	}
	l, err := dir.Child(name)
	if err != nil {
		return err
	}
	before, after := was != nil && was.isDir(), is != nil && is.isDir()
	if alike := was != nil && is != nil && was.kind == is.kind && was.version == is.version; !alike && (!before || !after) {
		*d = append(*d, providers.Difference{Locator: l, Was: was.describe(l), Is: is.describe(l)})
	}
	if !before {
		was = nil
	}
	if !after {
		is = nil
	}
	return d.below(l, was, is)
}

func childrenOf(n *node) map[string]*node {
	all := map[string]*node{}
	if n != nil {
		n.entries.from("", func(name string, child *node) bool {
			all[name] = child
			return true
		})
	}
	return all
}
