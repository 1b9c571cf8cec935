package lfs

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/wsmount/wsmount/providers"
)

// Upload sends objects that a branch is about to name, as far as the server does
// not have them: there is told of those that it has. open gives the content of each
// from its beginning.
func (c *Client) Upload(ctx context.Context, branch string, all []Pointer, open func(Pointer) (io.ReadCloser, error), there func(Pointer)) error {
	for len(all) > 0 {
		n := min(len(all), batchMax)
		answers, err := c.batch(ctx, Upload, branch, all[:n])
		if err != nil {
			return err
		}
		for i, o := range answers {
			if o.Error == nil && o.Actions[Upload] == nil {
				there(all[i])
				continue
			}
			if err := c.upload(ctx, all[i], o, open); err != nil {
				return err
			}
		}
		all = all[n:]
	}
	return nil
}

func (c *Client) upload(ctx context.Context, p Pointer, o object, open func(Pointer) (io.ReadCloser, error)) error {
	if o.Error != nil {
		return answered("the object "+p.OID, o.Error.Code, o.Error.Message)
	}
	put := o.Actions[Upload]
	if !c.lasts(*put) { // those before it took long
		answers, err := c.batch(ctx, Upload, "", []Pointer{p})
		if err != nil {
			return err
		}
		if o = answers[0]; o.Actions[Upload] == nil || !c.lasts(*o.Actions[Upload]) {
			return damaged("the API of LFS has links for %s that have expired", p.OID)
		}
		put = o.Actions[Upload]
	}
	content, err := open(p)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := c.send(ctx, http.MethodPut, *put, "application/octet-stream", p, content, p.Size); err != nil {
		return err
	}
	verify := o.Actions["verify"]
	if verify == nil {
		return nil
	}
	said, err := json.Marshal(object{OID: p.OID, Size: p.Size})
	if err != nil {
		return err
	}
	return c.send(ctx, http.MethodPost, *verify, mediaType, p, bytes.NewReader(said), int64(len(said)))
}

// send sends a body to a link.
func (c *Client) send(ctx context.Context, method string, a action, kind string, p Pointer, content io.Reader, size int64) error {
	what := "the object " + p.OID
	req, err := http.NewRequestWithContext(ctx, method, a.url.String(), io.NopCloser(content))
	if err != nil {
		return damaged("the API of LFS has a link that is no URL")
	}
	if req.ContentLength = size; size == 0 {
		req.Body = http.NoBody
	}
	req.Header.Set("Content-Type", kind)
	if kind == mediaType {
		req.Header.Set("Accept", mediaType)
	}
	set(req, a.Header)
	resp, err := c.puts.Do(req)
	if err != nil {
		return failed(ctx, what, req.URL, err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, answerMax) // so that the connection serves again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		e := answered(what+" at "+origin(req.URL), resp.StatusCode, "")
		if e.Kind == nil {
			e.Kind = providers.ErrUnavailable
		}
		return e
	}
	return nil
}
