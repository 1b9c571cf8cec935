package gcs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Head implements bucket.Store.
func (s *store) Head(ctx context.Context, key string) (bucket.Object, error) {
	return s.describe(ctx, request{name: "objects.get", method: http.MethodGet, path: s.objectPath(key)})
}

// describe sends a request that is answered with an object's resource.
func (s *store) describe(ctx context.Context, r request) (bucket.Object, error) {
	if r.query == nil {
		r.query = url.Values{}
	}
	r.query.Set("fields", resourceFields)
	got, answer, err := ask[resource](ctx, s, r)
	if err != nil {
		return bucket.Object{}, err
	}
	o, err := got.object()
	o.Answered = answered(answer)
	return o, err
}

// Past implements bucket.Store. A generation is one content forever, so there is nothing
// to search for.
func (s *store) Past(ctx context.Context, key string, v providers.Version) (id string, err error) {
	generation, _, err := cutETag(v.ETag)
	if err != nil {
		return "", &bucket.Fault{Kind: providers.ErrNotExist, Err: err}
	}
	o, err := s.describe(ctx, request{name: "objects.get", method: http.MethodGet, path: s.objectPath(key), query: url.Values{"generation": {generation}}})
	if err != nil {
		return "", err
	}
	if !v.Matches(o.Version()) {
		return "", &bucket.Fault{Kind: providers.ErrNotExist, Err: fmt.Errorf("the metadata of generation %s have changed", generation)}
	}
	return generation, nil
}

// download is the name of a request of the XML API.
const download = "GET Object"

// Get implements bucket.Store.
func (s *store) Get(ctx context.Context, key string, want bucket.Range) (bucket.Object, io.ReadCloser, error) {
	// Without this, the service unpacks what was stored packed.
	r := request{name: download, method: http.MethodGet, path: s.contentPath(key), query: url.Values{}, header: http.Header{"Accept-Encoding": {"gzip"}}}
	if want.ETag != "" {
		generation, metageneration, err := cutETag(want.ETag)
		if err != nil {
			return bucket.Object{}, nil, err
		}
		r.header.Set("X-Goog-If-Generation-Match", generation)
		r.header.Set("X-Goog-If-Metageneration-Match", metageneration)
	}
	if want.ID != "" {
		r.query.Set("generation", want.ID)
	}
	part := want.Header()
	if part != "" {
		r.header.Set("Range", part)
	}
	answer, err := s.do(ctx, r)
	if err != nil {
		return bucket.Object{}, nil, err
	}
	o, err := fromHeaders(key, answer)
	if err == nil {
		err = checkContent(o, answer, part)
	}
	if err != nil {
		answer.Body.Close()
		return bucket.Object{}, nil, err
	}
	return o, answer.Body, nil
}

// contentPath is where the XML API has an object. A key is one segment, in which nobody
// on the way looks for directions.
func (s *store) contentPath(key string) string {
	return "/" + url.PathEscape(s.config.bucket) + "/" + url.PathEscape(key)
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

// Put implements bucket.Store.
func (s *store) Put(ctx context.Context, key string, body *bucket.Outgoing, m bucket.Making) (bucket.Object, error) {
	d := described(m)
	d["name"] = key
	if body.MD5 != nil {
		d["md5Hash"] = base64.StdEncoding.EncodeToString(body.MD5[:])
	}
	text, err := json.Marshal(d)
	if err != nil {
		return bucket.Object{}, err
	}
	const boundary = "wsmount-boundary"
	var head bytes.Buffer
	fmt.Fprintf(&head, "--%s\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n%s\r\n--%s\r\nContent-Type: %s\r\n\r\n", boundary, text, boundary, d["contentType"])
	const tail = "\r\n--" + boundary + "--\r\n"
	r := request{
		name: "objects.insert", method: http.MethodPost, path: "/upload" + s.objectsPath(), query: url.Values{"uploadType": {"multipart"}},
		header: http.Header{"Content-Type": {"multipart/related; boundary=" + boundary}},
		body: func() io.Reader {
			return io.MultiReader(bytes.NewReader(head.Bytes()), body.Reader(), strings.NewReader(tail))
		},
		size: int64(head.Len()) + body.Size + int64(len(tail)), again: body.Again,
	}
	if err := preconditions(r.query, m.If); err != nil {
		return bucket.Object{}, err
	}
	return s.describe(ctx, r)
}

// Copy implements bucket.Store. A copy to another class of storage takes several requests,
// of which the last makes the object.
func (s *store) Copy(ctx context.Context, from bucket.Object, key string, m bucket.Making) (bucket.Object, error) {
	q := url.Values{"fields": {"kind,done,rewriteToken,resource(" + resourceFields + ")"}}
	if err := preconditions(q, m.If); err != nil {
		return bucket.Object{}, err
	}
	if err := pinned(q, "ifSource", from.ETag); err != nil {
		return bucket.Object{}, err
	}
	r, err := withDocument(request{
		name: "objects.rewrite", method: http.MethodPost, query: q,
		path: s.objectPath(from.Key) + "/rewriteTo/b/" + url.PathEscape(s.config.bucket) + "/o/" + url.PathEscape(key),
	}, described(m))
	if err != nil {
		return bucket.Object{}, err
	}
	for {
		got, answer, err := ask[rewritten](ctx, s, r)
		if err != nil {
			return bucket.Object{}, err
		}
		if got.Done {
			o, err := got.Resource.object()
			o.Answered = answered(answer)
			return o, err
		}
		if got.RewriteToken == "" {
			return bucket.Object{}, fmt.Errorf("%w: a copy that is neither done nor goes on", providers.ErrCorrupt)
		}
		q.Set("rewriteToken", got.RewriteToken)
	}
}

// rewritten is how far a copy got.
type rewritten struct {
	Done         bool
	RewriteToken string
	Resource     resource
}

func (rewritten) kind() string { return "storage#rewriteResponse" }

// Delete implements bucket.Store.
func (s *store) Delete(ctx context.Context, key string, c providers.Condition) error {
	r := request{name: "objects.delete", method: http.MethodDelete, path: s.objectPath(key), query: url.Values{}}
	if err := preconditions(r.query, c); err != nil {
		return err
	}
	answer, err := s.do(ctx, r)
	if err != nil {
		return err
	}
	answer.Body.Close()
	return nil
}

// Patch implements bucket.Patcher.
func (s *store) Patch(ctx context.Context, was bucket.Object, m bucket.Making) (bucket.Object, error) {
	q := url.Values{}
	if err := preconditions(q, m.If); err != nil {
		return bucket.Object{}, err
	}
	r, err := withDocument(request{name: "objects.patch", method: http.MethodPatch, path: s.objectPath(was.Key), query: q}, changed(was, m))
	if err != nil {
		return bucket.Object{}, err
	}
	return s.describe(ctx, r)
}

// List implements bucket.Store. A page may be empty and not the last.
func (s *store) List(ctx context.Context, q bucket.Query) (bucket.Listing, error) {
	r := request{name: "objects.list", method: http.MethodGet, path: s.objectsPath(), query: url.Values{
		"prefix": {q.Prefix}, "fields": {"kind,nextPageToken,prefixes,items(" + resourceFields + ")"},
	}}
	set := func(name, value string) {
		if value != "" {
			r.query.Set(name, value)
		}
	}
	set("startOffset", q.After) // which begins with that key itself
	set("pageToken", q.Token)
	if q.Grouped {
		set("delimiter", "/")
		set("includeTrailingDelimiter", "true")
	}
	if limit := q.Limit; limit > 0 {
		if q.After != "" {
			limit++
		}
		set("maxResults", strconv.Itoa(limit))
	}
	for {
		page, answer, err := ask[listed](ctx, s, r)
		if err != nil {
			return bucket.Listing{}, err
		}
		out := bucket.Listing{Next: page.NextPageToken, More: page.NextPageToken != "", Answered: answered(answer)}
		if out.Items, err = page.after(q); err != nil {
			return bucket.Listing{}, err
		}
		if len(out.Items) > 0 || !out.More {
			return out, s.endMarker(ctx, q, out)
		}
		r.query.Set("pageToken", page.NextPageToken)
	}
}

// listed is a page of a listing.
type listed struct {
	NextPageToken string
	Prefixes      []string
	Items         []resource
}

func (listed) kind() string { return "storage#objects" }

// after is what a page has behind a key. The marker of a group is an item of its own
// beside it.
func (l *listed) after(q bucket.Query) ([]bucket.Item, error) {
	items := make([]bucket.Item, 0, len(l.Items)+len(l.Prefixes))
	groups := map[string]bool{}
	for i := range l.Items {
		o, err := l.Items[i].object()
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
	for _, group := range l.Prefixes {
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
	if isCode(err, noObject) {
		return nil
	}
	return err
}
