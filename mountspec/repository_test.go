package mountspec

import (
	"strings"
	"testing"
)

// Who writes the URL of a clone hears where the server is named instead.
func TestRepositoryIsNoURL(t *testing.T) {
	for _, repo := range []string{"git@git.acme.test:acme/site", "ssh://git@git.acme.test/acme/site", "https://git.acme.test/acme/site"} {
		_, findings := ParseStorage(Source{"S.md", []byte("---\nprovider: github\nconfig: { repo: \"" + repo + "\" }\nsync: { mode: pull-push }\n---\n")}, Options{})
		if err := findings.Err(); err == nil || !strings.Contains(err.Error(), "providers.github.base_url") {
			t.Errorf("%s: %v", repo, err)
		}
	}
}
