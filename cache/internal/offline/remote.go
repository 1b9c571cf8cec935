package offline

import (
	"context"

	"github.com/wsmount/wsmount/providers"
)

// Remote is the remote of a working copy that is started without one. It holds no entries, and
// claims every ability, so that each difference counts as one.
type Remote struct{}

var _ providers.Provider = Remote{}

func (Remote) Capabilities() providers.Capabilities {
	return providers.Capabilities{Writable: true, ListComplete: true, EmptyDirs: true, Symlinks: true,
		Attributes: providers.AttrMode | providers.AttrOwner | providers.AttrModTime | providers.AttrXattrs}
}

func (Remote) fail(method providers.Method, l providers.Locator) error {
	return &providers.Error{Op: method, Locator: l, Kind: providers.ErrUnavailable}
}

func (r Remote) Stat(_ context.Context, l providers.Locator) (providers.Info, error) {
	return providers.Info{}, r.fail(providers.MethodStat, l)
}

func (r Remote) List(_ context.Context, l providers.Locator, _ providers.ListOptions) (providers.Page, error) {
	return providers.Page{}, r.fail(providers.MethodList, l)
}

func (r Remote) Read(_ context.Context, l providers.Locator, _ providers.ReadOptions) (providers.Content, error) {
	return providers.Content{}, r.fail(providers.MethodRead, l)
}

func (r Remote) Write(_ context.Context, l providers.Locator, _ providers.Body, _ providers.WriteOptions) (providers.Info, error) {
	return providers.Info{}, r.fail(providers.MethodWrite, l)
}

func (r Remote) Delete(_ context.Context, l providers.Locator, _ providers.DeleteOptions) error {
	return r.fail(providers.MethodDelete, l)
}

func (r Remote) Mkdir(_ context.Context, l providers.Locator, _ providers.MkdirOptions) (providers.Info, error) {
	return providers.Info{}, r.fail(providers.MethodMkdir, l)
}

func (Remote) Close() error { return nil }
