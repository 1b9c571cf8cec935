package azure

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// page is the answer of both kinds of listing.
type page struct {
	blobs    []*container.BlobItem
	groups   []*container.BlobPrefix
	next     *string
	answered *time.Time
}

// List implements bucket.Store.
func (s *store) List(ctx context.Context, q bucket.Query) (bucket.Listing, error) {
	got, err := s.page(ctx, q)
	if q.After != "" && errors.Is(err, providers.ErrInvalid) { // this service always begins at the first key
		q.After = ""
		got, err = s.page(ctx, q)
	}
	if err != nil {
		return bucket.Listing{}, err
	}
	items := make([]bucket.Item, 0, len(got.blobs)+len(got.groups)+1)
	for _, b := range got.blobs {
		items = append(items, s.item(b))
	}
	for _, g := range got.groups {
		if p := g.Properties; p != nil && plain(p.ResourceType) == "directory" {
			s.hierarchical.Store(true)
		}
		items = append(items, bucket.Item{Object: bucket.Object{Key: plain(g.Name)}, IsDir: true})
	}
	own, found, err := s.itself(ctx, q)
	if err != nil {
		return bucket.Listing{}, err
	}
	if found {
		items = append([]bucket.Item{own}, items...)
	}
	next := plain(got.next)
	return bucket.Listing{Items: items, Next: next, More: next != "", Answered: plain(got.answered)}, nil
}

// page sends one request, and another where the service refuses tags or modes in a listing.
func (s *store) page(ctx context.Context, q bucket.Query) (page, error) {
	ask := func(with container.ListBlobsInclude) (page, error) {
		return call(ctx, s, nil, func(who *session) (page, error) { return who.list(ctx, q, with) })
	}
	plain := container.ListBlobsInclude{Metadata: true}
	all, less, what := plain, &s.tagless, "tags"
	if s.hierarchical.Load() {
		less, what = &s.modeless, "modes"
		all.Permissions = !less.Load()
	} else {
		all.Tags = !less.Load()
	}
	got, err := ask(all)
	if all == plain || !bucket.Denied(err) && !errors.Is(err, providers.ErrInvalid) {
		return got, err
	}
	got, without := ask(plain)
	if without != nil {
		return got, err
	}
	less.Store(true)
	level := slog.LevelDebug // an account of the other kind has none
	if errors.Is(err, providers.ErrPermission) {
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, "a listing may not tell "+what+", so what is written anew loses them", "err", err)
	return got, nil
}

// list sends one request. The last page has no marker.
func (who *session) list(ctx context.Context, q bucket.Query, with container.ListBlobsInclude) (page, error) {
	var most *int32
	if q.Limit > 0 {
		most = to.Ptr(int32(q.Limit))
	}
	if !q.Grouped {
		out, err := who.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
			Include: with, Prefix: nonEmpty(q.Prefix), Marker: nonEmpty(q.Token), MaxResults: most,
		}).NextPage(context.WithValue(ctx, begins{}, q.After))
		if err != nil || out.Segment == nil {
			return page{}, err
		}
		return page{out.Segment.BlobItems, nil, out.NextMarker, out.Date}, nil
	}
	out, err := who.container.NewListBlobsHierarchyPager("/", &container.ListBlobsHierarchyOptions{
		Include: with, Prefix: nonEmpty(q.Prefix), Marker: nonEmpty(q.Token), MaxResults: most,
	}).NextPage(ctx)
	if err != nil || out.Segment == nil {
		return page{}, err
	}
	return page{out.Segment.BlobItems, out.Segment.BlobPrefixes, out.NextMarker, out.Date}, nil
}

// begins has a listing begin at the key of its context, for which the SDK has an option that its
// flat listing forgets (azblob v1.7).
type begins struct{}

func (begins) Do(r *policy.Request) (*http.Response, error) {
	if key, _ := r.Raw().Context().Value(begins{}).(string); key != "" {
		q := r.Raw().URL.Query()
		q.Set("startFrom", key)
		r.Raw().URL.RawQuery = q.Encode()
	}
	return r.Next()
}

// item is a blob of a listing.
func (s *store) item(b *container.BlobItem) bucket.Item {
	p := b.Properties
	if p == nil {
		p = &container.BlobProperties{}
	}
	o := bucket.Object{
		Key: plain(b.Name), Size: plain(p.ContentLength), Modified: plain(p.LastModified),
		ETag: version(string(plain(p.ETag)), string(plain(p.BlobType))),
	}
	var isFolder bool
	o.Metadata, o.Headers.Expires, isFolder = readMetadata(b.Metadata)
	o.Headers = stored(o.Headers, p.ContentType, p.CacheControl, p.ContentDisposition, p.ContentEncoding, p.ContentLanguage)
	o.Headers.StorageClass = tierToKeep(string(plain(p.AccessTier)), plain(p.AccessTierInferred))
	o.Headers.Tags = tagsIn(b.BlobTags)
	takeMode(o.Metadata, plain(p.Permissions))
	if isFolder && o.Size == 0 && !strings.HasSuffix(o.Key, "/") {
		s.folders.Store(true)
		o.Key += "/"
	}
	return bucket.Item{Object: o}
}
