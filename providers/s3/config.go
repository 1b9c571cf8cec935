package s3

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Kind is what a configuration calls this service.
const Kind = "s3"

// traits are what S3 is like. AWS takes so much; others take no less.
var traits = bucket.Service{
	Name: Kind, Missing: "NoSuchBucket", ListAfter: true, Key: 1 << 10, Metadata: 2 << 10, Put: 5 << 30, Copy: 5 << 30, Size: 5 << 40,
	Parts: providers.PartLimits{Min: partMin, Max: 5 << 30, Count: 10_000},
}

const partMin = 5 << 20

// keys are those of every driver; mastraKeys are Mastra's own words for some
// of them, and its labels, which say nothing to a bucket.
var (
	keys = []string{"kind", "bucket", "prefix", "endpoint", "region", "path_style", "credentials", "allow_unsafe_writes"}

	mastraKeys = []string{"forcePathStyle", "readOnly", "id", "displayName", "icon", "description"}
)

// Drivers opens buckets under AIP-35's names for them.
func Drivers() []providers.Driver {
	return []providers.Driver{
		bucket.Driver(traits, "cloud-bucket", "a place in the host's bucket service, S3", keys, openSettings),
		bucket.Driver(traits, "self-bucket", "a bucket of the workspace's owner, S3", keys, openSettings),
		bucket.Driver(traits, "mastra-s3", "a bucket as Mastra's S3Filesystem is configured", append(slices.Clone(keys), mastraKeys...), openSettings),
	}
}

// config is what Settings.Config says.
type config struct {
	bucket      string
	prefix      string // "" or ends in a slash
	endpoint    string // "": AWS's own
	region      string
	pathStyle   bool
	credentials string // "", "sdk" or "none"
	unsafe      bool   // without the service's conditions, rather than not at all
}

func parseConfig(s providers.Settings, known []string) (config, error) {
	if err := s.CheckKeys(known...); err != nil {
		return config{}, err
	}
	get := s.Config
	if kind := get["kind"]; kind != "" && kind != Kind {
		return config{}, fmt.Errorf("kind %q is not S3's: %w", kind, providers.ErrUnsupported)
	}
	c := config{bucket: get["bucket"], region: get["region"], credentials: get["credentials"]}
	if c.bucket == "" || strings.ContainsAny(c.bucket, "/?#") {
		return config{}, bucket.Invalid("bucket %q", c.bucket)
	}
	if c.region == "" {
		c.region = "us-east-1" // what services without regions take
	}
	if !slices.Contains([]string{"", "sdk", "none"}, c.credentials) {
		return config{}, bucket.Invalid("credentials %q (want sdk, none, or nothing)", c.credentials)
	}
	return c.finish(get)
}

// finish parses what can be wrong in more than one way.
func (c config) finish(get map[string]string) (config, error) {
	var err error
	if c.endpoint, err = bucket.ParseEndpoint(get["endpoint"]); err != nil {
		return config{}, err
	}
	if c.prefix, err = bucket.ParsePrefix(get["prefix"]); err != nil {
		return config{}, err
	}
	style := get["path_style"]
	if style == "" {
		style = get["forcePathStyle"]
	}
	if c.pathStyle, err = bucket.ParseBool("path_style", style, c.endpoint != ""); err != nil {
		return config{}, err
	}
	c.unsafe, err = bucket.ParseBool("allow_unsafe_writes", get["allow_unsafe_writes"], false)
	return c, err
}
