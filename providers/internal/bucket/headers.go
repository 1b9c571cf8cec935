package bucket

import (
	"maps"
	"net/http"
	"path"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// The standard headers of an object say how it is served: its type, for how long it is cached,
// under which name it is saved; two more are its storage class and its tags. A service keeps them
// beside the metadata, and may write them anew, or not at all, with every change of an object. In
// wsmount they are metadata under names of their own (providers.HeaderMetadata), so that a
// program that carries the metadata of an object carries its headers too.

// Headers are the standard ones as requests and answers have them; "" is none.
type Headers struct {
	ContentType, CacheControl, ContentDisposition, ContentEncoding, ContentLanguage string

	Expires string // a time as HTTP writes it, or whatever else the object has

	// StorageClass is the service's word for the storage of the object, if it is not the bucket's
	// usual one, and its content can be read there at once.
	StorageClass string
	// Tags are names and values of the object's tags, as the query of a URL has them.
	Tags string
}

// fields are the headers by the rest of their names.
func (h *Headers) fields() map[string]*string {
	return map[string]*string{
		"content-type": &h.ContentType, "cache-control": &h.CacheControl, "content-disposition": &h.ContentDisposition,
		"content-encoding": &h.ContentEncoding, "content-language": &h.ContentLanguage, "expires": &h.Expires,
		"storage-class": &h.StorageClass, "tagging": &h.Tags,
	}
}

// headerMax is the longest value that is sent: a request has 8 KiB for its headers,
// of which metadata may need 2.
const headerMax = 800

// isHeader reports whether a name of metadata stands for a header.
func isHeader(name string) bool {
	rest, ok := strings.CutPrefix(name, providers.HeaderMetadata)
	return ok && (&Headers{}).fields()[rest] != nil
}

// canSend reports whether a request can have a header with this value. Other programs leave
// values that cannot be written again, such as "Expires: 0": a write goes without them rather
// than failing.
func canSend(name, value string) bool {
	if name == "expires" {
		if _, err := http.ParseTime(value); err != nil {
			return false
		}
	}
	return value != "" && len(value) <= headerMax && value == strings.TrimSpace(value) &&
		strings.IndexFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) < 0
}

// headers are those that an object of a key is written with.
func (m *meta) headers(key string) Headers {
	var h Headers
	for name, field := range h.fields() {
		if value := m.user[providers.HeaderMetadata+name]; canSend(name, value) {
			*field = value
		}
	}
	if h.ContentType == "" {
		h.ContentType = m.usualType(key)
	}
	return h
}

// takeHeaders adds the headers that an object of a key has to the metadata.
func (m *meta) takeHeaders(key string, h Headers) {
	h.ContentEncoding = storedEncoding(h.ContentEncoding)
	if m.saysNothing(key, h.ContentType) {
		h.ContentType = ""
	}
	user := maps.Clone(m.user)
	if user == nil {
		user = map[string]string{}
	}
	for name, field := range h.fields() {
		if value := *field; value != "" {
			user[providers.HeaderMetadata+name] = value
		}
	}
	if len(user) > 0 {
		m.user = user
	}
}

// storedEncoding is a Content-Encoding without that of the transfer (aws-chunked), which some
// services keep.
func storedEncoding(value string) string {
	var kept []string
	for one := range strings.SplitSeq(value, ",") {
		if one = strings.TrimSpace(one); one != "" && !strings.EqualFold(one, "aws-chunked") {
			kept = append(kept, one)
		}
	}
	return strings.Join(kept, ", ")
}

// dirType is the content type of markers.
const dirType = "application/x-directory"

// saysNothing reports whether a type is the service's default for an object without one. Where
// the name would give another type, this one was chosen.
func (m *meta) saysNothing(key, contentType string) bool {
	switch contentType {
	case dirType:
		return strings.HasSuffix(key, "/")
	case "application/octet-stream", "binary/octet-stream":
		usual := m.usualType(key)
		return usual == "" || usual == dirType
	}
	return false
}

// usualType is the type of an object of a key that was given none, or "" where its
// name says nothing.
func (m *meta) usualType(key string) string {
	switch {
	case strings.HasSuffix(key, "/"):
		return dirType
	case m.kind != providers.KindFile:
		return ""
	}
	return typesByEnding[strings.ToLower(path.Ext(key))]
}

// isUsual reports whether the metadata are no more than the type that the name gives.
func (m *meta) isUsual(key string) bool {
	usual := m.usualType(key)
	return usual != "" && len(m.user) == 1 && m.user[providers.HeaderMetadata+"content-type"] == usual
}

// usualMetadata are those of a file that has no more than the type that its name gives.
func usualMetadata(key string) map[string]string {
	m := meta{kind: providers.KindFile}
	return map[string]string{providers.HeaderMetadata + "content-type": m.usualType(key)}
}

// written is m as a later read of the written object would tell it.
func (m meta) written(key string) meta {
	h := m.headers(key)
	m.user = maps.Clone(m.user)
	maps.DeleteFunc(m.user, func(name, _ string) bool { return isHeader(name) })
	m.takeHeaders(key, h)
	return m
}
