package git

import (
	"errors"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// What a server's URL may be: the API of one is reached over HTTP alone.
func TestServerURLs(t *testing.T) {
	for _, c := range []struct {
		text      string
		base, api bool
	}{
		{"https://git.acme.test/", true, true},
		{"http://127.0.0.1:3000", true, true},
		{"ssh://git@git.acme.test:22/srv", true, false},
		{"git://git.acme.test:9418/srv", true, false},
		{"https://ann@git.acme.test", false, false},
		{"ssh://ann:s3cret@git.acme.test", false, false},
		{"git://ann@git.acme.test", false, false},
		{"git://ann:s3cret@git.acme.test", false, false},
		{"git://git.acme.test?s3cret", false, false},
		{"git://git.acme.test#s3cret", false, false},
		{"git:///srv", false, false},
		{"git:git.acme.test", false, false},
		{"ftp://git.acme.test", false, false},
		{"file:///srv/git", false, false},
	} {
		for key, good := range map[string]bool{"base_url": c.base, "api_url": c.api} {
			got, err := serverURL(key, c.text, key == "base_url")
			assert.True(t, (err == nil) == good && (!good || got == strings.TrimRight(c.text, "/")), key, c.text, got, err)
			assert.False(t, err != nil && (!errors.Is(err, providers.ErrInvalid) || strings.Contains(err.Error(), "s3cret")), key, c.text, err)
		}
	}
}
