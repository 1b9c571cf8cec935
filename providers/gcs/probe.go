package gcs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Honours implements bucket.Store. The service itself behaves as documented. One at another
// endpoint is tried, since emulators know some conditions and ignore others.
func (s *store) Honours(ctx context.Context, _ bucket.Listing) (bucket.Honours, error) {
	var err error
	if !isGoogles(s.config.Endpoint) {
		err = s.probe(ctx)
	}
	return bucket.Honours{Create: true, Replace: true, Complete: true, Copy: true, Delete: true, Encodes: true}, err
}

// isGoogles reports whether an endpoint is one of the service: the public one, that of a
// region, or one in a private network.
func isGoogles(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && u.Scheme == "https" && strings.HasSuffix(u.Hostname(), ".googleapis.com")
}

const (
	probeContent = "wsmount looks which conditions this service honours\n"
	probeClean   = 10 * time.Second
)

// stale is a version that no object has.
var stale = providers.IfVersion(providers.Version{ETag: "1.1"})

// probe has each kind of change refused, with a scratch key that it removes. A service that
// does not refuse one would overwrite changes of other writers.
func (s *store) probe(ctx context.Context) error {
	key, m := s.config.Prefix+bucket.Scratch+rand.Text(), bucket.Making{If: stale}
	put := func(m bucket.Making) (bucket.Object, error) {
		return s.Put(ctx, key, bucket.NewOutgoing(ctx, providers.String(probeContent)), m)
	}
	o, err := put(bucket.Making{})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeClean)
		defer cancel()
		if err := s.deleteAll(ctx, []string{key}); err != nil {
			s.log.DebugContext(ctx, "a scratch key stays", "key", key, "error", err)
		}
	}()
	o.Key = key
	for _, one := range []struct {
		name string
		try  func() (bucket.Object, error)
	}{
		{"objects.insert", func() (bucket.Object, error) { return put(m) }},
		{"objects.patch", func() (bucket.Object, error) { return s.Patch(ctx, o, m) }},
		{"objects.rewrite", func() (bucket.Object, error) { return s.Copy(ctx, o, key, m) }},
		{"objects.compose", func() (bucket.Object, error) { return s.compose(ctx, key, []source{{key, o.ETag}}, m) }},
		{"objects.delete", func() (bucket.Object, error) { return o, s.Delete(ctx, key, stale) }},
	} {
		_, err := one.try()
		if err == nil {
			return fmt.Errorf("%s ignores %s's conditions, so a change may overwrite another writer's: %w", s.config.Endpoint, one.name, providers.ErrUnsupported)
		}
		if !errors.Is(err, providers.ErrConflict) {
			return err
		}
	}
	return nil
}
