package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/providers"
)

// Sync pulls, commits or pushes.
func (c *Client) Sync(ctx context.Context, r SyncRequest) (out EventResult, err error) {
	return out, c.call(ctx, http.MethodPost, "/v1/sync", r, &out)
}

// Log lists versions of the history.
func (c *Client) Log(ctx context.Context, r LogRequest) (out LogResult, err error) {
	return out, c.call(ctx, http.MethodPost, "/v1/log", r, &out)
}

// Diff compares two states.
func (c *Client) Diff(ctx context.Context, r DiffRequest) (out DiffResult, err error) {
	return out, c.call(ctx, http.MethodPost, "/v1/diff", r, &out)
}

// Restore restores files to a state.
func (c *Client) Restore(ctx context.Context, r RestoreRequest) (out RestoreResult, err error) {
	return out, c.call(ctx, http.MethodPost, "/v1/restore", r, &out)
}

// Cache returns the disk usage of content, and evicts content that the stores have if asked.
func (c *Client) Cache(ctx context.Context, r CacheRequest) (out CacheResult, err error) {
	return out, c.call(ctx, http.MethodPost, "/v1/cache", r, &out)
}

// Conflicts lists conflicts.
func (c *Client) Conflicts(ctx context.Context) (out ConflictsResult, err error) {
	return out, c.call(ctx, http.MethodGet, "/v1/conflicts", nil, &out)
}

// ConflictContent reads one side of a conflict. The caller closes it.
func (c *Client) ConflictContent(ctx context.Context, path, side string) (io.ReadCloser, error) {
	q := url.Values{"path": {path}, "side": {side}}
	resp, err := c.do(ctx, http.MethodGet, "/v1/conflict?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Resolve ends a conflict; content is for KeepContent.
func (c *Client) Resolve(ctx context.Context, r ResolveRequest, content io.Reader) (out ResolveResult, err error) {
	q := url.Values{"path": {r.Path}, "keep": {r.Keep}}
	resp, err := c.do(ctx, http.MethodPost, "/v1/resolve?"+q.Encode(), content)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	return out, understood(resp.Body, &out)
}

// Replace puts content at a path of a working copy's store. The error has the
// kind of the daemon's error.
func (c *Client) Replace(ctx context.Context, r ReplaceRequest, content io.Reader) error {
	resp, err := c.ask(ctx, "/v1/replace", r, content)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Lock keeps other writers of a path in a local directory out, until unlock or the end of this
// process. The error has the kind of the daemon's error.
func (c *Client) Lock(ctx context.Context, r ReplaceRequest) (unlock func(), err error) {
	// Once it is held, the end of ctx neither releases it nor cuts a write short.
	held, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	resp, err := c.ask(held, "/v1/lock", r, nil)
	if err != nil {
		cancel()
		return nil, cmp.Or(ctx.Err(), err)
	}
	stop()
	return func() { cancel(); resp.Body.Close() }, nil
}

// ask returns once the answer begins and does not refuse r; the caller closes it.
func (c *Client) ask(ctx context.Context, call string, r ReplaceRequest, content io.Reader) (*http.Response, error) {
	q := url.Values{"path": {r.Path}, "old": {r.Old}}
	resp, err := c.do(ctx, http.MethodPost, call+"?"+q.Encode(), content)
	if err != nil {
		return nil, err
	}
	var out replaced
	if err := exactjson.Read(json.NewDecoder(resp.Body), &out); err != nil {
		resp.Body.Close()
		return nil, fmt.Errorf("control: %s: %w: %w", call, providers.ErrUnavailable, err)
	}
	if kind, known := providers.KindNamed(out.Kind); known {
		resp.Body.Close()
		return nil, &refused{out.What, kind.Err}
	}
	return resp, nil
}

// refused is an error of the daemon with its kind.
type refused struct {
	what string
	kind error
}

func (r *refused) Error() string { return r.what }

func (r *refused) Unwrap() error { return r.kind }
