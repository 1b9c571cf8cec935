package s3

import (
	"cmp"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Kind is the name of this service in a configuration.
const Kind = "s3"

// traits are the limits of S3, as AWS has them; other services accept no less.
var traits = bucket.Service{
	Name: Kind, People: "S3", Missing: "NoSuchBucket", ListStart: bucket.BehindKey, Key: 1 << 10, Metadata: 2 << 10, Put: 5 << 30, Copy: 5 << 30, Size: 5 << 40,
	Keys: []string{"path_style", "allow_unsafe_writes"}, Mastra: []string{"forcePathStyle"},
	Parts: providers.PartLimits{Min: partMin, Max: 5 << 30, Count: 10_000},
}

const partMin = 5 << 20

// Drivers opens buckets under AIP-35's names for them.
func Drivers() []providers.Driver { return bucket.Drivers(traits, connect) }

// config is the parsed Settings.Config.
type config struct {
	bucket.Place // without an endpoint it is AWS's own
	region       string
	pathStyle    bool
	unsafe       bool // write even if the service ignores conditions
}

func parseConfig(get map[string]string, at bucket.Place) (c config, err error) {
	// Services without regions accept the first.
	c = config{Place: at, region: cmp.Or(get["region"], "us-east-1")}
	style := cmp.Or(get["path_style"], get["forcePathStyle"])
	if c.pathStyle, err = bucket.ParseBool("path_style", style, c.Endpoint != ""); err != nil {
		return config{}, err
	}
	c.unsafe, err = bucket.ParseBool("allow_unsafe_writes", get["allow_unsafe_writes"], false)
	return c, err
}
