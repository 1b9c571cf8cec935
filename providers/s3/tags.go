package s3

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// tagsOf asks for an object's tags, but for those that others may not set, and one that says
// what was found in these bytes.
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

// classToKeep is the storage class that new content goes to, with the object: none where
// it would go anyway, or could not be read at once.
func classToKeep(c types.StorageClass) string {
	switch c {
	case types.StorageClassStandard, types.StorageClassGlacier, types.StorageClassDeepArchive:
		return ""
	}
	return string(c)
}
