package git

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/refs"
)

// Branches implements providers.Brancher.
func (p *Provider) Branches(ctx context.Context) (providers.Branches, error) {
	return do(ctx, p, providers.MethodBranches, providers.Locator{}, func() (providers.Branches, error) {
		tip, err := p.origin.tracked()
		if err != nil {
			return providers.Branches{}, err
		}
		all := providers.Branches{Tracked: p.origin.branch, Tip: revision(tip)}
		if on := p.head.on(); on != p.origin.branch {
			all.On = on
		}
		refs, err := p.repo.refs.List(headRef(""))
		if err != nil {
			return all, err
		}
		for _, ref := range slices.Sorted(maps.Keys(refs)) {
			b, list, err := p.origin.branchAt(strings.TrimPrefix(ref, headRef("")), refs[ref], tip)
			if err != nil {
				return all, err
			}
			if list {
				all.Unmerged = append(all.Unmerged, b)
			}
		}
		all.Unpushed, err = p.origin.unpushed()
		return all, err
	})
}

// Begin implements providers.Brancher.
func (p *Provider) Begin(ctx context.Context, branch string, ask bool) (providers.Revision, error) {
	return do(ctx, p, providers.MethodBegin, providers.Locator{}, func() (providers.Revision, error) {
		if branch != "" && !refs.ValidBranch(branch) {
			return "", fmt.Errorf("branch %q: %w", branch, providers.ErrInvalid)
		}
		if ask {
			if err := p.origin.learnBoth(ctx, branch); err != nil {
				return "", gone(err)
			}
		}
		c, err := p.origin.beginning(branch)
		return revision(c), err
	})
}

// Start implements providers.Brancher.
func (p *Provider) Start(ctx context.Context, branch string, from, to providers.Revision) error {
	_, err := do(ctx, p, providers.MethodStart, providers.Locator{}, func() (none struct{}, err error) {
		if branch == p.origin.branch || branch != "" && !refs.ValidBranch(branch) {
			return none, fmt.Errorf("branch %q: %w", branch, providers.ErrInvalid)
		}
		branch = orDefault(branch, p.origin.branch)
		if to == "" && from == "" {
			return none, nil
		}
		next, err := p.repo.commitOf(to)
		if err != nil {
			return none, err
		}
		m := p.head.hold()
		defer m.release()
		if branch == m.on() {
			return none, m.adopt(from, next)
		}
		return none, m.start(branch, from, next)
	})
	return err
}
