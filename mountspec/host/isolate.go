package host

import (
	"fmt"
	"maps"
	"slices"

	"github.com/wsmount/wsmount/mountspec"
)

// isolate gives a workspace that uses a storage policy of others a prefix of its own in
// the bucket: that of the policy, and its address (AIP-35: a shared policy "isolates each
// workspace under its own prefix when referenced from WORKSPACE.md"). All later users of
// the place - the grants, the overlap check, the fingerprint and the provider - find it in
// the config. A storage that is not in a bucket has no prefix and stays.
func (s *session) isolate(l *loaded, ref mountspec.Ref, path string) {
	if slug, shared := s.shared(ref, path); shared {
		s.step("prefix", "that of the policy: "+slug+" has per_workspace: false in the host configuration")
		return
	}
	own := l.ws.ID.Owner + "/" + l.ws.ID.Slug + "/"
	var prefix string
	switch c := l.storage.Config.(type) {
	case mountspec.CloudBucketConfig:
		c.Prefix += own
		l.storage.Config, prefix = c, c.Prefix
	case mountspec.SelfBucketConfig:
		c.Prefix += own
		l.storage.Config, prefix = c, c.Prefix
	case mountspec.MastraS3Config:
		c.Prefix += own
		l.storage.Config, prefix = c, c.Prefix
	case mountspec.MastraAzureConfig:
		c.Prefix += own
		l.storage.Config, prefix = c, c.Prefix
	default:
		return
	}
	s.step("prefix", fmt.Sprintf("%s, since the policy is %s's and this is %s", prefix, l.storageAt.addr, l.ws.ID))
}

// shared reports whether the host keeps all workspaces of a policy in one place, and
// the slug of that setting: that of the reference, or one of the same file.
func (s *session) shared(ref mountspec.Ref, path string) (slug string, shared bool) {
	if e, ok := s.r.cfg.Storages[ref.Value]; ok && ref.Kind == mountspec.RefSlug {
		return ref.Value, e.Shared
	}
	for _, slug := range slices.Sorted(maps.Keys(s.r.cfg.Storages)) {
		if e := s.r.cfg.Storages[slug]; e.Shared && samePlace(e.Path, path) {
			return slug, true
		}
	}
	return "", false
}
