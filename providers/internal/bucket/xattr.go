package bucket

import (
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Extended attributes are in metadata as s3fs has them: a JSON object of names and values in
// base64, percent-encoded. s3fs writes names as they are; wsmount writes a backslash before a
// quote or a backslash in a name, and reads both forms.

func encodeXattrs(all map[string][]byte) string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + xattrEscaper.Replace(name) + `":"` + base64.StdEncoding.EncodeToString(all[name]) + `"`)
	}
	return escapeXattrs("{" + b.String() + "}")
}

var xattrEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// escapeXattrs is s3fs's percent-encoding, which leaves slashes.
func escapeXattrs(s string) string {
	s = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	return strings.ReplaceAll(s, "%2F", "/")
}

// decodeXattrs reads the values of s3fs and encodeXattrs. Others are reported as not ok, and stay
// plain metadata.
func decodeXattrs(s string) (map[string][]byte, bool) {
	text, err := url.PathUnescape(s)
	text = strings.TrimSpace(text)
	if err != nil || len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, false
	}
	all := map[string][]byte{}
	for rest := text[1 : len(text)-1]; rest != ""; {
		name, after, ok := cutXattrName(rest)
		if !ok {
			return nil, false
		}
		coded, after, ok := strings.Cut(after, `"`)
		value, err := base64.StdEncoding.DecodeString(coded)
		if !ok || err != nil {
			return nil, false
		}
		all[name] = value
		if rest, ok = strings.CutPrefix(after, ","); ok == (rest == "") {
			return nil, false
		}
	}
	return all, true
}

// cutXattrName cuts off a name, and the text between it and its value.
func cutXattrName(s string) (name, after string, ok bool) {
	s, ok = strings.CutPrefix(s, `"`)
	if !ok {
		return "", "", false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
		case strings.HasPrefix(s[i:], `":"`):
			return b.String(), s[i+len(`":"`):], b.Len() > 0
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// longest are attributes and an operation id that take as much room as any can, so that metadata
// which fit beside them fit for good.
var longest = meta{
	kind: providers.KindSymlink, op: strings.Repeat("x", 64),
	attr: providers.Attr{
		Valid: providers.AttrMode | providers.AttrOwner | providers.AttrModTime,
		Mode:  0o7777, UID: ^uint32(0), GID: ^uint32(0), ModTime: time.Unix(-1e10, 1),
	},
}

// Fits implements providers.AttrSetter: all metadata of an object have a limit together.
func (p *Provider) Fits(attr providers.Attr, metadata map[string]string) error {
	m := longest
	m.user = metadata
	if attr.Valid.Has(providers.AttrXattrs) {
		m.attr.Valid |= providers.AttrXattrs
		m.attr.Xattrs = attr.Xattrs
	}
	_, err := m.encode(p.service)
	return err
}
