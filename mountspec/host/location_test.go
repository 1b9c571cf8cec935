package host

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// Whatever moves the bytes, or belongs to another manifest, has another
// working copy.
func TestFingerprint(t *testing.T) {
	l := Location{Provider: "self-bucket", Service: "s3", Endpoint: "https://s3.example.com", Bucket: "b", Prefix: "p/", Branch: "m"}
	const path = "/ws/WORKSPACE.md"
	seen := map[string]string{l.Fingerprint(path): "the first"}
	if again := l.Fingerprint(path); len(again) != 32 || seen[again] == "" {
		t.Errorf("not stable: %s", again)
	}
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
		{Location{Service: ServiceDir, Prefix: "/a"}, "/a"},
		{Location{Service: ServiceGit, Endpoint: "https://github.com", Bucket: "a/b"}, "https://github.com/a/b"},
		{Location{Service: "s3", Endpoint: "https://s3.example.com/", Bucket: "b", Prefix: "p/"}, "https://s3.example.com/b/p/"},
	} {
		assert.Equal(t, c.l.String(), c.want)
	}
}

func TestOverlapsIsSymmetric(t *testing.T) {
	all := []Location{
		{Service: "s3", Endpoint: "https://s3.amazonaws.com", Bucket: "b"}, {Service: "s3", Endpoint: "https://s3.eu-west-1.amazonaws.com:443", Bucket: "b", Prefix: "x/"},
		{Service: "s3", Endpoint: "https://s3.example.com", Bucket: "b"}, {Service: "gcs", Endpoint: "https://s3.example.com", Bucket: "b"},
		{Service: ServiceDir, Prefix: "/"}, {Service: ServiceDir, Prefix: "/a"}, {Service: ServiceGit, Bucket: "a/b"}, {Service: ServiceGit, Bucket: "a/b", Branch: "x"},
		{Service: ServiceRaw, Prefix: "{}"},
	}
	for _, l := range all {
		assert.True(t, l.Overlaps(l), l, "does not overlap itself")
		for _, m := range all {
			assert.Equal(t, l.Overlaps(m), m.Overlaps(l), l, "and", m, "disagree")
		}
	}
}

// Services that are asked where they are when a manifest names no endpoint.
func TestServicesOwnEndpoints(t *testing.T) {
	for _, c := range []struct {
		name, storage string
		endpoints     []string
	}{
		{"s3", `{ inline: { provider: self-bucket, config: { kind: s3, region: eu-west-1, bucket: data, prefix: x } } }`, []string{"https://s3.eu-west-1.amazonaws.com", "https://data.s3.eu-west-1.amazonaws.com"}},
		{"gcs", `{ inline: { provider: self-bucket, config: { kind: gcs, bucket: data, prefix: x } } }`, []string{"https://storage.googleapis.com"}},
		{"azure", `{ inline: { provider: mastra-azure, config: { container: data, accountName: acme } } }`, []string{"https://acme.blob.core.windows.net"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.manifest("ws", "@acme/ops", c.storage)
			assert.Slice(t, w.ok("ws", ResolveOptions{Trust: true}).Grants.Endpoints, c.endpoints)
		})
	}
}

func TestServiceWithoutEndpoint(t *testing.T) {
	w := newWorld(t)
	w.manifest("ws", "@acme/ops", `{ inline: { provider: self-bucket, config: { kind: azure, bucket: data, prefix: x } } }`)
	w.refused("ws", ResolveOptions{Trust: true}, Unresolvable, "no endpoint")
}

func TestExitCodes(t *testing.T) {
	for class, want := range map[Class]int{Invalid: 3, Unresolvable: 4, Denied: 5} {
		err := fmt.Errorf("mount: %w", &Error{Class: class, What: "x"})
		var e *Error
		if got, ok := ClassOf(err); !ok || got != class || !errors.As(err, &e) || e.ExitCode() != want {
			t.Errorf("class %d has exit code %d, want %d", class, e.ExitCode(), want)
		}
	}
	if _, ok := ClassOf(errors.New("x")); ok {
		t.Error("any error has a class")
	}
}
