package memoryrepo

import (
	"context"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// Differences implements providers.Differ.
func (r *Repository) Differences(ctx context.Context, from, to providers.Revision) ([]providers.Difference, error) {
	return do(ctx, r, providers.MethodDiffer, providers.Locator{}, func() ([]providers.Difference, error) {
		if err := r.mustHave(from, to); err != nil {
			return nil, err
		}
		r.remote.mu.Lock()
		defer r.remote.mu.Unlock()
		return differences(ctx, r.remote.revisions.files(from), r.remote.revisions.files(to))
	})
}

// differences are the entries that two trees have not in common, sorted by place.
func differences(ctx context.Context, from, to *memory.Provider) ([]providers.Difference, error) {
	was, err := entries(ctx, from)
	if err != nil {
		return nil, err
	}
	is, err := entries(ctx, to)
	if err != nil {
		return nil, err
	}
	var all []providers.Difference
	for l, before := range was {
		if after := is[l]; !same(before, after) {
			all = append(all, providers.Difference{Locator: l, Was: before, Is: after})
		}
	}
	for l, after := range is {
		if was[l] == nil {
			all = append(all, providers.Difference{Locator: l, Is: after})
		}
	}
	slices.SortFunc(all, func(a, b providers.Difference) int { return a.Locator.Compare(b.Locator) })
	return all, nil
}

// same reports whether two entries, or none, are equal: versions are made of content and mode.
func same(a, b *providers.Info) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.Version == b.Version
}

// entries are all of a tree, by place.
func entries(ctx context.Context, files *memory.Provider) (map[providers.Locator]*providers.Info, error) {
	all := map[providers.Locator]*providers.Info{}
	for dirs := []providers.Locator{{}}; len(dirs) > 0; {
		dir := dirs[0]
		dirs = dirs[1:]
		for listed, err := range providers.All(ctx, files, dir, providers.ListOptions{}) {
			if err != nil {
				return nil, err
			}
			info, err := files.Stat(ctx, listed.Locator) // a listing need not be complete
			if err != nil {
				return nil, err
			}
			all[info.Locator] = &info
			if info.Kind == providers.KindDir {
				dirs = append(dirs, info.Locator)
			}
		}
	}
	return all, nil
}
