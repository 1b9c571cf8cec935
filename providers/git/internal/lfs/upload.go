package lfs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/wsmount/wsmount/providers"
)

// Upload sends the objects of pointers that a branch is about to name, as far as the server lacks
// them: there is called with each that it has. open gives the content of each from its beginning.
// Where an answer cannot be told from that of a page which answers everything, the API is asked
// whether the object has arrived.
func (c *Client) Upload(ctx context.Context, branch string, all []Pointer, open func(Pointer) (io.ReadCloser, error), there func(Pointer)) error {
	for len(all) > 0 {
		n := min(len(all), batchMax)
		answers, err := c.batch(ctx, Upload, branch, all[:n])
		if err != nil {
			return err
		}
		var doubtful []Pointer
		for i, o := range answers {
			if o.Error == nil && o.Actions[Upload] == nil {
				there(all[i])
				continue
			}
			sure, err := c.upload(ctx, all[i], o, open)
			if err != nil {
				return err
			}
			if !sure {
				doubtful = append(doubtful, all[i])
			}
		}
		if err := c.arrived(ctx, branch, doubtful); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// arrived asks for objects that were sent. One that the server has needs no upload.
func (c *Client) arrived(ctx context.Context, branch string, sent []Pointer) error {
	if len(sent) == 0 {
		return nil
	}
	answers, err := c.batch(ctx, Upload, branch, sent)
	if err != nil {
		return err
	}
	for i, o := range answers {
		switch {
		case o.Error != nil:
			return answered("the object "+sent[i].OID, o.Error.Code, o.Error.Message)
		case o.Actions[Upload] != nil:
			return foreign("the object %s was sent, and the API of LFS says that it is not there: a login page, a proxy or the like may have answered", sent[i].OID)
		}
	}
	return nil
}

// upload sends an object; sure reports that the answers can only be the server's.
func (c *Client) upload(ctx context.Context, p Pointer, o object, open func(Pointer) (io.ReadCloser, error)) (sure bool, err error) {
	if o.Error != nil {
		return false, answered("the object "+p.OID, o.Error.Code, o.Error.Message)
	}
	put := o.Actions[Upload]
	if !c.lasts(*put) { // uploads before it took long
		answers, err := c.batch(ctx, Upload, "", []Pointer{p})
		if err != nil {
			return false, err
		}
		if o = answers[0]; o.Actions[Upload] == nil || !c.lasts(*o.Actions[Upload]) {
			return false, damaged("the API of LFS has links for %s that have expired", p.OID)
		}
		put = o.Actions[Upload]
	}
	content, err := open(p)
	if err != nil {
		return false, err
	}
	defer content.Close()
	resp, err := c.send(ctx, http.MethodPut, *put, "application/octet-stream", p, content, p.Size)
	if err != nil {
		return false, err
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/html" {
		return false, foreign("the object %s at %s: the answer to its upload is a page, and not the storage's", p.OID, origin(put.url))
	}
	sure = resp.Header.Get("ETag") != ""
	verify := o.Actions["verify"]
	if verify == nil {
		return sure, nil
	}
	said, err := json.Marshal(object{OID: p.OID, Size: p.Size})
	if err != nil {
		return false, err
	}
	resp, err = c.send(ctx, http.MethodPost, *verify, mediaType, p, bytes.NewReader(said), int64(len(said)))
	var refused *Error
	if errors.As(err, &refused) && refused.Code == strconv.Itoa(http.StatusNotFound) && !sure {
		return false, foreign("the object %s was sent to %s, and is not there: something else may have answered", p.OID, origin(put.url))
	}
	return err == nil && sure && hasJSON(resp), err
}

// send sends a body to a link, and gives the answer to a success, whose body was read.
func (c *Client) send(ctx context.Context, method string, a action, kind string, p Pointer, content io.Reader, size int64) (*http.Response, error) {
	what := "the object " + p.OID
	req, err := http.NewRequestWithContext(ctx, method, a.url.String(), io.NopCloser(content))
	if err != nil {
		return nil, damaged("the API of LFS has a link that is no URL")
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
		return nil, failed(ctx, what, req.URL, err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, answerMax) // so that the connection can be used again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		e := answered(what+" at "+origin(req.URL), resp.StatusCode, "")
		if e.Kind == nil {
			e.Kind = providers.ErrUnavailable
		}
		return nil, e
	}
	return resp, nil
}
