package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/refs"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// mainBranch is tracked where neither the caller nor the server names one.
const mainBranch = "main"

// clone fetches the remote's branch. Interrupted, it begins again.
func (g *origin) clone(ctx context.Context) error {
	// Before the first request: a server drops a session that pauses.
	if g.pool = openShared(ctx, g.o.Shared, g.o.URL); g.pool != nil {
		defer func() { g.pool.close(); g.pool = nil }()
	}
	s, err := g.remote.Ask(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	branch := g.o.Branch
	if branch == "" {
		if branch, err = defaultBranch(ctx, g.remote, s); err != nil {
			return err
		}
		if !refs.ValidBranch(branch) { // it becomes the name of a local file
			return fmt.Errorf("the server names %q as its branch: %w", branch, providers.ErrInvalid)
		}
	}
	if err := g.repo.make(branch); err != nil {
		return err
	}
	g.branch = branch
	switch theirs, err := g.learn(ctx, s); {
	case errors.Is(err, errNoBranch):
		if g.o.Branch != "" && !s.Empty() {
			return providers.Kinded(fmt.Errorf("the repository has no branch %s", branch), providers.ErrNotExist)
		}
	case err != nil:
		return err
	default:
		head, err := g.repo.refs.Get(headRef(g.on()))
		if err == nil && head.IsZero() {
			err = g.repo.refs.Update(headRef(g.on()), head, theirs)
		}
		if err == nil {
			err = g.repo.partial.FetchSmall(ctx, theirs)
		}
		if err == nil {
			g.repo.state.First = theirs.String() // no other goroutine uses the state yet
			g.lend(theirs)
		}
		if err != nil {
			return err
		}
	}
	return g.repo.settle()
}

// defaultBranch is the branch that a server's HEAD names, whether it exists or not.
func defaultBranch(ctx context.Context, r *remote.Remote, s *remote.Session) (string, error) {
	if branch := s.Default(); branch != "" {
		return branch, nil
	}
	branch, err := r.Unborn(ctx)
	return cmp.Or(branch, mainBranch), err
}
