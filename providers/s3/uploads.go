package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Begin implements bucket.Store.
func (s *store) Begin(ctx context.Context, key string, m bucket.Making) (id string, err error) {
	h := m.Headers
	in := &s3.CreateMultipartUploadInput{
		Bucket: &s.config.Bucket, Key: &key, Metadata: m.Metadata,
		ContentType: nonEmpty(h.ContentType), CacheControl: nonEmpty(h.CacheControl), ContentDisposition: nonEmpty(h.ContentDisposition),
		ContentEncoding: nonEmpty(h.ContentEncoding), ContentLanguage: nonEmpty(h.ContentLanguage), Expires: expiry(h),
		StorageClass: types.StorageClass(h.StorageClass),
	}
	out, err := bucket.Tagged(s.tags, h.Tags, nil, func(tags string) (*s3.CreateMultipartUploadOutput, error) {
		in.Tagging = nonEmpty(tags)
		return call(ctx, s, s.client.CreateMultipartUpload, in, nil)
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.UploadId), nil
}

// Part implements bucket.Store. Damage on the way is noticed afterwards, which is soon enough:
// a part is not visible before it is completed.
func (s *store) Part(ctx context.Context, u bucket.Upload, n int, body *bucket.Outgoing) (bucket.Part, error) {
	in := &s3.UploadPartInput{Bucket: &s.config.Bucket, Key: &u.Key, UploadId: &u.ID, PartNumber: aws.Int32(int32(n)),
		ContentLength: &body.Size, Body: body.Reader()}
	out, err := call(ctx, s, s.client.UploadPart, in, func() bool {
		ok := body.Again()
		in.Body = body.Reader()
		return ok
	}, unsigned)
	if err != nil {
		return bucket.Part{}, err
	}
	etag := unquote(out.ETag)
	return bucket.Part{ETag: etag, MD5: s.sent(etag, out.ServerSideEncryption, out.SSECustomerAlgorithm)}, nil
}

// CopyPart implements bucket.Store.
func (s *store) CopyPart(ctx context.Context, u bucket.Upload, n int, from bucket.Object, offset, size int64) (bucket.Part, error) {
	out, err := call(ctx, s, s.client.UploadPartCopy, &s3.UploadPartCopyInput{
		Bucket: &s.config.Bucket, Key: &u.Key, UploadId: &u.ID, PartNumber: aws.Int32(int32(n)),
		CopySource: s.sourceOf(from.Key), CopySourceIfMatch: quote(from.ETag),
		CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+size-1)),
	}, nil)
	var f *bucket.Fault
	if bucket.IsCode(err, "InvalidArgument", "InvalidRange") && errors.As(err, &f) {
		f.Doubt = bucket.RangeBeyond
	}
	if err != nil {
		return bucket.Part{}, err
	}
	if out.CopyPartResult == nil {
		return bucket.Part{}, errNoResult
	}
	return bucket.Part{ETag: unquote(out.CopyPartResult.ETag)}, nil
}

// Complete implements bucket.Store. The metadata came with Begin.
func (s *store) Complete(ctx context.Context, u bucket.Upload, parts []bucket.Part, m bucket.Making) (bucket.Object, error) {
	completed := make([]types.CompletedPart, len(parts))
	for i, part := range parts {
		completed[i] = types.CompletedPart{PartNumber: aws.Int32(int32(part.N)), ETag: quote(part.ETag)}
	}
	in := &s3.CompleteMultipartUploadInput{Bucket: &s.config.Bucket, Key: &u.Key, UploadId: &u.ID,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: completed}}
	in.IfMatch, in.IfNoneMatch = match(m.If)
	send := func() (*s3.CompleteMultipartUploadOutput, error) {
		return call(ctx, s, s.client.CompleteMultipartUpload, in, nil)
	}
	out, err := decided(ctx, send, nil)
	if bucket.IsCode(err, "NoSuchUpload") { // completed before, or aborted
		err = &bucket.Fault{Kind: providers.ErrConflict, Code: "NoSuchUpload", Err: errors.New("the upload is gone")}
	}
	if err != nil {
		return bucket.Object{}, err
	}
	return bucket.Object{ETag: unquote(out.ETag), Answered: answeredAt(out.ResultMetadata)}, nil
}

// Abort implements bucket.Store.
func (s *store) Abort(ctx context.Context, u bucket.Upload) error {
	_, err := call(ctx, s, s.client.AbortMultipartUpload, &s3.AbortMultipartUploadInput{Bucket: &s.config.Bucket, Key: &u.Key, UploadId: &u.ID}, nil)
	if errors.Is(err, providers.ErrNotExist) {
		return nil
	}
	return err
}

// AbortBefore implements bucket.Store. MinIO lists uploads of one whole key, or of the whole
// bucket, for which other services may refuse permission.
func (s *store) AbortBefore(ctx context.Context, prefix string, before time.Time) (int, error) {
	count, err := s.abortAmong(ctx, prefix, prefix, before)
	if err == nil && count == 0 && prefix != "" {
		if count, err = s.abortAmong(ctx, "", prefix, before); errors.Is(err, providers.ErrPermission) {
			err = nil
		}
	}
	return count, err
}

// abortAmong aborts the uploads below prefix among those below the prefix among.
func (s *store) abortAmong(ctx context.Context, among, prefix string, before time.Time) (count int, err error) {
	in := &s3.ListMultipartUploadsInput{Bucket: &s.config.Bucket, Prefix: nonEmpty(among)}
	for {
		out, err := call(ctx, s, s.client.ListMultipartUploads, in, nil)
		if err != nil {
			return count, err
		}
		for _, u := range out.Uploads {
			if !strings.HasPrefix(aws.ToString(u.Key), prefix) || !aws.ToTime(u.Initiated).Before(before) {
				continue
			}
			if err := s.Abort(ctx, bucket.Upload{Key: *u.Key, ID: aws.ToString(u.UploadId)}); err != nil {
				return count, err
			}
			count++
		}
		if !aws.ToBool(out.IsTruncated) {
			return count, nil
		}
		in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
	}
}
