package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// plain is the value of a pointer, or the zero value for nil.
func plain[V any](p *V) (v V) {
	if p != nil {
		v = *p
	}
	return v
}

// nonEmpty is nil for "", which leaves the field out of a request.
func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// match is a condition in the form of requests.
func match(c providers.Condition) *blob.AccessConditions {
	m := &blob.ModifiedAccessConditions{}
	switch c.Kind {
	case providers.ConditionAbsent:
		m.IfNoneMatch = to.Ptr(azcore.ETagAny)
	case providers.ConditionVersion:
		m.IfMatch = matchETag(c.Version.ETag)
	}
	return &blob.AccessConditions{ModifiedAccessConditions: m}
}

func matchETag(version string) *azcore.ETag {
	etag, _ := etagOf(version)
	return to.Ptr(azcore.ETag(etag))
}

// sourceMatch limits a copy to that version of its source.
func sourceMatch(from bucket.Object) *blob.SourceModifiedAccessConditions {
	return &blob.SourceModifiedAccessConditions{SourceIfMatch: matchETag(from.ETag)}
}

// headers are the standard ones of a blob.
func headers(h bucket.Headers) *blob.HTTPHeaders {
	return &blob.HTTPHeaders{
		BlobContentType: nonEmpty(h.ContentType), BlobCacheControl: nonEmpty(h.CacheControl), BlobContentDisposition: nonEmpty(h.ContentDisposition),
		BlobContentEncoding: nonEmpty(h.ContentEncoding), BlobContentLanguage: nonEmpty(h.ContentLanguage),
	}
}

// tierToKeep is the blob's access tier for its new content: one that was set explicitly, and
// whose content can be read at once. An answer with content does not tell the tier; a listing
// does.
func tierToKeep(tier string, inferred bool) string {
	switch t := blob.AccessTier(tier); {
	case inferred:
	case t == blob.AccessTierHot, t == blob.AccessTierCool, t == blob.AccessTierCold:
		return tier
	}
	return ""
}

// tier is the access tier of a new blob; nil: the account's default.
func tier(h bucket.Headers) *blob.AccessTier {
	if h.StorageClass == "" {
		return nil
	}
	return to.Ptr(blob.AccessTier(h.StorageClass))
}

// tagsIn are the index tags of an answer.
func tagsIn(t *container.BlobTags) string {
	tags := map[string]string{}
	for _, one := range plain(t).BlobTagSet {
		tags[plain(one.Key)] = plain(one.Value)
	}
	return bucket.FormatTags(tags)
}

// tagsOf asks for a blob's index tags.
func (s *store) tagsOf(ctx context.Context, name string) (string, error) {
	out, err := call(ctx, s, nil, func(who *session) (blob.GetTagsResponse, error) {
		return who.container.NewBlobClient(name).GetTags(ctx, nil)
	})
	return tagsIn(&out.BlobTags), err
}

// modeHeader is the header with the mode in a hierarchical namespace.
const modeHeader = "X-Ms-Permissions"

// takeMode adds such a mode, as "rwxr-x--T", to the metadata of a blob without one: a mode set
// by wsmount, or by AzCopy, has precedence. The namespace's owners are no numbers.
func takeMode(metadata map[string]string, told string) {
	const want = "rwxrwxrwx"
	_, ours := metadata["mode"]
	_, azCopys := metadata["permissions"]
	if told = strings.TrimSuffix(told, "+"); len(told) != len(want) || ours || azCopys {
		return
	}
	mode := 0
	for i := range want {
		sticky := i == len(want)-1 && (told[i] == 't' || told[i] == 'T')
		if mode <<= 1; told[i] == want[i] || sticky && told[i] == 't' {
			mode |= 1
		}
		if sticky {
			mode |= 0o1000
		}
	}
	metadata["mode"] = fmt.Sprintf("%o", mode)
}

// made is the blob of an answer to a change.
func made(etag *azcore.ETag, modified, answered *time.Time, md5 []byte) bucket.Object {
	o := bucket.Object{ETag: version(string(plain(etag)), plainType), Modified: plain(modified), Answered: plain(answered)}
	if len(md5) > 0 {
		o.MD5 = fmt.Sprintf("%x", md5)
	}
	return o
}

// Head implements bucket.Store.
func (s *store) Head(ctx context.Context, key string) (bucket.Object, error) {
	return first(s, key, func(name string) (bucket.Object, error) {
		o, isFolder, err := s.describe(ctx, name)
		if err != nil {
			return bucket.Object{}, err
		}
		return s.asKey(o, key, isFolder)
	})
}

// describe asks for a blob, and reports whether it is a directory.
func (s *store) describe(ctx context.Context, name string) (o bucket.Object, isFolder bool, err error) {
	var answer *http.Response
	ctx = policy.WithCaptureResponse(ctx, &answer)
	out, err := call(ctx, s, nil, func(who *session) (blob.GetPropertiesResponse, error) {
		return who.container.NewBlobClient(name).GetProperties(ctx, nil)
	})
	if err != nil {
		return bucket.Object{}, false, err
	}
	o = bucket.Object{
		Key: name, Size: plain(out.ContentLength), ETag: version(string(plain(out.ETag)), string(plain(out.BlobType))),
		Modified: plain(out.LastModified), Answered: plain(out.Date),
	}
	o.Metadata, o.Headers.Expires, isFolder = readMetadata(out.Metadata)
	o.Headers = stored(o.Headers, out.ContentType, out.CacheControl, out.ContentDisposition, out.ContentEncoding, out.ContentLanguage)
	o.Headers.StorageClass = tierToKeep(plain(out.AccessTier), plain(out.AccessTierInferred))
	takeMode(o.Metadata, answer.Header.Get(modeHeader))
	if !s.tagless.Load() {
		o.Headers.Tags, err = s.tags.Ask(ctx, name, o.ETag, plain(out.TagCount))
	}
	return o, isFolder && o.Size == 0, err
}

// stored adds the headers of a blob to Expires, which is of its metadata.
func stored(h bucket.Headers, contentType, cacheControl, disposition, encoding, language *string) bucket.Headers {
	h.ContentType, h.CacheControl, h.ContentDisposition = plain(contentType), plain(cacheControl), plain(disposition)
	h.ContentEncoding, h.ContentLanguage = plain(encoding), plain(language)
	return h
}

// Get implements bucket.Store.
func (s *store) Get(ctx context.Context, key string, want bucket.Range) (bucket.Object, io.ReadCloser, error) {
	o := &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: want.Offset, Count: want.Length}}
	if want.ETag != "" {
		o.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: matchETag(want.ETag)}}
	}
	if want.Length > 0 && want.Offset+want.Length < want.Offset { // beyond the largest number
		o.Range.Count = 0
	}
	var answer *http.Response
	ctx = policy.WithCaptureResponse(ctx, &answer)
	// A transport that itself asks for compression unpacks content that was stored packed.
	ctx = policy.WithHTTPHeader(ctx, http.Header{"Accept-Encoding": {"identity"}})
	out, err := call(ctx, s, nil, func(who *session) (blob.DownloadStreamResponse, error) {
		return who.container.NewBlobClient(key).DownloadStream(ctx, o)
	})
	if want.ETag != "" && errors.Is(err, providers.ErrConflict) { // Azurite returns it for a missing blob, too
		if _, missing := s.Head(ctx, key); errors.Is(missing, providers.ErrNotExist) {
			err = missing
		}
	}
	if err != nil {
		return bucket.Object{}, nil, err
	}
	got := bucket.Object{
		Key: key, Size: plain(out.ContentLength), ETag: version(string(plain(out.ETag)), string(plain(out.BlobType))),
		Modified: plain(out.LastModified), Answered: plain(out.Date),
	}
	if told := plain(out.ContentRange); told != "" {
		got.Size, err = bucket.WholeSize(told)
	}
	var isFolder bool
	got.Metadata, got.Headers.Expires, isFolder = readMetadata(out.Metadata)
	got.Headers = stored(got.Headers, out.ContentType, out.CacheControl, out.ContentDisposition, out.ContentEncoding, out.ContentLanguage)
	takeMode(got.Metadata, answer.Header.Get(modeHeader))
	if err == nil && !s.tagless.Load() {
		got.Headers.Tags, err = s.tags.Known(ctx, key, got.ETag, plain(out.TagCount))
	}
	if err == nil {
		got, err = s.asKey(got, key, isFolder && got.Size == 0)
	}
	if err != nil {
		out.Body.Close()
		return bucket.Object{}, nil, err
	}
	return got, out.Body, nil
}

// Past implements bucket.Store.
func (s *store) Past(context.Context, string, providers.Version) (string, error) {
	return "", &bucket.Fault{Kind: providers.ErrUnsupported, Err: words("earlier versions of blobs are not read")}
}

// Put implements bucket.Store.
func (s *store) Put(ctx context.Context, key string, body *bucket.Outgoing, m bucket.Making) (bucket.Object, error) {
	if err := replaceable(m.If); err != nil {
		return bucket.Object{}, err
	}
	names, err := s.there(ctx, key)
	if err != nil {
		return bucket.Object{}, err
	}
	md := metadata(m)
	if strings.HasSuffix(key, "/") {
		md[folder] = to.Ptr("true")
	}
	out, err := bucket.Tagged(s.tags, m.Headers.Tags, body.Again, func(tags string) (blockblob.UploadResponse, error) {
		return call(ctx, s, body.Again, func(who *session) (blockblob.UploadResponse, error) {
			return who.container.NewBlockBlobClient(names[0]).Upload(ctx, sent(body), &blockblob.UploadOptions{
				Metadata: md, HTTPHeaders: headers(m.Headers), Tier: tier(m.Headers), Tags: bucket.ParseTags(tags), AccessConditions: match(m.If),
				TransactionalValidation: blob.TransferValidationTypeMD5(body.MD5[:]),
			})
		})
	})
	if err != nil {
		return bucket.Object{}, err
	}
	return made(out.ETag, out.LastModified, out.Date, out.ContentMD5), nil
}

// Copy implements bucket.Store.
func (s *store) Copy(ctx context.Context, from bucket.Object, key string, m bucket.Making) (bucket.Object, error) {
	if err := replaceable(m.If); err != nil {
		return bucket.Object{}, err
	}
	out, err := bucket.Tagged(s.tags, m.Headers.Tags, nil, func(tags string) (blockblob.UploadBlobFromURLResponse, error) {
		return call(ctx, s, nil, func(who *session) (blockblob.UploadBlobFromURLResponse, error) {
			source, err := who.source(from.Key, s.config.Bucket, s.now())
			if err != nil {
				return blockblob.UploadBlobFromURLResponse{}, err
			}
			return who.container.NewBlockBlobClient(key).UploadBlobFromURL(ctx, source, &blockblob.UploadBlobFromURLOptions{
				Metadata: metadata(m), HTTPHeaders: headers(m.Headers), Tier: tier(m.Headers), Tags: bucket.ParseTags(tags), CopySourceBlobProperties: to.Ptr(false),
				AccessConditions: match(m.If), SourceModifiedAccessConditions: sourceMatch(from), CopySourceAuthorization: who.bearer(),
			})
		})
	})
	if bucket.IsCode(err, notThere) {
		return s.copyBlock(ctx, from, key, m)
	}
	if err != nil {
		return bucket.Object{}, err
	}
	return made(out.ETag, out.LastModified, out.Date, nil), nil
}

// copyBlock is Copy in two requests, for a service without Put Blob From URL, such as Azurite.
func (s *store) copyBlock(ctx context.Context, from bucket.Object, key string, m bucket.Making) (bucket.Object, error) {
	id, err := s.Begin(ctx, key, m)
	if err != nil {
		return bucket.Object{}, err
	}
	u := bucket.Upload{Key: key, ID: id}
	defer s.uploads.Delete(u)
	part, err := s.CopyPart(ctx, u, 1, from, 0, from.Size)
	if err != nil {
		return bucket.Object{}, err
	}
	return s.Complete(ctx, u, []bucket.Part{part}, m)
}

// Patch implements bucket.Patcher.
func (s *store) Patch(ctx context.Context, was bucket.Object, m bucket.Making) (bucket.Object, error) {
	_, blobType := etagOf(was.ETag)
	asked := m.If
	if h := was.Headers; served(h) != served(m.Headers) {
		out, err := call(ctx, s, nil, func(who *session) (blob.SetHTTPHeadersResponse, error) {
			return who.container.NewBlobClient(was.Key).SetHTTPHeaders(ctx, *headers(m.Headers), &blob.SetHTTPHeadersOptions{AccessConditions: match(asked)})
		})
		if err != nil {
			return bucket.Object{}, err
		}
		asked = providers.IfVersion(providers.Version{ETag: version(string(plain(out.ETag)), blobType)})
	}
	out, err := call(ctx, s, nil, func(who *session) (blob.SetMetadataResponse, error) {
		return who.container.NewBlobClient(was.Key).SetMetadata(ctx, metadata(m), &blob.SetMetadataOptions{AccessConditions: match(asked)})
	})
	if err != nil {
		return bucket.Object{}, err
	}
	return bucket.Object{ETag: version(string(plain(out.ETag)), blobType), Modified: plain(out.LastModified), Answered: plain(out.Date)}, nil
}

// usualType is the type of a blob that was made without one.
const usualType = "application/octet-stream"

// served are the headers that a request of their own changes: Expires is metadata, and the tier
// and the tags stay. The service's default type counts as none: or else each change of
// attributes would be two, and a daemon that dies between them would not recognize the first as
// its own.
func served(h bucket.Headers) bucket.Headers {
	h.Expires, h.StorageClass, h.Tags = "", "", ""
	if h.ContentType == usualType {
		h.ContentType = ""
	}
	return h
}

// Delete implements bucket.Store. A directory may have two blobs.
func (s *store) Delete(ctx context.Context, key string, c providers.Condition) error {
	if err := possible(c); err != nil {
		return err
	}
	names, err := s.there(ctx, key)
	for _, name := range names {
		if err != nil {
			break
		}
		_, err = call(ctx, s, nil, func(who *session) (blob.DeleteResponse, error) {
			return who.container.NewBlobClient(name).Delete(ctx, &blob.DeleteOptions{AccessConditions: match(c)})
		})
		c = providers.Unconditional()
	}
	return err
}
