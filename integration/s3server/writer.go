package s3server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// An Object is what there is under a key. Its ETag is empty if there is nothing.
type Object struct {
	Content  []byte
	ETag     string
	Metadata map[string]string
}

// Look reads an object.
func (s *Server) Look(ctx context.Context, key string) (o Object, err error) {
	out, err := s.Client().GetObject(ctx, &s3.GetObjectInput{Bucket: &s.Bucket, Key: &key})
	var missing *types.NoSuchKey
	switch {
	case errors.As(err, &missing):
		return Object{}, nil
	case err != nil:
		return Object{}, err
	}
	defer out.Body.Close()
	o = Object{ETag: aws.ToString(out.ETag), Metadata: out.Metadata}
	o.Content, err = io.ReadAll(out.Body)
	return o, err
}

// Replace puts an object in the place of the one that has an ETag; empty: where
// there is none. It reports false if there is another.
func (s *Server) Replace(ctx context.Context, key, etag string, content []byte) (bool, error) {
	in := &s3.PutObjectInput{Bucket: &s.Bucket, Key: &key, Body: bytes.NewReader(content), IfMatch: aws.String(etag)}
	if etag == "" {
		in.IfMatch, in.IfNoneMatch = nil, aws.String("*")
	}
	_, err := s.Client().PutObject(ctx, in)
	var answer smithy.APIError
	if errors.As(err, &answer) && (answer.ErrorCode() == "PreconditionFailed" || answer.ErrorCode() == "NoSuchKey") {
		return false, nil
	}
	return err == nil, err
}

// Delete removes an object, whatever it is.
func (s *Server) Delete(ctx context.Context, key string) error {
	_, err := s.Client().DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.Bucket, Key: &key})
	return err
}

// ETags are those of all objects below a prefix but wsmount's own, by their keys
// without the prefix.
func (s *Server) ETags(ctx context.Context, prefix string) (map[string]string, error) {
	found := map[string]string{}
	pages := s3.NewListObjectsV2Paginator(s.Client(), &s3.ListObjectsV2Input{Bucket: &s.Bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			if key := strings.TrimPrefix(aws.ToString(o.Key), prefix); !strings.HasPrefix(key, ".wsmount/") {
				found[key] = aws.ToString(o.ETag)
			}
		}
	}
	return found, nil
}

// Uploads are the keys of the uploads that have begun and not ended.
func (s *Server) Uploads(ctx context.Context) (keys []string, err error) {
	pages := s3.NewListMultipartUploadsPaginator(s.Client(), &s3.ListMultipartUploadsInput{Bucket: &s.Bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Uploads {
			keys = append(keys, aws.ToString(u.Key))
		}
	}
	return keys, nil
}
