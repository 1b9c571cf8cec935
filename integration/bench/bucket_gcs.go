package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"

	"github.com/wsmount/wsmount/integration/gcsserver"
)

// A gcsClient is Google's generated client.
type gcsClient struct {
	api       *storage.Service
	transport *http.Transport
}

func newGCSClient(ctx context.Context, endpoint string) (*gcsClient, error) {
	c := &gcsClient{transport: plainTransport()}
	var err error
	c.api, err = storage.NewService(ctx, option.WithHTTPClient(&http.Client{Transport: c.transport}), option.WithEndpoint(endpoint+"/storage/v1/"))
	return c, err
}

func (c *gcsClient) close() { c.transport.CloseIdleConnections() }

func (c *gcsClient) insert(ctx context.Context, key string, content io.Reader) error {
	_, err := c.api.Objects.Insert(gcsserver.Bucket, &storage.Object{Name: key}).Media(content, googleapi.ChunkSize(0)).Context(ctx).Do()
	return err
}

func (c *gcsClient) put(ctx context.Context, key string, data []byte) error {
	return c.insert(ctx, key, bytes.NewReader(data))
}

func (c *gcsClient) open(ctx context.Context, key string) (io.ReadCloser, error) {
	return c.download(ctx, key, "")
}

// download asks the XML API: the JSON API of the server in memory has no content.
func (c *gcsClient) download(ctx context.Context, key, span string) (io.ReadCloser, error) {
	base, err := url.Parse(c.api.BasePath)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base.Scheme+"://"+base.Host+"/"+gcsserver.Bucket+"/"+url.PathEscape(key), nil)
	if err != nil {
		return nil, err
	}
	if span != "" {
		r.Header.Set("Range", span)
	}
	answer, err := c.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := googleapi.CheckMediaResponse(answer); err != nil {
		answer.Body.Close()
		return nil, err
	}
	return answer.Body, nil
}

func (c *gcsClient) isMissing(err error) bool {
	var answer *googleapi.Error
	return errors.As(err, &answer) && answer.Code == http.StatusNotFound
}

func (c *gcsClient) getRange(ctx context.Context, key string, off int64, buf []byte) error {
	body, err := c.download(ctx, key, fmt.Sprintf("bytes=%d-%d", off, off+int64(len(buf))-1))
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.ReadFull(body, buf)
	return err
}

func (c *gcsClient) list(ctx context.Context, prefix string) (keys int, err error) {
	err = c.api.Objects.List(gcsserver.Bucket).Prefix(prefix).Pages(ctx, func(page *storage.Objects) error {
		keys += len(page.Items)
		return nil
	})
	return keys, err
}

// putLarge is one request: the service has no parts.
func (c *gcsClient) putLarge(ctx context.Context, key string, blocks int) error {
	return c.insert(ctx, key, io.LimitReader(&largeReader{}, int64(blocks)*block))
}

// largeReader has the blocks of the large object, one after the other.
type largeReader struct {
	next int
	left []byte
}

func (r *largeReader) Read(b []byte) (int, error) {
	if len(r.left) == 0 {
		r.left = make([]byte, block)
		largeBlock(r.left, r.next)
		r.next++
	}
	n := copy(b, r.left)
	r.left = r.left[n:]
	return n, nil
}
