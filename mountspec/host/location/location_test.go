package location

import (
	"os"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/host/ondisk"
)

// Whatever moves the bytes, or belongs to another manifest, has another
// working copy.
func TestFingerprint(t *testing.T) {
	l := Location{Provider: "self-bucket", Service: "s3", Endpoint: "https://s3.example.com", Bucket: "b", Prefix: "p/", Branch: "m"}
	const path = "/ws/WORKSPACE.md"
	seen := map[string]string{l.Fingerprint(path): "the first"}
	again := l.Fingerprint(path)
	assert.True(t, len(again) == 32 && seen[again] != "", "not stable", again)
	for name, change := range map[string]func(*Location){
		"provider": func(l *Location) { l.Provider = "mastra-s3" }, "service": func(l *Location) { l.Service = "gcs" },
		"endpoint": func(l *Location) { l.Endpoint += "x" }, "path": func(l *Location) { l.Endpoint += "/x" },
		"port": func(l *Location) { l.Endpoint += ":80" }, "scheme": func(l *Location) { l.Endpoint = "http://s3.example.com" },
		"another scheme's port": func(l *Location) { l.Endpoint = "http://s3.example.com:443" },
		"bucket":                func(l *Location) { l.Bucket += "p" },
		"prefix":                func(l *Location) { l.Prefix += "q/" }, "branch": func(l *Location) { l.Branch = "" },
		"border": func(l *Location) { l.Bucket, l.Prefix = "bp/", "" },
	} {
		m := l
		change(&m)
		fp := m.Fingerprint(path)
		assert.Equal(t, seen[fp], "", name, "the fingerprint of")
		seen[fp] = name
	}
	for _, wording := range []string{"https://s3.example.com/", "https://S3.Example.com", "HTTPS://s3.example.com:443/"} {
		m := l
		m.Endpoint = wording
		assert.Equal(t, m.Fingerprint(path), l.Fingerprint(path), "the fingerprint of", wording)
	}
	assert.Equal(t, l.Fingerprint("/ws"), l.Fingerprint(path), "the fingerprint without a manifest")
	assert.Equal(t, seen[l.Fingerprint("/other/WORKSPACE.md")], "", "another manifest has the same fingerprint")
}

func TestLocationString(t *testing.T) {
	for _, c := range []struct {
		l    Location
		want string
	}{
		{Location{Service: Dir, Prefix: "/a"}, "/a"},
		{Location{Service: Git, Endpoint: "https://github.com", Bucket: "a/b"}, "https://github.com/a/b"},
		{Location{Service: "s3", Endpoint: "https://s3.example.com/", Bucket: "b", Prefix: "p/"}, "https://s3.example.com/b/p/"},
	} {
		assert.Equal(t, c.l.String(), c.want)
	}
}

func TestOverlapsIsSymmetric(t *testing.T) {
	all := []Location{
		{Service: "s3", Endpoint: "https://s3.amazonaws.com", Bucket: "b"}, {Service: "s3", Endpoint: "https://s3.eu-west-1.amazonaws.com:443", Bucket: "b", Prefix: "x/"},
		{Service: "s3", Endpoint: "https://s3.example.com", Bucket: "b"}, {Service: "gcs", Endpoint: "https://s3.example.com", Bucket: "b"},
		{Service: Dir, Prefix: "/"}, {Service: Dir, Prefix: "/a"}, {Service: Git, Bucket: "a/b"}, {Service: Git, Bucket: "a/b", Branch: "x"},
		{Service: Raw, Prefix: "{}"},
	}
	for _, l := range all {
		assert.True(t, l.Overlaps(l), l, "does not overlap itself")
		for _, m := range all {
			assert.Equal(t, l.Overlaps(m), m.Overlaps(l), l, "and", m, "disagree")
		}
	}
}

// Of many places the same two share bytes as of each two alone.
func TestSharing(t *testing.T) {
	dir := t.TempDir()
	assert.OK(t, os.MkdirAll(dir+"/a/b", 0o755))
	assert.OK(t, os.Symlink("a/b", dir+"/link"))
	all := []Location{{}, {Service: Dir, Prefix: dir + "/a"}, {Service: Dir, Prefix: dir + "/a/b/c"}, {Service: Dir, Prefix: dir + "/link"}, {Service: Dir, Prefix: dir + "/ab"},
		{Service: "s3", Bucket: "b", Prefix: "p/"}, {Service: "s3", Bucket: "b", Prefix: "p/q"}, {Service: "s3", Bucket: "b", Prefix: "pq"}, {Service: "gcs", Bucket: "b"}, {Service: "s3", Bucket: "b"},
		{Service: Git, Bucket: "A/b", Branch: "x"}, {Service: Git, Bucket: "a/b"}, {Service: Git, Bucket: "a/b", Branch: "y"}, {Service: Raw, Prefix: "{}"}, {Service: Raw, Prefix: "{}"}}
	got := map[[2]int]bool{}
	Sharing(all, ondisk.New(), func(i, j int) { got[[2]int{i, j}] = true })
	for i := range all {
		for j := i + 1; j < len(all); j++ {
			assert.Equal(t, got[[2]int{i, j}], all[i].Service != "" && all[i].SharesBytes(all[j], ondisk.New()), all[i], "and", all[j])
		}
	}
	assert.True(t, got[[2]int{2, 3}], "a link leads away")
}
