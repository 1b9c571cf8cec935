package daemon

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cmd/internal/conceal"
	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/integration/assert"
)

func TestControlDir(t *testing.T) {
	p := &part{Source: Source{Name: "@acme/a", Provider: "local-fs", ReadOnly: "read_only in /srv/a/WORKSPACE.md:3",
		Store: &control.Store{Endpoint: "http://s3.acme.test", Bucket: "notes"}}, inside: []*part{{Source: Source{Name: "@acme/lib", At: "lib"}}}}
	c := &controlDir{p, func(p *part) control.Part { return p.status(nil, 7) }, conceal.Places("", []string{"/srv/a"})}
	harmless, says := "", ""
	for _, name := range c.List() {
		if c.Harmless(name) {
			harmless += name + " "
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		b, err := c.Read(name)
		assert.Is(t, err, nil, name, "is listed and cannot be read")
		says += string(b)
	}
	if !strings.Contains(says, "read_only in WORKSPACE.md:3") || strings.Contains(says, "/srv/a") || strings.Contains(says, "s3.acme.test") || !strings.Contains(says, `"workspace": "@acme/lib"`) {
		t.Errorf("places of the host are hidden, and nothing else: %s", says)
	}
	assert.Equal(t, harmless, "README status.json errors.log ", "what is shown although the part is closed")
	var got control.Part
	b, err := c.Read("status.json")
	assert.True(t, err == nil && json.Unmarshal(b, &got) == nil && got.Refused == 7 && got.Provider == "local-fs", "status.json:", got, err)
	assert.True(t, assert.ErrOf(c.Read("other")) != nil, "what is not listed can be read")
}
