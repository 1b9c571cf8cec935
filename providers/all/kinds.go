package all

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/azure"
	"github.com/wsmount/wsmount/providers/gcs"
	"github.com/wsmount/wsmount/providers/s3"
)

// services are those of buckets, by their kind in a configuration. Each has drivers
// of its own, and those that open a bucket of the configured kind.
var services = map[string]func() []providers.Driver{
	s3.Kind:    s3.Drivers,
	azure.Kind: azure.Drivers,
	gcs.Kind:   gcs.Drivers,
}

// buckets are the drivers of all services. Those of one name are one.
func buckets() []providers.Driver {
	named := map[string]map[string]providers.Driver{}
	for kind, drivers := range services {
		for _, d := range drivers() {
			if named[d.Name] == nil {
				named[d.Name] = map[string]providers.Driver{}
			}
			named[d.Name][kind] = d
		}
	}
	var all []providers.Driver
	for _, kinds := range named {
		all = append(all, byKind(kinds))
	}
	return all
}

// byKind is one driver of several, which are opened by the kind that a configuration says;
// s3 if it says none.
func byKind(kinds map[string]providers.Driver) providers.Driver {
	names := slices.Sorted(maps.Keys(kinds))
	if len(names) == 1 {
		return kinds[names[0]]
	}
	one := providers.Driver{Name: kinds[names[0]].Name, Promises: kinds[names[0]].Promises}
	var texts []string
	for _, kind := range names {
		d := kinds[kind]
		texts = append(texts, d.Text)
		one.Promises = best(one.Promises, d.Promises)
		one.Keys = append(one.Keys, d.Keys...)
	}
	one.Text = strings.Join(texts, ", or ")
	slices.Sort(one.Keys)
	one.Keys = slices.Compact(one.Keys)
	one.Open = func(ctx context.Context, s providers.Settings) (providers.Provider, error) {
		kind := s.Config["kind"]
		if kind == "" {
			kind = s3.Kind
		}
		d, ok := kinds[kind]
		if !ok {
			return nil, fmt.Errorf("%s of kind %q is not built in, only %s: %w", one.Name, kind, strings.Join(names, ", "), providers.ErrUnsupported)
		}
		return d.Open(ctx, s)
	}
	return one
}

// best combines the promises of two drivers. Services of buckets differ in how listings go on
// and in sizes; the real promises are those of the opened provider.
func best(a, b providers.Capabilities) providers.Capabilities {
	a.ListAfter = a.ListAfter || b.ListAfter
	a.ListComplete = a.ListComplete || b.ListComplete
	if b.MaxSize > a.MaxSize {
		a.MaxSize, a.Parts = b.MaxSize, b.Parts
	}
	return a
}
