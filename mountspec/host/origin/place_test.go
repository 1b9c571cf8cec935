package origin

import (
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]Place{
		"github:acme/site":          {Kind: GitHub, Owner: "acme", Repo: "site"},
		"github:acme/site#fix/a":    {Kind: GitHub, Owner: "acme", Repo: "site", Branch: "fix/a"},
		"s3:bucket":                 {Kind: "s3", Bucket: "bucket"},
		"azure:box/team/ws":         {Kind: "azure", Bucket: "box", Prefix: "team/ws"},
		"gcs:bucket/a#b":            {Kind: "gcs", Bucket: "bucket", Prefix: "a#b"},
		"github:acme/site.with.dot": {Kind: GitHub, Owner: "acme", Repo: "site.with.dot"},
	} {
		p := assert.Of(ParsePlace(text)).OK(t)
		assert.Equal(t, p, want, text)
		assert.Equal(t, p.String(), text)
		assert.True(t, IsPlace(text), text)
	}
	for _, bad := range []string{"", "github:", "github:acme", "github:/site", "github:acme/", "github:acme/site#", "s3:", "s3:/x", "ftp:x/y", "/srv/x", "./s3:x"} {
		p, err := ParsePlace(bad)
		assert.True(t, err != nil, bad, "is", p)
	}
	for _, path := range []string{"./s3:x", "/srv/s3:x", "notes", "https://github.com/acme/site", ""} {
		assert.False(t, IsPlace(path), path)
	}
}

func TestAtServer(t *testing.T) {
	const server = "https://git.acme.test/git"
	p := assert.Of(AtServer(server, server+"/acme/site.git#main")).OK(t)
	assert.Equal(t, p.String(), "github:acme/site#main")
	for _, bad := range []string{server, server + "/acme", server + "/acme/site/more", server + "/acme/site#", "https://git.acme.test/gitother/acme/site",
		"https://evil.test/git/acme/site", "https://u:hunter2@git.acme.test/git/acme/site"} {
		_, err := AtServer(server, bad)
		assert.True(t, err != nil, bad)
		assert.False(t, strings.Contains(err.Error(), "hunter2"), err)
	}
	p = assert.Of(AtServer("ssh://git@git.acme.test/~", "git@git.acme.test:acme/site.git")).OK(t)
	assert.Equal(t, p.String(), "github:acme/site")
}
