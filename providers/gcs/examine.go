package gcs

import (
	"context"
	"errors"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Examination implements bucket.Examined.
func (s *store) Examination() bucket.Examination {
	x := bucket.Examination{Endpoint: s.config.Endpoint, Own: s.examineBucket}
	if s.config.Endpoint == public {
		x.Endpoint = people
	}
	x.Conditions = []providers.Finding{bucket.Good("conditions", "every change has the service decide, by generation and metageneration")}
	return x
}

func (s *store) examineBucket(ctx context.Context) []providers.Finding {
	got, err := ask(ctx, s, "buckets.get", s.api.Buckets.Get(s.config.Bucket), fields("kind,location,versioning,softDeletePolicy"))
	switch {
	case errors.Is(err, providers.ErrPermission):
		return []providers.Finding{bucket.Less("bucket", "grant storage.buckets.get if doctor is to say", "not told (%v); a mount needs no more than objects", err)}
	case err != nil:
		return []providers.Finding{bucket.Less("bucket", "nothing, unless that is new", "the service does not say (%v); a mount needs no more than objects", err)}
	}
	keeps := "off: what is overwritten or deleted is gone there, but for what the soft delete policy keeps; wsmount's own history is on this machine"
	if got.Versioning != nil && got.Versioning.Enabled {
		keeps = "on: the bucket keeps, and charges for, what is overwritten or deleted, until a rule of its lifecycle ends it"
	}
	out := []providers.Finding{bucket.Good("region", "%s", strings.ToLower(got.Location)), bucket.Good("versioning", "%s", keeps)}
	if soft := got.SoftDeletePolicy; soft != nil && soft.RetentionDurationSeconds > 0 {
		out = append(out, bucket.Good("soft delete", "the bucket charges for what is overwritten or deleted, parts of uploads too, for %d days more", soft.RetentionDurationSeconds/(24*60*60)))
	}
	return out
}
