package s3

import (
	"cmp"
	"slices"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Kind is what a configuration calls this service.
const Kind = "s3"

// traits are what S3 is like. AWS takes so much; others take no less.
var traits = bucket.Service{
	Name: Kind, People: "S3", Missing: "NoSuchBucket", ListAfter: true, Key: 1 << 10, Metadata: 2 << 10, Put: 5 << 30, Copy: 5 << 30, Size: 5 << 40,
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
		bucket.Driver(traits, "cloud-bucket", "a place in the host's bucket service, S3", keys, connect),
		bucket.Driver(traits, "self-bucket", "a bucket of the workspace's owner, S3", keys, connect),
		bucket.Driver(traits, "mastra-s3", "a bucket as Mastra's S3Filesystem is configured", append(slices.Clone(keys), mastraKeys...), connect),
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

func parseConfig(s providers.Settings, known []string) (config, bucket.Place, error) {
	at, err := traits.Place(s, known)
	if err != nil {
		return config{}, at, err
	}
	get := s.Config
	// Services without regions take the first.
	c := config{bucket: at.Bucket, prefix: at.Prefix, endpoint: at.Endpoint, credentials: at.Credentials, region: cmp.Or(get["region"], "us-east-1")}
	style := cmp.Or(get["path_style"], get["forcePathStyle"])
	if c.pathStyle, err = bucket.ParseBool("path_style", style, c.endpoint != ""); err != nil {
		return config{}, at, err
	}
	c.unsafe, err = bucket.ParseBool("allow_unsafe_writes", get["allow_unsafe_writes"], false)
	return c, at, err
}
