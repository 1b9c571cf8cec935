package memory

import (
	"context"
	"io"
	"slices"

	"github.com/wsmount/wsmount/providers"
)

// Capabilities implements providers.Provider: what the server's provider
// promises, as far as it can be asked for from here.
func (c *Client) Capabilities() providers.Capabilities { return c.capabilities }

// Stat implements providers.Provider.
func (c *Client) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	a, err := c.ask(ctx, request{Method: providers.MethodStat, Locator: l}, providers.Body{})
	return a.Info, err
}

// List implements providers.Provider.
func (c *Client) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	a, err := c.ask(ctx, request{Method: providers.MethodList, Locator: l, List: opts}, providers.Body{})
	return a.Page, err
}

// Read implements providers.Provider.
func (c *Client) Read(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	a, body, err := c.open(ctx, request{Method: providers.MethodRead, Locator: l, Read: opts}, providers.Body{})
	if err != nil {
		return providers.Content{}, err
	}
	return providers.Content{Info: a.Info, Body: content{providers.WithContext(ctx, download{l, body}), body}}, nil
}

// download gives the errors of a broken connection their kind.
type download struct {
	l providers.Locator
	r io.Reader
}

func (d download) Read(b []byte) (int, error) {
	n, err := d.r.Read(b)
	if err == io.EOF {
		return n, io.EOF
	}
	return n, providers.Fail(name, providers.MethodRead, d.l, err, providers.ErrUnavailable)
}

// Write implements providers.Provider.
func (c *Client) Write(ctx context.Context, l providers.Locator, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	a, err := c.ask(ctx, request{Method: providers.MethodWrite, Locator: l, Write: opts}, body)
	return a.Info, err
}

// Delete implements providers.Provider.
func (c *Client) Delete(ctx context.Context, l providers.Locator, opts providers.DeleteOptions) error {
	_, err := c.ask(ctx, request{Method: providers.MethodDelete, Locator: l, Delete: opts}, providers.Body{})
	return err
}

// Mkdir implements providers.Provider.
func (c *Client) Mkdir(ctx context.Context, l providers.Locator, opts providers.MkdirOptions) (providers.Info, error) {
	a, err := c.ask(ctx, request{Method: providers.MethodMkdir, Locator: l, Mkdir: opts}, providers.Body{})
	return a.Info, err
}

// Copy implements providers.Copier.
func (c *Client) Copy(ctx context.Context, from, to providers.Locator, opts providers.CopyOptions) (providers.Info, error) {
	a, err := c.ask(ctx, request{Method: providers.MethodCopy, Locator: from, To: to, Copy: opts}, providers.Body{})
	return a.Info, err
}

// Move implements providers.Mover.
func (c *Client) Move(ctx context.Context, from, to providers.Locator, opts providers.MoveOptions) (providers.Info, error) {
	a, err := c.ask(ctx, request{Method: providers.MethodMove, Locator: from, To: to, Move: opts}, providers.Body{})
	return a.Info, err
}

// SetAttr implements providers.AttrSetter.
func (c *Client) SetAttr(ctx context.Context, l providers.Locator, opts providers.SetAttrOptions) (providers.Info, error) {
	a, err := c.ask(ctx, request{Method: providers.MethodSetAttr, Locator: l, SetAttr: opts}, providers.Body{})
	return a.Info, err
}

// Head implements providers.Committer.
func (c *Client) Head(ctx context.Context) (providers.Revision, error) {
	a, err := c.ask(ctx, request{Method: providers.MethodHead}, providers.Body{})
	return a.Revision, err
}

// Commit implements providers.Committer.
func (c *Client) Commit(ctx context.Context, set providers.ChangeSet) (providers.CommitResult, error) {
	bodies, err := readBodies(ctx, set.Changes)
	if err != nil {
		return providers.CommitResult{}, providers.Fail(name, providers.MethodCommit, providers.Locator{}, err, providers.ErrUnavailable)
	}
	set.Changes = slices.Clone(set.Changes)
	for i := range set.Changes {
		set.Changes[i].Body = providers.Body{}
	}
	a, err := c.ask(ctx, request{Method: providers.MethodCommit, Commit: set, Bodies: bodies}, providers.Body{})
	return a.Commit, err
}

// Close implements providers.Provider.
func (c *Client) Close() error {
	c.closed.Store(true)
	c.http.CloseIdleConnections()
	return nil
}
