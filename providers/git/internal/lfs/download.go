package lfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"

	"github.com/wsmount/wsmount/providers"
)

// Open opens length bytes of an object from an offset on, which lie within it. The
// body ends with ctx.
func (c *Client) Open(ctx context.Context, p Pointer, offset, length int64) (io.ReadCloser, error) {
	if length == 0 && p.Size > 0 { // HTTP has no range of length 0
		return http.NoBody, nil
	}
	a, before, err := c.link(ctx, p)
	if err != nil {
		return nil, err
	}
	body, err := c.get(ctx, a, p, offset, length)
	var e *Error
	if before && errors.As(err, &e) && e.Code != "" { // it may have ended before its time
		c.forget(p)
		if a, _, err = c.link(ctx, p); err == nil {
			body, err = c.get(ctx, a, p, offset, length)
		}
	}
	return body, err
}

// linksMax is how many links are remembered.
const linksMax = 4096

// link is the link to an object; before reports that it was known.
func (c *Client) link(ctx context.Context, p Pointer) (a action, before bool, err error) {
	c.mu.Lock()
	a, before = c.known[p.OID]
	c.mu.Unlock()
	if before && c.lasts(a) {
		return a, true, nil
	}
	answers, err := c.batch(ctx, Download, "", []Pointer{p})
	if err != nil {
		return a, false, err
	}
	o := answers[0]
	switch {
	case o.Error != nil:
		return a, false, answered("the object "+p.OID, o.Error.Code, o.Error.Message)
	case o.Actions[Download] == nil:
		return a, false, damaged("the API of LFS does not say where %s is", p.OID)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= linksMax {
		clear(c.known)
	}
	c.known[p.OID] = *o.Actions[Download]
	return c.known[p.OID], false, nil
}

func (c *Client) forget(p Pointer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, p.OID)
}

func (c *Client) get(ctx context.Context, a action, p Pointer, offset, length int64) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url.String(), nil)
	if err != nil {
		return nil, damaged("the API of LFS has a link that is no URL")
	}
	set(req, a.Header)
	req.Header.Set("Accept-Encoding", "identity")
	whole := offset == 0 && length == p.Size
	if !whole {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	}
	resp, err := c.asks.Do(req)
	if err != nil {
		return nil, failed(ctx, "the object "+p.OID, req.URL, err)
	}
	if err := seek(ctx, resp, p, offset); err != nil {
		resp.Body.Close()
		return nil, err
	}
	b := &body{ctx: ctx, resp: resp, p: p, left: length}
	if whole {
		b.sum = sha256.New()
	}
	return b, nil
}

// seek brings an answer to its reader's offset. A server may send all although it was asked for a
// part.
func seek(ctx context.Context, resp *http.Response, p Pointer, offset int64) error {
	what, size := "the object "+p.OID, int64(-1)
	var first, last int64
	switch resp.StatusCode {
	case http.StatusOK:
		size = resp.ContentLength
	case http.StatusPartialContent:
		if _, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &size); err != nil || first != offset {
			return damaged("%s: the range %q came instead of one from %d on", what, line(resp.Header.Get("Content-Range")), offset)
		}
	default:
		return answered(what+" at "+origin(resp.Request.URL), resp.StatusCode, "")
	}
	if size >= 0 && size != p.Size {
		return damaged("%s has %d bytes and not %d", what, size, p.Size)
	}
	if _, err := io.CopyN(io.Discard, resp.Body, offset-first); err != nil {
		return failed(ctx, what, resp.Request.URL, err)
	}
	return nil
}

// body is a part of an object, or all of it.
type body struct {
	ctx  context.Context
	resp *http.Response
	p    Pointer
	left int64
	sum  hash.Hash // nil: it is a part
}

// Read ends without an error only if all bytes came and match the pointer.
func (b *body) Read(buf []byte) (int, error) {
	if b.left == 0 {
		return 0, b.end()
	}
	n, err := b.resp.Body.Read(buf[:min(int64(len(buf)), b.left)])
	b.left -= int64(n)
	if b.sum != nil {
		b.sum.Write(buf[:n])
	}
	switch {
	case err == nil:
	case b.left == 0 && errors.Is(err, io.EOF):
		err = nil // the next Read reports it
	case errors.Is(err, io.EOF):
		err = &Error{Kind: providers.ErrUnavailable, Says: fmt.Sprintf("the object %s broke off, %d bytes too early", b.p.OID, b.left), Err: io.ErrUnexpectedEOF}
	default:
		err = failed(b.ctx, "the object "+b.p.OID, b.resp.Request.URL, err)
	}
	return n, err
}

// end is the result of a body of which all bytes came.
func (b *body) end() error {
	if b.sum == nil {
		return io.EOF
	}
	var more [1]byte
	if n, _ := b.resp.Body.Read(more[:]); n > 0 {
		return damaged("the object %s has more than %d bytes", b.p.OID, b.p.Size)
	}
	if got := hex.EncodeToString(b.sum.Sum(nil)); got != b.p.OID {
		return damaged("the object %s came with other content, %s", b.p.OID, got)
	}
	return io.EOF
}

func (b *body) Close() error { return b.resp.Body.Close() }
