package gcs

import (
	"cmp"
	"net/url"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Kind is what a configuration calls this service.
const Kind = "gcs"

// traits are what the service is like, as it documents its limits. Of the metadata, room
// is left for a header that it does not have.
var traits = bucket.Service{
	Name: Kind, People: people, Missing: noBucket, Tells: true, TellsDirs: true, ListAfter: true, Lines: true,
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
		bucket.Driver(traits, "cloud-bucket", "a place in the host's bucket service, Google Cloud Storage", keys, connect),
		bucket.Driver(traits, "self-bucket", "a bucket of the workspace's owner, Google Cloud Storage", keys, connect),
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

func parseConfig(s providers.Settings, known []string) (config, bucket.Place, error) {
	at, err := traits.Place(s, known)
	if err != nil {
		return config{}, at, err
	}
	c := config{bucket: at.Bucket, prefix: at.Prefix, endpoint: cmp.Or(at.Endpoint, public), credentials: at.Credentials}
	if u, err := url.Parse(c.endpoint); err != nil || u.Path != "" { // uploads would go elsewhere
		return config{}, at, bucket.Invalid("endpoint has a path, which the service has not")
	}
	return c, at, nil
}
