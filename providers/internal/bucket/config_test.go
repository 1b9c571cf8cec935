package bucket

import (
	"errors"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// What configurations of all services say, and what they may not.
func TestPlace(t *testing.T) {
	service := Service{Name: "s3", People: "S3"}
	keys := append([]string{"container"}, plainKeys...)
	for _, c := range []struct {
		name string
		get  map[string]string
		want Place
		err  error
	}{
		{"least", map[string]string{"bucket": "b"}, Place{Bucket: "b"}, nil},
		{"all", map[string]string{"kind": "s3", "container": "c", "prefix": "/a/b/", "endpoint": "https://s.example/", "region": "x", "credentials": "sdk"},
			Place{Bucket: "c", Prefix: "a/b/", Endpoint: "https://s.example", Credentials: "sdk"}, nil},
		{"another kind", map[string]string{"kind": "azure", "bucket": "b"}, Place{}, providers.ErrUnsupported},
		{"no bucket", nil, Place{}, providers.ErrInvalid},
		{"misspelt", map[string]string{"bucket": "b", "prefx": "a"}, Place{}, providers.ErrInvalid},
		{"prefix upwards", map[string]string{"bucket": "b", "prefix": "a/../b"}, Place{}, providers.ErrInvalid},
		{"prefix here", map[string]string{"bucket": "b", "prefix": "./b"}, Place{}, providers.ErrInvalid},
		{"prefix with nothing", map[string]string{"bucket": "b", "prefix": "a//b"}, Place{}, providers.ErrInvalid},
		{"prefix with control", map[string]string{"bucket": "b", "prefix": "a\nb"}, Place{}, providers.ErrInvalid},
		{"endpoint without scheme", map[string]string{"bucket": "b", "endpoint": "h:9000"}, Place{}, providers.ErrInvalid},
		{"endpoint with a user", map[string]string{"bucket": "b", "endpoint": "http://u:p@h"}, Place{}, providers.ErrInvalid},
		{"endpoint with a query", map[string]string{"bucket": "b", "endpoint": "https://h/?sig=x"}, Place{}, providers.ErrInvalid},
		{"credentials", map[string]string{"bucket": "b", "credentials": "env"}, Place{}, providers.ErrInvalid},
	} {
		got, err := service.place(providers.Settings{Config: c.get}, keys)
		assert.True(t, errors.Is(err, c.err) && got == c.want, c.name, got, c.want, c.err, err)
	}
}
