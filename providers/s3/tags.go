package s3

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// tagsOf asks for an object's tags, without those that only the service may set, and one with
// the result of a scan of these bytes.
func (s *store) tagsOf(ctx context.Context, key string) (string, error) {
	out, err := call(ctx, s, s.client.GetObjectTagging, &s3.GetObjectTaggingInput{Bucket: &s.config.Bucket, Key: &key}, nil)
	if err != nil {
		return "", err
	}
	tags := map[string]string{}
	for _, one := range out.TagSet {
		if name := aws.ToString(one.Key); !strings.HasPrefix(name, "aws:") && name != "GuardDutyMalwareScanStatus" {
			tags[name] = aws.ToString(one.Value)
		}
	}
	return bucket.FormatTags(tags), nil
}

// classToKeep is the object's storage class for its new content: none where that is the
// default, or could not be read at once.
func classToKeep(c types.StorageClass) string {
	switch c {
	case types.StorageClassStandard, types.StorageClassGlacier, types.StorageClassDeepArchive:
		return ""
	}
	return string(c)
}
