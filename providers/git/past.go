package git

import (
	"context"
	"sync/atomic"

	"github.com/wsmount/wsmount/providers"
)

// past is the tree of a revision. Callers get it read-only.
type past struct {
	in     *Provider
	view   *view
	closed atomic.Bool
}

var _ providers.Provider = (*past)(nil)

// look is do for the past, which ends with the provider.
func look[R any](ctx context.Context, p *past, m providers.Method, l providers.Locator, verb func() (R, error)) (R, error) {
	return do(ctx, p.in, m, l, func() (R, error) {
		if p.closed.Load() {
			var none R
			return none, providers.ErrClosed
		}
		return verb()
	})
}

func (p *past) Capabilities() providers.Capabilities {
	c := capabilities()
	c.Abilities = 0
	return c
}

func (p *past) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	return look(ctx, p, providers.MethodStat, l, func() (providers.Info, error) { return p.view.stat(ctx, l) })
}

func (p *past) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	return look(ctx, p, providers.MethodList, l, func() (providers.Page, error) { return p.view.list(ctx, l, opts) })
}

func (p *past) Read(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	return look(ctx, p, providers.MethodRead, l, func() (providers.Content, error) { return p.view.open(ctx, l, opts) })
}

func (p *past) refuse(ctx context.Context, m providers.Method, l providers.Locator) error {
	return fail(ctx, m, l, providers.ErrReadOnly)
}

func (p *past) Write(ctx context.Context, l providers.Locator, _ providers.Body, _ providers.WriteOptions) (providers.Info, error) {
	return providers.Info{}, p.refuse(ctx, providers.MethodWrite, l)
}

func (p *past) Delete(ctx context.Context, l providers.Locator, _ providers.DeleteOptions) error {
	return p.refuse(ctx, providers.MethodDelete, l)
}

func (p *past) Mkdir(ctx context.Context, l providers.Locator, _ providers.MkdirOptions) (providers.Info, error) {
	return providers.Info{}, p.refuse(ctx, providers.MethodMkdir, l)
}

func (p *past) Close() error {
	p.closed.Store(true)
	return nil
}
