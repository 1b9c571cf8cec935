package providers

import (
	"maps"
	"strings"
)

// HeaderMetadata begins the names of metadata that are HTTP headers of an object, as
// in "header:content-type". A store that serves its entries over HTTP tells them, and
// takes them with Write, Copy and SetAttr like any metadata; a value that it cannot
// take is left out.
const HeaderMetadata = "header:"

// encodingHeader says how the content is encoded, which is true of that content only.
const encodingHeader = HeaderMetadata + "content-encoding"

// MetadataOfNew is the metadata of an entry for other content than it had: all but
// what was true of the old bytes only. It gives m itself where that is nothing.
func MetadataOfNew(m map[string]string) map[string]string {
	if _, encoded := m[encodingHeader]; !encoded {
		return m
	}
	m = maps.Clone(m)
	delete(m, encodingHeader)
	return m
}

// MetadataInPlaceOf is the metadata of an entry that takes the place of another, as
// when a program saves to a new file and renames it: without headers of its own it is
// served as the other was. It gives m itself where nothing is inherited.
func MetadataInPlaceOf(m, other map[string]string) map[string]string {
	for name := range m {
		if strings.HasPrefix(name, HeaderMetadata) {
			return m
		}
	}
	all := maps.Clone(m)
	for name, value := range MetadataOfNew(other) {
		if !strings.HasPrefix(name, HeaderMetadata) {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = value
	}
	return all
}
