package s3

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Examination implements bucket.Examined.
func (s *store) Examination() bucket.Examination {
	x := bucket.Examination{Endpoint: s.config.Endpoint, Conditions: s.probe.findings(s.config.unsafe)}
	if x.Endpoint == "" {
		x.Endpoint = "AWS"
	}
	x.Own = func(ctx context.Context) []providers.Finding {
		return []providers.Finding{s.examineRegion(ctx), s.examineVersioning(ctx)}
	}
	return x
}

// examineRegion compares the region that requests are signed for with the
// bucket's own.
func (s *store) examineRegion(ctx context.Context) providers.Finding {
	out, err := call(ctx, s, s.client.GetBucketLocation, &s3.GetBucketLocationInput{Bucket: &s.config.Bucket}, nil)
	if err != nil {
		return asked("region", "s3:GetBucketLocation", fmt.Sprintf("%s is taken", s.config.region), err)
	}
	region := string(out.LocationConstraint)
	switch region {
	case "": // the first region has no name there
		region = "us-east-1"
	case "EU":
		region = "eu-west-1"
	}
	if region != s.config.region {
		return bucket.Less("region", fmt.Sprintf("write %s as storage.config.region", region), "the bucket is in %s, and the configuration says %s", region, s.config.region)
	}
	return bucket.Good("region", "%s", region)
}

// asked is the finding of a question that was not answered, and that a mount does not need.
func asked(name, right, but string, err error) providers.Finding {
	if errors.Is(err, providers.ErrPermission) {
		return bucket.Less(name, "grant "+right+" if doctor is to say", "not told (%v); %s", err, but)
	}
	return bucket.Less(name, "nothing, unless that is new", "the service does not say (%v); %s", err, but)
}

func (s *store) examineVersioning(ctx context.Context) providers.Finding {
	out, err := call(ctx, s, s.client.GetBucketVersioning, &s3.GetBucketVersioningInput{Bucket: &s.config.Bucket}, nil)
	switch {
	case err != nil:
		return asked("versioning", "s3:GetBucketVersioning", "a mount needs none", err)
	case out.Status == types.BucketVersioningStatusEnabled:
		return bucket.Good("versioning", "on: the bucket keeps, and charges for, what is overwritten or deleted, until a rule of its lifecycle ends it")
	}
	return bucket.Good("versioning", "off: what is overwritten or deleted is gone there; wsmount's own history is on this machine")
}

// findings tell for each condition whether the service honours it.
func (b Probe) findings(unsafe bool) []providers.Finding {
	risk := "use a service that honours it"
	if unsafe {
		risk = "nothing, if this is the only writer: allow_unsafe_writes takes the risk"
	}
	var out []providers.Finding
	for _, c := range []struct {
		what     string
		honoured bool
		do, says string
	}{
		{"PUT with If-None-Match", b.Create, risk, "a new file may overwrite another writer's"},
		{"PUT with If-Match", b.Replace, risk, "a change may overwrite another writer's"},
		{"CompleteMultipartUpload with If-Match", b.Complete, risk, "a large file may overwrite another writer's"},
		{"CopyObject with If-None-Match", b.Copy, "nothing", "renames and changes of modes go as uploads in parts, which cost three requests more"},
		{"DELETE with If-Match", b.Delete, "nothing, unless another writes the file in the moment that it is deleted", "a deletion looks first, and then deletes"},
	} {
		if c.honoured {
			out = append(out, bucket.Good("conditions", "%s is honoured", c.what))
			continue
		}
		out = append(out, bucket.Less("conditions", c.do, "%s is not honoured: %s", c.what, c.says))
	}
	return out
}
