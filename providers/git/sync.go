package git

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/remote"
)

// Fetch implements providers.Syncer.
func (p *Provider) Fetch(ctx context.Context) (providers.Revision, error) {
	return do(ctx, p, providers.MethodFetch, providers.Locator{}, func() (providers.Revision, error) {
		s, err := p.origin.remote.Ask(ctx)
		if err != nil {
			return "", gone(err)
		}
		defer s.Close()
		c, err := p.origin.learn(ctx, s)
		if p.head.on() != p.origin.branch && (err == nil || errors.Is(err, errNoBranch)) {
			c, err = p.origin.learnOwn(ctx, s, c)
		}
		return revision(c), gone(err)
	})
}

// Adopt implements providers.Syncer.
func (p *Provider) Adopt(ctx context.Context, from, to providers.Revision) error {
	_, err := do(ctx, p, providers.MethodAdopt, providers.Locator{}, func() (struct{}, error) {
		next, err := p.repo.commitOf(to)
		if err != nil {
			return struct{}{}, err
		}
		m := p.head.hold()
		defer m.release()
		return struct{}{}, m.adopt(from, next)
	})
	return err
}

// Base implements providers.Syncer.
func (p *Provider) Base(ctx context.Context, a, b providers.Revision) (providers.Revision, error) {
	return do(ctx, p, providers.MethodBase, providers.Locator{}, func() (providers.Revision, error) {
		x, err := p.repo.commitOf(a)
		if err != nil {
			return "", err
		}
		y, err := p.repo.commitOf(b)
		if err != nil {
			return "", err
		}
		bases, err := p.repo.bases(x, y)
		if err != nil || len(bases) == 0 {
			return "", err
		}
		return revision(bases[0]), nil
	})
}

// gone keeps a repository that is missing by now, or is hidden from the credentials, from looking
// like one that has no such branch yet.
func gone(err error) error {
	var asked *remote.Error
	if errors.As(err, &asked) && errors.Is(asked.Kind, providers.ErrNotExist) {
		return &remote.Error{Kind: providers.ErrUnavailable, Code: asked.Code, Err: errors.New(asked.Error())}
	}
	return err
}
