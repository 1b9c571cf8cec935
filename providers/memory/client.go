package memory

import (
	"context"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory/wire"
)

// Capabilities implements providers.Provider: those of the server's provider, as far as a
// client can use them.
func (c *Client) Capabilities() providers.Capabilities { return c.capabilities }

// Stat implements providers.Provider.
func (c *Client) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	return wire.Ask[providers.Info](ctx, c.conn, wire.Request{Method: providers.MethodStat, Locator: l}, wire.Nothing{}, providers.Body{})
}

// List implements providers.Provider.
func (c *Client) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	return wire.Ask[providers.Page](ctx, c.conn, wire.Request{Method: providers.MethodList, Locator: l}, opts, providers.Body{})
}

// Read implements providers.Provider.
func (c *Client) Read(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	info, body, err := wire.Open[providers.Info](ctx, c.conn, wire.Request{Method: providers.MethodRead, Locator: l}, opts, providers.Body{})
	if err != nil {
		return providers.Content{}, err
	}
	return providers.Content{Info: info, Body: body}, nil
}

// Write implements providers.Provider.
func (c *Client) Write(ctx context.Context, l providers.Locator, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	return wire.Ask[providers.Info](ctx, c.conn, wire.Request{Method: providers.MethodWrite, Locator: l}, opts, body)
}

// Delete implements providers.Provider.
func (c *Client) Delete(ctx context.Context, l providers.Locator, opts providers.DeleteOptions) error {
	_, err := wire.Ask[wire.Nothing](ctx, c.conn, wire.Request{Method: providers.MethodDelete, Locator: l}, opts, providers.Body{})
	return err
}

// Mkdir implements providers.Provider.
func (c *Client) Mkdir(ctx context.Context, l providers.Locator, opts providers.MkdirOptions) (providers.Info, error) {
	return wire.Ask[providers.Info](ctx, c.conn, wire.Request{Method: providers.MethodMkdir, Locator: l}, opts, providers.Body{})
}

// Copy implements providers.Copier.
func (c *Client) Copy(ctx context.Context, from, to providers.Locator, opts providers.CopyOptions) (providers.Info, error) {
	return wire.Ask[providers.Info](ctx, c.conn, wire.Request{Method: providers.MethodCopy, Locator: from, To: to}, opts, providers.Body{})
}

// Move implements providers.Mover.
func (c *Client) Move(ctx context.Context, from, to providers.Locator, opts providers.MoveOptions) (providers.Info, error) {
	return wire.Ask[providers.Info](ctx, c.conn, wire.Request{Method: providers.MethodMove, Locator: from, To: to}, opts, providers.Body{})
}

// Fits implements providers.AttrSetter; a server has no bounds.
func (c *Client) Fits(providers.Attr, map[string]string) error { return nil }

// SetAttr implements providers.AttrSetter.
func (c *Client) SetAttr(ctx context.Context, l providers.Locator, opts providers.SetAttrOptions) (providers.Info, error) {
	return wire.Ask[providers.Info](ctx, c.conn, wire.Request{Method: providers.MethodSetAttr, Locator: l}, opts, providers.Body{})
}

// Head implements providers.Committer.
func (c *Client) Head(ctx context.Context) (providers.Revision, error) {
	return wire.Ask[providers.Revision](ctx, c.conn, wire.Request{Method: providers.MethodHead}, wire.Nothing{}, providers.Body{})
}

// Commit implements providers.Committer.
func (c *Client) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	bodies, err := readBodies(ctx, set.Changes)
	if err != nil {
		return providers.CommitResult{}, providers.Fail(name, providers.MethodCommit, providers.Locator{}, err, providers.ErrUnavailable)
	}
	set.Changes = slices.Clone(set.Changes)
	for i := range set.Changes {
		set.Changes[i].Body = providers.Body{} // a Reader cannot be sent
	}
	return wire.Ask[providers.CommitResult](ctx, c.conn, wire.Request{Method: providers.MethodCommit}, wire.CommitArgs{Set: set, Bodies: bodies}, providers.Body{})
}

// At implements providers.Snapshotter.
func (c *Client) At(ctx context.Context, r providers.Revision) (providers.Provider, error) {
	caps, err := wire.Ask[providers.Capabilities](ctx, c.conn, wire.Request{Method: providers.MethodAt}, r, providers.Body{})
	if err != nil {
		return nil, err
	}
	past := &Client{conn: c.conn.At(r), capabilities: caps}
	past.capabilities.Abilities &= served
	return past, nil
}

// Find implements providers.Snapshotter.
func (c *Client) Find(ctx context.Context, name string) (providers.Found, error) {
	return wire.Ask[providers.Found](ctx, c.conn, wire.Request{Method: providers.MethodFind}, name, providers.Body{})
}

// Push implements providers.Pusher.
func (c *Client) Push(ctx context.Context, opts providers.PushOptions) (providers.PushResult, error) {
	return wire.Ask[providers.PushResult](ctx, c.conn, wire.Request{Method: providers.MethodPush}, opts, providers.Body{})
}

// Fetch implements providers.Syncer.
func (c *Client) Fetch(ctx context.Context) (providers.Revision, error) {
	return wire.Ask[providers.Revision](ctx, c.conn, wire.Request{Method: providers.MethodFetch}, wire.Nothing{}, providers.Body{})
}

// Adopt implements providers.Syncer.
func (c *Client) Adopt(ctx context.Context, from, to providers.Revision) error {
	_, err := wire.Ask[wire.Nothing](ctx, c.conn, wire.Request{Method: providers.MethodAdopt}, wire.Revisions{A: from, B: to}, providers.Body{})
	return err
}

// Base implements providers.Syncer.
func (c *Client) Base(ctx context.Context, a, b providers.Revision) (providers.Revision, error) {
	return wire.Ask[providers.Revision](ctx, c.conn, wire.Request{Method: providers.MethodBase}, wire.Revisions{A: a, B: b}, providers.Body{})
}

// Differences implements providers.Differ.
func (c *Client) Differences(ctx context.Context, from, to providers.Revision) ([]providers.Difference, error) {
	return wire.Ask[[]providers.Difference](ctx, c.conn, wire.Request{Method: providers.MethodDiffer}, wire.Revisions{A: from, B: to}, providers.Body{})
}

// Close implements providers.Provider.
func (c *Client) Close() error {
	c.conn.Close()
	return nil
}
