package providers

import (
	"maps"
	"strings"
)

// HeaderMetadata is the prefix of the names of metadata that are HTTP headers of an object, as
// in "header:content-type". A store that serves its entries over HTTP reports them, and takes
// them with Write, Copy and SetAttr like any metadata; a value that it cannot store is left
// out.
const HeaderMetadata = "header:"

// encodingHeader is the encoding of the content, which holds for that content only.
const encodingHeader = HeaderMetadata + "content-encoding"

// MetadataOfNew is the metadata of an entry for new content: all but those that hold for the
// old bytes only. It is m itself where there are none of those.
func MetadataOfNew(m map[string]string) map[string]string {
	if _, encoded := m[encodingHeader]; !encoded {
		return m
	}
	m = maps.Clone(m)
	delete(m, encodingHeader)
	return m
}

// MetadataInPlaceOf is the metadata of an entry that replaces another, as when a program saves
// to a new file and renames it: without headers of its own it is served as the other was. It is
// m itself where nothing is inherited.
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
