package needle

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// Forms are the encodings of a value: as it is, as in JSON and in URLs, and in base64 at each
// alignment, without line breaks.
func Forms(value string) []string {
	quoted, _ := json.Marshal(value) // a string always can be
	forms := []string{value, strings.Trim(string(quoted), `"`), url.QueryEscape(value), url.PathEscape(value)}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			forms = append(forms, inBase64(enc, value, before))
		}
	}
	return forms
}

// inBase64 is the base64 of a value that follows so many bytes, without the characters that
// hold bits of its neighbours.
func inBase64(enc *base64.Encoding, value string, before int) string {
	text := enc.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
	first := (before*8 + 5) / 6
	last := (before + len(value)) * 8 / 6
	return text[first:last]
}
