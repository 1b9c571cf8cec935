package azure

import (
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Names of metadata are identifiers of C#: letters, digits and "_", and no digit first. Other
// characters are written as escapes. "_" is too, where it would else begin one: so names by
// other programs are read unchanged, and written back so.
const (
	escapeDash  = "_2d"
	escapeDot   = "_2e"
	escapeLine  = "_5f"
	escapeDigit = "_3" // and the digit, at the beginning alone
)

// escaped is the length and meaning of an escape at the start of s; first: of a name.
func escaped(s string, first bool) (size int, plain string) {
	for escape, plain := range map[string]string{escapeDash: "-", escapeDot: ".", escapeLine: "_"} {
		if strings.HasPrefix(s, escape) {
			return len(escape), plain
		}
	}
	if rest, ok := strings.CutPrefix(s, escapeDigit); ok && first && rest != "" && isDigit(rest[0]) {
		return len(escapeDigit) + 1, rest[:1]
	}
	return 0, ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// encodeName is a name of metadata in the service's form.
func encodeName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		size, _ := escaped(name[i:], i == 0)
		switch c := name[i]; {
		case size > 0:
			b.WriteString(escapeLine)
		case c == '-':
			b.WriteString(escapeDash)
		case c == '.':
			b.WriteString(escapeDot)
		case i == 0 && isDigit(c):
			b.WriteString(escapeDigit + name[:1])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// decodeName is the opposite. The service keeps no case.
func decodeName(name string) string {
	name = strings.ToLower(name)
	var b strings.Builder
	for i := 0; i < len(name); {
		size, plain := escaped(name[i:], i == 0)
		if size == 0 {
			size, plain = 1, name[i:i+1]
		}
		b.WriteString(plain)
		i += size
	}
	return b.String()
}

const (
	// expires is the metadata name for the header Expires, which blobs do not have.
	expires = "wsmount-expires"
	// folder marks a blob as a directory.
	folder = "hdi_isfolder"
)

// metadata is the metadata with which a blob is made.
func metadata(m bucket.Making) map[string]*string {
	out := make(map[string]*string, len(m.Metadata)+1)
	for name, value := range m.Metadata {
		out[encodeName(name)] = &value
	}
	if m.Headers.Expires != "" {
		out[encodeName(expires)] = &m.Headers.Expires
	}
	return out
}

// readMetadata are the metadata of a blob by their own names, its Expires apart from them, and
// whether it is a directory.
func readMetadata(raw map[string]*string) (out map[string]string, expiry string, isFolder bool) {
	out = make(map[string]string, len(raw))
	for name, value := range raw {
		switch name = decodeName(name); {
		case value == nil:
		case name == expires:
			expiry = *value
		case name == folder:
			isFolder = strings.EqualFold(*value, "true")
		default:
			out[name] = *value
		}
	}
	return out, expiry, isFolder
}

// plainType is the type of block blobs; versions of others begin with their type.
const plainType = "BlockBlob"

// version is the ETag of a blob as package bucket knows it.
func version(etag, blobType string) string {
	etag = strings.Trim(etag, `"`)
	if blobType == "" || blobType == plainType {
		return etag
	}
	return blobType + ":" + etag
}

// etagOf is the ETag in a version, quoted, and the type if it is no block blob's.
func etagOf(version string) (etag, blobType string) {
	if before, after, ok := strings.Cut(version, ":"); ok && strings.HasSuffix(before, "Blob") {
		blobType, version = before, after
	}
	return `"` + version + `"`, blobType
}

// possible refuses a condition that no blob can meet, which a caller uses to resolve the
// outcome of a lost answer. The service might reject such an ETag as malformed.
func possible(c providers.Condition) error {
	if etag, _ := etagOf(c.Version.ETag); c.Kind == providers.ConditionVersion && strings.ContainsAny(etag, " :") {
		return &bucket.Fault{Kind: providers.ErrConflict, Err: words("no blob has this version")}
	}
	return nil
}

// replaceable refuses to write over content that is not written as a whole.
func replaceable(c providers.Condition) error {
	if _, blobType := etagOf(c.Version.ETag); c.Kind == providers.ConditionVersion && blobType != "" {
		return &bucket.Fault{Kind: providers.ErrUnsupported, Err: words("the blob is a " + blobType + ", whose content is not written as a whole")}
	}
	return possible(c)
}

// words are an error made by this package.
type words string

func (e words) Error() string { return string(e) }
