package git

import (
	"context"

	"github.com/wsmount/wsmount/providers"
)

// Stat implements providers.Provider.
func (p *Provider) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	return do(ctx, p, providers.MethodStat, l, func() (providers.Info, error) { return p.head.now.Load().stat(ctx, l) })
}

// Read implements providers.Provider.
func (p *Provider) Read(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	return do(ctx, p, providers.MethodRead, l, func() (providers.Content, error) { return p.head.now.Load().open(ctx, l, opts) })
}

// List implements providers.Provider. Entries come in git's order.
func (p *Provider) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	return do(ctx, p, providers.MethodList, l, func() (providers.Page, error) { return p.head.now.Load().list(ctx, l, opts) })
}

// Head implements providers.Committer.
func (p *Provider) Head(ctx context.Context) (providers.Revision, error) {
	return do(ctx, p, providers.MethodHead, providers.Locator{}, func() (providers.Revision, error) {
		return revision(p.head.now.Load().commit), nil
	})
}

// Find implements providers.Snapshotter.
func (p *Provider) Find(ctx context.Context, name string) (providers.Found, error) {
	return do(ctx, p, providers.MethodFind, providers.Locator{}, func() (found providers.Found, err error) {
		c, err := p.repo.named(name)
		if err != nil {
			return found, err
		}
		commit, err := p.repo.commit(c)
		found.Revision, found.Time = revision(c), commit.Committer.When
		for _, parent := range commit.Parents {
			found.Parents = append(found.Parents, revision(parent))
		}
		return found, err
	})
}

// At implements providers.Snapshotter.
func (p *Provider) At(ctx context.Context, r providers.Revision) (providers.Provider, error) {
	return do(ctx, p, providers.MethodAt, providers.Locator{}, func() (providers.Provider, error) {
		c, err := p.repo.commitOf(r)
		if err != nil {
			return nil, err
		}
		v, err := p.repo.viewOf(c)
		if err != nil {
			return nil, err
		}
		return providers.ReadOnly(&past{in: p, view: v}, providers.ReadOnlyOptions{Reason: "the past stays as it is"}), nil
	})
}
