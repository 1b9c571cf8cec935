package s3

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

func unquote(etag *string) string { return strings.Trim(aws.ToString(etag), `"`) }

func quote(etag string) *string { return aws.String(`"` + etag + `"`) }

// nonEmpty is nil for "", which leaves the field out of a request.
func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// answeredAt is the time of an answer by the service's clock; zero: not told.
func answeredAt(m middleware.Metadata) time.Time {
	t, _ := awsmiddleware.GetServerTime(m)
	return t
}

// digest is the MD5 in an ETag; with some encryptions it has none.
func digest(etag string, sse types.ServerSideEncryption, customer *string) string {
	isPlain := (sse == "" || sse == types.ServerSideEncryptionAes256) && aws.ToString(customer) == ""
	if !isPlain || len(etag) != 32 || strings.Trim(etag, "0123456789abcdef") != "" {
		return ""
	}
	return etag
}

// sent is the MD5 of the bytes put, where the probe found that ETags are MD5s.
func (s *store) sent(etag string, sse types.ServerSideEncryption, customer *string) string {
	if !s.probe.MD5 {
		return ""
	}
	return digest(etag, sse, customer)
}

// Head implements bucket.Store.
func (s *store) Head(ctx context.Context, key string) (bucket.Object, error) {
	out, err := call(ctx, s, s.client.HeadObject, &s3.HeadObjectInput{Bucket: &s.config.Bucket, Key: &key}, nil)
	if err != nil {
		return bucket.Object{}, err
	}
	etag, answered := unquote(out.ETag), answeredAt(out.ResultMetadata)
	o := bucket.Object{
		Key: key, Size: aws.ToInt64(out.ContentLength), ETag: etag, Modified: aws.ToTime(out.LastModified),
		MD5: digest(etag, out.ServerSideEncryption, out.SSECustomerAlgorithm), Metadata: out.Metadata, Answered: answered,
		Headers: stored(answered, out.ContentType, out.CacheControl, out.ContentDisposition, out.ContentEncoding, out.ContentLanguage, out.ExpiresString),
	}
	o.Headers.StorageClass = classToKeep(out.StorageClass)
	o.Headers.Tags, err = s.tags.Ask(ctx, key, etag, int64(aws.ToInt32(out.TagCount)))
	return o, err
}

// Get implements bucket.Store.
func (s *store) Get(ctx context.Context, key string, want bucket.Range) (bucket.Object, io.ReadCloser, error) {
	in := &s3.GetObjectInput{Bucket: &s.config.Bucket, Key: &key, Range: nonEmpty(want.Header()), VersionId: nonEmpty(want.ID)}
	if want.ETag != "" {
		in.IfMatch = quote(want.ETag)
	}
	out, err := call(ctx, s, s.client.GetObject, in, nil)
	if want.ID != "" && errors.Is(err, providers.ErrPermission) {
		err = refused(err, "a version of the object may not be read (s3:GetObjectVersion)")
	}
	if err != nil {
		return bucket.Object{}, nil, err
	}
	etag, answered := unquote(out.ETag), answeredAt(out.ResultMetadata)
	o := bucket.Object{
		Key: key, Size: aws.ToInt64(out.ContentLength), ETag: etag, Modified: aws.ToTime(out.LastModified),
		MD5: digest(etag, out.ServerSideEncryption, out.SSECustomerAlgorithm), Metadata: out.Metadata, Answered: answered,
		Headers: stored(answered, out.ContentType, out.CacheControl, out.ContentDisposition, out.ContentEncoding, out.ContentLanguage, out.ExpiresString),
	}
	o.Headers.StorageClass = classToKeep(out.StorageClass)
	if in.Range != nil {
		o.Size, err = bucket.WholeSize(aws.ToString(out.ContentRange))
	}
	if err == nil && want.ID == "" {
		o.Headers.Tags, err = s.tags.Known(ctx, key, etag, int64(aws.ToInt32(out.TagCount)))
	}
	if err != nil {
		out.Body.Close()
		return bucket.Object{}, nil, err
	}
	return o, out.Body, nil
}

// stored are the headers of an answer that are the object's. A service may mark an answer as
// not to be cached (Google's marks each): such an Expires is the time of the answer, and the
// Cache-Control beside it is not the object's either.
func stored(answered time.Time, contentType, cacheControl, disposition, encoding, language, expires *string) bucket.Headers {
	h := bucket.Headers{
		ContentType: aws.ToString(contentType), CacheControl: aws.ToString(cacheControl), ContentDisposition: aws.ToString(disposition),
		ContentEncoding: aws.ToString(encoding), ContentLanguage: aws.ToString(language), Expires: aws.ToString(expires),
	}
	if ends := expiry(h); ends != nil && ends.Sub(answered).Abs() <= answerSlack {
		h.Expires, h.CacheControl = "", ""
	}
	return h
}

// answerSlack is the greatest distance between the times in one answer.
const answerSlack = 2 * time.Second

// expiry is the time of Expires in the client's form.
func expiry(h bucket.Headers) *time.Time {
	t, err := http.ParseTime(h.Expires)
	if err != nil {
		return nil
	}
	return &t
}

// match is a condition as headers of PUT, COPY and Complete.
func match(c providers.Condition) (ifMatch, ifNoneMatch *string) {
	switch c.Kind {
	case providers.ConditionAbsent:
		return nil, aws.String("*")
	case providers.ConditionVersion:
		return quote(c.Version.ETag), nil
	}
	return nil, nil
}

// unsigned leaves the body out of the signature: it is sent as it is read.
var unsigned = s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)

// Put implements bucket.Store.
func (s *store) Put(ctx context.Context, key string, body *bucket.Outgoing, m bucket.Making) (bucket.Object, error) {
	h := m.Headers
	in := &s3.PutObjectInput{
		Bucket: &s.config.Bucket, Key: &key, Metadata: m.Metadata, ContentLength: &body.Size, Body: body.Reader(),
		ContentMD5:  aws.String(base64.StdEncoding.EncodeToString(body.MD5[:])),
		ContentType: nonEmpty(h.ContentType), CacheControl: nonEmpty(h.CacheControl), ContentDisposition: nonEmpty(h.ContentDisposition),
		ContentEncoding: nonEmpty(h.ContentEncoding), ContentLanguage: nonEmpty(h.ContentLanguage), Expires: expiry(h),
		StorageClass: types.StorageClass(h.StorageClass),
	}
	in.IfMatch, in.IfNoneMatch = match(m.If)
	again := func() bool {
		ok := body.Again()
		in.Body = body.Reader()
		return ok
	}
	out, err := bucket.Tagged(s.tags, h.Tags, again, func(tags string) (*s3.PutObjectOutput, error) {
		in.Tagging = nonEmpty(tags)
		return decided(ctx, func() (*s3.PutObjectOutput, error) { return call(ctx, s, s.client.PutObject, in, again, unsigned) }, again)
	})
	if err != nil {
		return bucket.Object{}, err
	}
	etag := unquote(out.ETag)
	return bucket.Object{ETag: etag, MD5: s.sent(etag, out.ServerSideEncryption, out.SSECustomerAlgorithm), Answered: answeredAt(out.ResultMetadata)}, nil
}

// decided sends a request again where AWS did not decide between concurrent writers.
func decided[O any](ctx context.Context, send func() (O, error), again func() bool) (O, error) {
	for attempt := 0; ; attempt++ {
		out, err := send()
		if !bucket.IsCode(err, "ConditionalRequestConflict") || attempt == 3 {
			return out, err
		}
		if err := pause(ctx, attempt); err != nil {
			return out, err
		}
		if again != nil && !again() {
			return out, err
		}
	}
}

// pause waits for a random time that grows with each attempt.
func pause(ctx context.Context, attempt int) error {
	t := time.NewTimer(time.Duration(rand.Int64N(int64(50*time.Millisecond) << attempt)))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Copy implements bucket.Store.
func (s *store) Copy(ctx context.Context, from bucket.Object, key string, m bucket.Making) (bucket.Object, error) {
	h := m.Headers
	in := &s3.CopyObjectInput{
		Bucket: &s.config.Bucket, Key: &key, CopySource: s.sourceOf(from.Key), CopySourceIfMatch: quote(from.ETag),
		Metadata: m.Metadata, MetadataDirective: types.MetadataDirectiveReplace,
		ContentType: nonEmpty(h.ContentType), CacheControl: nonEmpty(h.CacheControl), ContentDisposition: nonEmpty(h.ContentDisposition),
		ContentEncoding: nonEmpty(h.ContentEncoding), ContentLanguage: nonEmpty(h.ContentLanguage), Expires: expiry(h),
		StorageClass: types.StorageClass(h.StorageClass),
	}
	if h.Tags == from.Headers.Tags { // the service copies all by default
		h.Tags = ""
	} else {
		in.TaggingDirective = types.TaggingDirectiveReplace
	}
	in.IfMatch, in.IfNoneMatch = match(m.If)
	out, err := bucket.Tagged(s.tags, h.Tags, nil, func(tags string) (*s3.CopyObjectOutput, error) {
		in.Tagging = nonEmpty(tags)
		return call(ctx, s, s.client.CopyObject, in, nil)
	})
	if err != nil {
		return bucket.Object{}, err
	}
	if out.CopyObjectResult == nil {
		return bucket.Object{}, errNoResult
	}
	etag := unquote(out.CopyObjectResult.ETag)
	return bucket.Object{ETag: etag, Modified: aws.ToTime(out.CopyObjectResult.LastModified), Answered: answeredAt(out.ResultMetadata),
		MD5: digest(etag, out.ServerSideEncryption, out.SSECustomerAlgorithm)}, nil
}

var errNoResult = fmt.Errorf("%w: the answer to a copy has no result", providers.ErrCorrupt)

// sourceOf is the header that names a source: bucket and key, percent-encoded.
func (s *store) sourceOf(key string) *string {
	segments := strings.Split(key, "/")
	for i, one := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(one), "+", "%20")
	}
	return aws.String(s.config.Bucket + "/" + strings.Join(segments, "/"))
}

// Delete implements bucket.Store.
func (s *store) Delete(ctx context.Context, key string, c providers.Condition) error {
	in := &s3.DeleteObjectInput{Bucket: &s.config.Bucket, Key: &key}
	in.IfMatch, _ = match(c)
	_, err := call(ctx, s, s.client.DeleteObject, in, nil)
	return err
}

// List implements bucket.Store. Keys come percent-encoded, since XML cannot carry all.
func (s *store) List(ctx context.Context, q bucket.Query) (bucket.Listing, error) {
	in := &s3.ListObjectsV2Input{
		Bucket: &s.config.Bucket, EncodingType: types.EncodingTypeUrl,
		Prefix: &q.Prefix, StartAfter: nonEmpty(q.After), ContinuationToken: nonEmpty(q.Token),
	}
	if q.Limit > 0 {
		in.MaxKeys = aws.Int32(int32(q.Limit))
	}
	if q.Grouped {
		in.Delimiter = aws.String("/")
	}
	out, err := call(ctx, s, s.client.ListObjectsV2, in, nil)
	if err != nil {
		return bucket.Listing{}, err
	}
	s.encodes.Store(out.EncodingType == types.EncodingTypeUrl)
	items := make([]bucket.Item, 0, len(out.Contents)+len(out.CommonPrefixes))
	for _, o := range out.Contents {
		items = append(items, bucket.Item{Object: bucket.Object{Key: aws.ToString(o.Key), Size: aws.ToInt64(o.Size), ETag: unquote(o.ETag), Modified: aws.ToTime(o.LastModified)}})
	}
	for _, c := range out.CommonPrefixes {
		items = append(items, bucket.Item{Object: bucket.Object{Key: aws.ToString(c.Prefix)}, IsDir: true})
	}
	for i := range items {
		if items[i].Key, err = decodeKey(items[i].Key, out.EncodingType); err != nil {
			return bucket.Listing{}, err
		}
	}
	return bucket.Listing{Items: items, Next: aws.ToString(out.NextContinuationToken), More: aws.ToBool(out.IsTruncated), Answered: answeredAt(out.ResultMetadata)}, nil
}

// decodeKey decodes a key of a listing. A service may ignore the requested encoding.
func decodeKey(told string, encoding types.EncodingType) (string, error) {
	if encoding != types.EncodingTypeUrl {
		return told, nil
	}
	key, err := url.QueryUnescape(told)
	if err != nil {
		return "", fmt.Errorf("%w: key %q in a listing", providers.ErrCorrupt, told)
	}
	return key, nil
}
