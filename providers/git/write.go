package git

import (
	"context"
	"fmt"

	"github.com/wsmount/wsmount/providers"
)

// Write implements providers.Provider: it is a set of one change.
func (p *Provider) Write(ctx context.Context, l providers.Locator, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	c := providers.Change{Locator: l, Body: body, If: opts.If, Kind: opts.Kind, Attr: opts.Attr}
	result, err := p.single(ctx, providers.MethodWrite, c)
	if err != nil {
		return providers.Info{}, err
	}
	return result.Entries[0], nil
}

// Delete implements providers.Provider: it is a set of one change.
func (p *Provider) Delete(ctx context.Context, l providers.Locator, opts providers.DeleteOptions) error {
	_, err := p.single(ctx, providers.MethodDelete,
		providers.Change{Locator: l, Delete: true, If: opts.If, Dir: opts.If.Kind == providers.ConditionDir})
	return err
}

func (p *Provider) single(ctx context.Context, m providers.Method, c providers.Change) (providers.CommitResult, error) {
	return do(ctx, p, m, c.Locator, func() (providers.CommitResult, error) {
		return p.sets.commit(ctx, providers.ChangeSet{Message: fmt.Sprintf("%s %s", m, c.Locator), Changes: []providers.Change{c}})
	})
}

// Mkdir implements providers.Provider: git knows no directory without entries.
func (p *Provider) Mkdir(ctx context.Context, l providers.Locator, _ providers.MkdirOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodMkdir, l, func() (providers.Info, error) {
		return providers.Info{}, providers.ErrUnsupported
	})
}
