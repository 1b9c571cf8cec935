package conceal

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// Who is in a sandbox learns which file it is about, and not where it lies.
func TestPlacesAreHidden(t *testing.T) {
	hide := Places("/srv/a/mnt", []string{"/srv/a", "/srv/a/b \"c\"", "/srv/<d>", "/", "", "/srv/a", "/srv/a/mnt", "http://10.1.2.3:9000/", "http://host"})
	for text, want := range map[string]string{
		"read_only in /srv/a/WORKSPACE.md:3": "read_only in WORKSPACE.md:3",
		`open /srv/a/b "c"/f: no space`:      "open f: no space",
		`{"error":"/srv/a/b \"c\"/f"}`:       `{"error":"f"}`,
		`{"error":"/srv/\u003cd\u003e/f"}`:   `{"error":"f"}`,
		"/srv/a is full; /docs/a is not":     "a directory of the host is full; /docs/a is not",
		"wsmount status /srv/a/mnt":          "wsmount status /srv/a/mnt",

		`Put "http://10.1.2.3:9000/notes/f": dial tcp 10.1.2.3:9000: refused`: `Put "the store/notes/f": dial tcp the store: refused`,
		"http://host/f is on the host":                                        "the store/f is on the host",
	} {
		assert.Equal(t, hide.Replace(text), want, text)
	}
}
