package git

import (
	"context"
	"errors"
	"sync"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/trees"
)

// Submodule implements providers.Submoduler.
func (p *Provider) Submodule(ctx context.Context, l providers.Locator) (at providers.Locator, ok bool, err error) {
	v := p.head.now.Load()
	if first, err := p.repo.submodules.below(ctx, v, v.root); err != nil || first == "" {
		return providers.Locator{}, false, err
	}
	e, _, err := v.look(ctx, l)
	switch {
	case errors.Is(err, providers.ErrNotExist):
		return providers.Locator{}, false, nil
	case err != nil:
		return providers.Locator{}, false, err
	case e.Mode.IsSubmodule():
		return l, true, nil
	case !e.Mode.IsDir():
		return providers.Locator{}, false, nil
	}
	below, err := p.repo.submodules.below(ctx, v, e.ID)
	if err != nil || below == "" {
		return providers.Locator{}, false, err
	}
	at, err = l.Child(below)
	return at, err == nil, err
}

// submodules remembers the first submodule of each tree: most have none, and
// a tree never changes. It may be used from several goroutines.
type submodules struct {
	mu    sync.Mutex
	first map[id]string // the path below the tree; empty: there is none
}

// rememberedTrees is how many trees submodules remembers; then it begins anew.
const rememberedTrees = 200_000

// below is the path of the first submodule below a tree, empty if there is none.
func (s *submodules) below(ctx context.Context, v *view, tree id) (string, error) {
	s.mu.Lock()
	first, known := s.first[tree]
	s.mu.Unlock()
	if known {
		return first, nil
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	raw, err := v.tree(tree)
	if err != nil {
		return "", err
	}
	for len(raw) > 0 && first == "" {
		var e object.Entry
		if e, raw, err = object.Next(raw); err != nil {
			return "", err
		}
		switch {
		case trees.Hidden(e.Name):
		case e.Mode.IsSubmodule():
			first = e.Name
		case e.Mode.IsDir():
			deeper, err := s.below(ctx, v, e.ID)
			if err != nil {
				return "", err
			}
			if deeper != "" {
				first = e.Name + "/" + deeper
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == nil || len(s.first) >= rememberedTrees {
		s.first = make(map[id]string)
	}
	s.first[tree] = first
	return first, nil
}
