package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// versions finds past versions of an object, in a bucket that keeps noncurrent versions. That a
// bucket keeps none, or does not let them be listed, is remembered for versionsPause, so that a
// restore of many files asks once.
type versions struct {
	s *store

	mu    sync.Mutex // guards the fields below
	keeps bool       // the bucket has versioning, or had it
	none  error      // why no version can be found; nil: one may be
	until time.Time  // until when none holds
}

const versionsPause = 10 * time.Minute

// Past implements bucket.Store.
func (s *store) Past(ctx context.Context, key string, want providers.Version) (id string, err error) {
	if err := s.past.mayAsk(ctx); err != nil {
		return "", err
	}
	return s.past.find(ctx, key, want)
}

// mayAsk is nil, or why no version can be found. A service that does not tell whether a bucket
// has versioning is asked for the versions themselves.
func (v *versions) mayAsk(ctx context.Context) error {
	v.mu.Lock()
	keeps, none, until := v.keeps, v.none, v.until
	v.mu.Unlock()
	switch {
	case none != nil && v.s.now().Before(until):
		return none
	case keeps:
		return nil
	}
	out, err := call(ctx, v.s, v.s.client.GetBucketVersioning, &s3.GetBucketVersioningInput{Bucket: &v.s.config.Bucket}, nil)
	switch {
	case errors.Is(err, providers.ErrPermission), errors.Is(err, providers.ErrUnsupported), errors.Is(err, providers.ErrInvalid):
		return nil
	case err != nil:
		return err
	case out.Status == "": // it never had any
		return v.remember(&bucket.Fault{Kind: providers.ErrNotExist, Err: errors.New("the bucket has no versioning")})
	}
	v.mu.Lock()
	v.keeps = true
	v.mu.Unlock()
	return nil
}

func (v *versions) remember(why error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.none, v.until = why, v.s.now().Add(versionsPause)
	return why
}

// find is the id of the newest version of an object that matches. Deletions are listed
// apart, as markers, and are no versions.
func (v *versions) find(ctx context.Context, key string, want providers.Version) (id string, err error) {
	in := &s3.ListObjectVersionsInput{Bucket: &v.s.config.Bucket, Prefix: &key, EncodingType: types.EncodingTypeUrl}
	for {
		out, err := call(ctx, v.s, v.s.client.ListObjectVersions, in, nil)
		if err != nil {
			return "", v.explain(err)
		}
		isKey := func(told *string) bool {
			got, err := decodeKey(aws.ToString(told), out.EncodingType)
			return err == nil && got == key
		}
		for _, o := range out.Versions {
			had := &bucket.Object{Size: aws.ToInt64(o.Size), ETag: unquote(o.ETag), Modified: aws.ToTime(o.LastModified)}
			if isKey(o.Key) && want.Matches(had.Version()) {
				return aws.ToString(o.VersionId), nil
			}
		}
		// The key comes before all keys with it as prefix, so its last page is the one whose
		// next key is another.
		if !aws.ToBool(out.IsTruncated) || !isKey(out.NextKeyMarker) || aws.ToString(out.NextVersionIdMarker) == aws.ToString(in.VersionIdMarker) {
			return "", &bucket.Fault{Kind: providers.ErrNotExist, Err: errors.New("the bucket has no such version")}
		}
		in.KeyMarker, in.VersionIdMarker = &key, out.NextVersionIdMarker
	}
}

// explain translates a refusal to list versions, and remembers it.
func (v *versions) explain(err error) error {
	switch {
	case errors.Is(err, providers.ErrPermission):
		return v.remember(refused(err, "the bucket's versions may not be listed (s3:ListBucketVersions)"))
	case errors.Is(err, providers.ErrUnsupported), errors.Is(err, providers.ErrInvalid):
		return v.remember(&bucket.Fault{Kind: providers.ErrUnsupported, Err: fmt.Errorf("the service does not list versions of objects: %w", err)})
	}
	return err
}

// refused is a refusal with the name of the missing permission.
func refused(err error, says string) error {
	f := &bucket.Fault{Kind: providers.ErrPermission, Status: http.StatusForbidden, Err: fmt.Errorf("%s: %w", says, err)}
	var was *bucket.Fault
	if errors.As(err, &was) {
		f.Code = was.Code
	}
	return f
}
