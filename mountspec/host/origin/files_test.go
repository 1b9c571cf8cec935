package origin

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

// Only manifests below the workspace are read, each once, and not any number.
func TestFiles(t *testing.T) {
	src := Recorded{"WORKSPACE.md": "a", ".env": "TOKEN=x", ".secrets/ci/SECRETS.md": "b", ".secrets/SECRETS.md": "c"}
	for i := range mostFiles {
		src[fmt.Sprintf("%d.POLICY.md", i)] = "p"
	}
	f := NewFiles(t.Context(), src)
	read := func(name, want string) {
		t.Helper()
		assert.Of(f.Read(name)).Equal(t, []byte(want))
	}
	read("WORKSPACE.md", "a")
	src["WORKSPACE.md"] = "changed"
	read("WORKSPACE.md", "a")
	assert.Is(t, assert.ErrOf(f.Read("CODE.md")), fs.ErrNotExist)
	for _, bad := range []string{".env", "../x.md", "/x.md", "a/../../x.md", "storage"} {
		assert.True(t, assert.ErrOf(f.Read(bad)) != nil, bad, "is read")
	}
	assert.Of(f.Dirs(".secrets", 10)).Equal(t, []string{"ci"})
	for i := range mostFiles - 1 {
		read(fmt.Sprintf("%d.POLICY.md", i), "p")
	}
	assert.Contains(t, assert.ErrOf(f.Read(fmt.Sprintf("%d.POLICY.md", mostFiles-1))).Error(), "no more than")
	read("WORKSPACE.md", "a")
}

// An origin is the storage block that a manifest at the place has, too.
func TestStorage(t *testing.T) {
	for _, c := range []struct {
		place, endpoint, auth string
		own                   bool
		provider              string // "": there is none
	}{
		{place: "github:acme/site#main", auth: "GITHUB_TOKEN", provider: mountspec.ProviderGitHub},
		{place: "s3:bucket/ws", provider: mountspec.ProviderSelfBucket},
		{place: "s3:bucket/ws", own: true, provider: mountspec.ProviderCloudBucket},
		{place: "azure:box", endpoint: "https://acme.blob.core.windows.net", auth: "org/acme/box", provider: mountspec.ProviderSelfBucket},
		{place: "github:acme/site", auth: "org/acme/token"},
		{place: "github:acme/site", endpoint: "https://git.acme.test"},
		{place: "s3:bucket/../x"},
		{place: "gcs:bucket", endpoint: "https://u:p@x.test"},
		{place: "github:acme/site#a..b"},
	} {
		p := assert.Of(ParsePlace(c.place)).OK(t)
		st, err := Origin{Place: p, Endpoint: c.endpoint, Auth: c.auth}.Storage(c.own, mountspec.Options{})
		assert.Equal(t, err == nil, c.provider != "", c.place, err)
		if err == nil {
			assert.Equal(t, st.Provider, c.provider, c.place)
		}
	}
}
