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
	Name: Kind, People: people, Missing: noBucket, Tells: true, TellsDirs: true, ListStart: bucket.BehindKey, Lines: true,
	Words: bucket.Words{Dates: true, Google: true, Link: bucket.GoogLink, Target: bucket.GcsfuseTarget},
	Key:   1 << 10, Metadata: 7 << 10, Put: 5 << 30, Copy: 5 << 40, Size: 5 << 40,
	Parts: providers.PartLimits{Max: 5 << 30, Count: 10_000},
}

// Drivers opens buckets under AIP-35's names for them.
func Drivers() []providers.Driver { return bucket.Drivers(traits, connect) }

// public is where the service is.
const public = "https://storage.googleapis.com"

// parseConfig is the place, of which the service needs no more: a region says nothing of a
// bucket, whose name is the only one in the world.
func parseConfig(at bucket.Place) (bucket.Place, error) {
	at.Endpoint = cmp.Or(at.Endpoint, public)
	if u, err := url.Parse(at.Endpoint); err != nil || u.Path != "" { // uploads would go elsewhere
		return bucket.Place{}, bucket.Invalid("endpoint has a path, which the service has not")
	}
	return at, nil
}
