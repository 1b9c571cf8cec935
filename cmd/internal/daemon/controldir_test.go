package daemon

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/integration/assert"
)

func TestControlDir(t *testing.T) {
	p := &part{Source: Source{Name: "@acme/a", Provider: "local-fs"}}
	c := &controlDir{p, func(p *part) control.Part { return p.status(nil, 7) }, hiding(nil)}
	harmless := ""
	for _, name := range c.List() {
		if c.Harmless(name) {
			harmless += name + " "
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		assert.Is(t, assert.ErrOf(c.Read(name)), nil, name, "is listed and cannot be read")
	}
	assert.Equal(t, harmless, "README status.json errors.log ", "what is shown although the part is closed")
	var got control.Part
	if b, err := c.Read("status.json"); err != nil || json.Unmarshal(b, &got) != nil || got.Refused != 7 || got.Provider != "local-fs" {
		t.Errorf("status.json: %+v, %v", got, err)
	}
	if _, err := c.Read("other"); err == nil {
		t.Error("what is not listed can be read")
	}
}

// Who is in a sandbox learns which file it is about, and not where it lies.
func TestPlacesAreHidden(t *testing.T) {
	hide := hiding([]string{"/srv/a", "/srv/a/b \"c\"", "/srv/<d>", "/", "", "/srv/a"})
	for text, want := range map[string]string{
		"read_only in /srv/a/WORKSPACE.md:3": "read_only in WORKSPACE.md:3",
		`open /srv/a/b "c"/f: no space`:      "open f: no space",
		`{"error":"/srv/a/b \"c\"/f"}`:       `{"error":"f"}`,
		`{"error":"/srv/\u003cd\u003e/f"}`:   `{"error":"f"}`,
		"/srv/a is full; /docs/a is not":     "a directory of the host is full; /docs/a is not",
	} {
		assert.Equal(t, hide.Replace(text), want, text)
	}
}
