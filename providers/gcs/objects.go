package gcs

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Head implements bucket.Store.
func (s *store) Head(ctx context.Context, key string) (bucket.Object, error) {
	return describe(ctx, s, "objects.get", s.api.Objects.Get(s.config.Bucket, key))
}

// Past implements bucket.Store. A generation has one content forever, so no search is needed.
func (s *store) Past(ctx context.Context, key string, v providers.Version) (id string, err error) {
	generation, _, err := cutETag(v.ETag)
	if err != nil {
		return "", &bucket.Fault{Kind: providers.ErrNotExist, Err: err}
	}
	o, err := describe(ctx, s, "objects.get", s.api.Objects.Get(s.config.Bucket, key).Generation(generation))
	if err != nil {
		return "", err
	}
	if !v.Matches(o.Version()) {
		return "", &bucket.Fault{Kind: providers.ErrNotExist, Err: fmt.Errorf("the metadata of generation %d have changed", generation)}
	}
	return text(generation), nil
}

// Get implements bucket.Store.
func (s *store) Get(ctx context.Context, key string, want bucket.Range) (bucket.Object, io.ReadCloser, error) {
	// A key is one segment, which no proxy on the way resolves as a path.
	target := s.config.Endpoint + "/" + url.PathEscape(s.config.Bucket) + "/" + url.PathEscape(key)
	if want.ID != "" {
		target += "?" + url.Values{"generation": {want.ID}}.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return bucket.Object{}, nil, bucket.Invalid(download) // the error would show the whole URL
	}
	r.Header.Set("Accept-Encoding", "gzip") // else the service unpacks content that was stored packed
	if want.ETag != "" {
		generation, metageneration, err := cutETag(want.ETag)
		if err != nil {
			return bucket.Object{}, nil, err
		}
		r.Header.Set("X-Goog-If-Generation-Match", text(generation))
		r.Header.Set("X-Goog-If-Metageneration-Match", text(metageneration))
	}
	part := want.Header()
	if part != "" {
		r.Header.Set("Range", part)
	}
	answer, err := call(ctx, s, download, nil, func(ctx context.Context) (*http.Response, error) {
		answer, err := s.way.Client.Do(r.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		if err = googleapi.CheckMediaResponse(answer); err != nil {
			answer.Body.Close()
		}
		return answer, err
	})
	if err != nil {
		return bucket.Object{}, nil, err
	}
	o, err := ofDownload(key, answer.Header)
	if err == nil {
		err = checkContent(o, answer, part)
	}
	if err != nil {
		answer.Body.Close()
		return bucket.Object{}, nil, err
	}
	return o, answer.Body, nil
}

// checkContent refuses content that was packed or unpacked on the way, and the whole in
// place of a part.
func checkContent(o bucket.Object, answer *http.Response, part string) error {
	sent := answer.Header.Get("Content-Encoding")
	if sent == "identity" {
		sent = ""
	}
	switch {
	case sent != o.Headers.ContentEncoding:
		return fmt.Errorf("%w: stored with Content-Encoding %q, and sent with %q", providers.ErrCorrupt, o.Headers.ContentEncoding, sent)
	case part != "" && answer.StatusCode != http.StatusPartialContent:
		return fmt.Errorf("%w: asked for %s, got all", providers.ErrCorrupt, part)
	case part == "" && answer.StatusCode != http.StatusOK:
		return fmt.Errorf("%w: asked for all, got status %d", providers.ErrCorrupt, answer.StatusCode)
	}
	return nil
}

const (
	// chunkSize is the bytes that a resumable upload sends at a time, and keeps in memory. A
	// smaller upload is one request.
	chunkSize = 8 << 20
	// chunkTime is how long the client repeats a chunk that does not arrive. After that it is
	// up to the caller of the upload.
	chunkTime = 5 * time.Second
)

// Put implements bucket.Store.
func (s *store) Put(ctx context.Context, key string, body *bucket.Outgoing, m bucket.Making) (bucket.Object, error) {
	options, err := preconditions(m.If)
	if err != nil {
		return bucket.Object{}, err
	}
	r := described(m)
	r.Name = key
	if body.MD5 != nil {
		r.Md5Hash = base64.StdEncoding.EncodeToString(body.MD5[:])
	}
	media := []googleapi.MediaOption{googleapi.ContentType(r.ContentType), googleapi.ChunkSize(0)} // streamed, in one request
	if body.Size > int64(s.chunk) {
		media = []googleapi.MediaOption{googleapi.ContentType(r.ContentType), googleapi.ChunkSize(s.chunk), googleapi.ChunkRetryDeadline(chunkTime)}
	}
	got, err := call(ctx, s, "objects.insert", body.Again, func(ctx context.Context) (*storage.Object, error) {
		return s.api.Objects.Insert(s.config.Bucket, r).Media(body.Reader(), media...).Context(ctx).Do(append(options, fields(resourceFields))...)
	})
	if err != nil {
		return bucket.Object{}, err
	}
	return objectOf(got)
}

// Copy implements bucket.Store. A copy to another storage class takes several requests, of
// which the last makes the object.
func (s *store) Copy(ctx context.Context, from bucket.Object, key string, m bucket.Making) (bucket.Object, error) {
	options, err := preconditions(m.If)
	if err != nil {
		return bucket.Object{}, err
	}
	source, err := pinned("ifSource", from.ETag)
	if err != nil {
		return bucket.Object{}, err
	}
	options = slices.Concat(options, source, []googleapi.CallOption{fields("kind,done,rewriteToken,resource(" + resourceFields + ")")})
	for r := s.api.Objects.Rewrite(s.config.Bucket, from.Key, s.config.Bucket, key, described(m)); ; {
		got, err := ask(ctx, s, "objects.rewrite", r, options...)
		if err == nil {
			err = isKind(got.Kind, "storage#rewriteResponse")
		}
		switch {
		case err != nil:
			return bucket.Object{}, err
		case got.Done && got.Resource != nil:
			got.Resource.ServerResponse = got.ServerResponse
			return objectOf(got.Resource)
		case got.Done, got.RewriteToken == "":
			return bucket.Object{}, fmt.Errorf("%w: a copy that is neither done nor goes on", providers.ErrCorrupt)
		}
		r.RewriteToken(got.RewriteToken)
	}
}

// Delete implements bucket.Store.
func (s *store) Delete(ctx context.Context, key string, c providers.Condition) error {
	options, err := preconditions(c)
	if err != nil {
		return err
	}
	_, err = call(ctx, s, "objects.delete", nil, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.api.Objects.Delete(s.config.Bucket, key).Context(ctx).Do(options...)
	})
	return err
}

// Patch implements bucket.Patcher.
func (s *store) Patch(ctx context.Context, was bucket.Object, m bucket.Making) (bucket.Object, error) {
	options, err := preconditions(m.If)
	if err != nil {
		return bucket.Object{}, err
	}
	return describe(ctx, s, "objects.patch", s.api.Objects.Patch(s.config.Bucket, was.Key, changed(was, m)), options...)
}

// List implements bucket.Store. A page may be empty and not the last.
func (s *store) List(ctx context.Context, q bucket.Query) (bucket.Listing, error) {
	// startOffset includes that key itself.
	r := s.api.Objects.List(s.config.Bucket).Prefix(q.Prefix).StartOffset(q.After).PageToken(q.Token)
	if q.Grouped {
		r.Delimiter("/").IncludeTrailingDelimiter(true)
	}
	if limit := int64(q.Limit); limit > 0 {
		if q.After != "" {
			limit++
		}
		r.MaxResults(limit)
	}
	for {
		page, err := ask(ctx, s, "objects.list", r, fields("kind,nextPageToken,prefixes,items("+resourceFields+")"))
		if err == nil {
			err = isKind(page.Kind, "storage#objects")
		}
		if err != nil {
			return bucket.Listing{}, err
		}
		out := bucket.Listing{Next: page.NextPageToken, More: page.NextPageToken != "", Answered: answered(page.ServerResponse.Header)}
		if out.Items, err = after(page, q); err != nil {
			return bucket.Listing{}, err
		}
		if len(out.Items) > 0 || !out.More {
			return out, s.endMarker(ctx, q, out)
		}
		r.PageToken(page.NextPageToken)
	}
}

// after are the items of a page after a key. The marker of a group is listed as an object
// beside the group.
func after(page *storage.Objects, q bucket.Query) ([]bucket.Item, error) {
	items := make([]bucket.Item, 0, len(page.Items)+len(page.Prefixes))
	groups := map[string]bool{}
	for _, one := range page.Items {
		o, err := objectOf(one)
		if err != nil {
			return nil, err
		}
		if q.After != "" && o.Key <= q.After {
			continue
		}
		it := bucket.Item{Object: o}
		if q.Grouped && o.Key != q.Prefix && strings.HasSuffix(o.Key, "/") {
			it = bucket.Item{Object: bucket.Object{Key: o.Key}, IsDir: true}
			if o.Size == 0 {
				it.Metadata, it.Headers = o.Metadata, o.Headers
			}
			groups[o.Key] = true
		}
		items = append(items, it)
	}
	for _, group := range page.Prefixes {
		if !groups[group] {
			items = append(items, bucket.Item{Object: bucket.Object{Key: group}, IsDir: true})
		}
	}
	return items, nil
}

// endMarker asks for the marker of the group that a page ends with, which may be on the
// next one.
func (s *store) endMarker(ctx context.Context, q bucket.Query, page bucket.Listing) error {
	if !q.Grouped || !page.More {
		return nil
	}
	last := &page.Items[0]
	for i := range page.Items {
		if page.Items[i].Key > last.Key {
			last = &page.Items[i]
		}
	}
	if !last.IsDir || last.Metadata != nil {
		return nil
	}
	o, err := s.Head(ctx, last.Key)
	if err == nil && o.Size == 0 {
		last.Metadata, last.Headers = o.Metadata, o.Headers
	}
	if bucket.IsCode(err, noObject) {
		return nil
	}
	return err
}
