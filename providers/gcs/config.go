package gcs

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Kind is what a configuration calls this service.
const Kind = "gcs"

// traits are what the service is like, as it documents its limits. Of the metadata, room
// is left for a header that it does not have.
var traits = bucket.Service{
	Name: Kind, Missing: noBucket, Tells: true, TellsDirs: true, ListAfter: true, Lines: true,
	Words: bucket.Words{Dates: true, Google: true, Link: bucket.GoogLink, Target: bucket.GcsfuseTarget},
	Key:   1 << 10, Metadata: 7 << 10, Put: 5 << 30, Copy: 5 << 40, Size: 5 << 40,
	Parts: providers.PartLimits{Max: 5 << 30, Count: 10_000},
}

// keys are what a configuration may say. A region says nothing of a bucket, whose name is
// the only one in the world.
var keys = []string{"kind", "bucket", "prefix", "endpoint", "region", "credentials"}

// Drivers opens buckets under AIP-35's names for them.
func Drivers() []providers.Driver {
	return []providers.Driver{
		bucket.Driver(traits, "cloud-bucket", "a place in the host's bucket service, Google Cloud Storage", keys, openSettings),
		bucket.Driver(traits, "self-bucket", "a bucket of the workspace's owner, Google Cloud Storage", keys, openSettings),
	}
}

// config is what Settings.Config says.
type config struct {
	bucket      string
	prefix      string // "" or ends in a slash
	endpoint    string
	credentials string // "", "sdk" or "none"
}

// public is where the service is.
const public = "https://storage.googleapis.com"

func parseConfig(s providers.Settings, known []string) (config, error) {
	if err := s.CheckKeys(known...); err != nil {
		return config{}, err
	}
	get := s.Config
	if kind := get["kind"]; kind != "" && kind != Kind {
		return config{}, fmt.Errorf("kind %q is not Google Cloud Storage's: %w", kind, providers.ErrUnsupported)
	}
	c := config{bucket: get["bucket"], credentials: get["credentials"]}
	if c.bucket == "" || strings.ContainsAny(c.bucket, "/?#%") {
		return config{}, bucket.Invalid("bucket %q", c.bucket)
	}
	if !slices.Contains([]string{"", "sdk", "none"}, c.credentials) {
		return config{}, bucket.Invalid("credentials %q (want sdk, none, or nothing)", c.credentials)
	}
	var err error
	if c.endpoint, err = bucket.ParseEndpoint(get["endpoint"]); err != nil {
		return config{}, err
	}
	if c.endpoint == "" {
		c.endpoint = public
	}
	if u, err := url.Parse(c.endpoint); err != nil || u.Path != "" { // uploads would go elsewhere
		return config{}, bucket.Invalid("endpoint has a path, which the service has not")
	}
	if c.prefix, err = bucket.ParsePrefix(get["prefix"]); err != nil {
		return config{}, err
	}
	return c, nil
}
