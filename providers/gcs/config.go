package gcs

import (
	"cmp"
	"net/url"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Kind is the name of this service in a configuration.
const Kind = "gcs"

// traits are the documented limits of the service. The metadata leave room for a header that it
// does not have.
var traits = bucket.Service{
	Name: Kind, People: people, Missing: noBucket, Tells: true, TellsDirs: true, ListStart: bucket.BehindKey, Lines: true,
	Words: bucket.Words{Dates: true, Google: true, Link: bucket.GoogLink, Target: bucket.GcsfuseTarget},
	Key:   1 << 10, Metadata: 7 << 10, Put: 5 << 30, Copy: 5 << 40, Size: 5 << 40,
	Parts: providers.PartLimits{Max: 5 << 30, Count: 10_000},
}

// Drivers opens buckets under AIP-35's names for them.
func Drivers() []providers.Driver { return bucket.Drivers(traits, connect) }

// public is the service's endpoint.
const public = "https://storage.googleapis.com"

// parseConfig is the place, checked; the service needs no more: a bucket's name is unique in
// the world, without a region.
func parseConfig(at bucket.Place) (bucket.Place, error) {
	at.Endpoint = cmp.Or(at.Endpoint, public)
	if u, err := url.Parse(at.Endpoint); err != nil || u.Path != "" { // uploads would go to another path
		return bucket.Place{}, bucket.Invalid("endpoint has a path, which the service has not")
	}
	return at, nil
}
