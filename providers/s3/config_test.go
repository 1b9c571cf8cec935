package s3

import (
	"errors"
	"maps"
	"testing"

	"github.com/wsmount/wsmount/providers"
)

func TestConfig(t *testing.T) {
	base := map[string]string{"bucket": "b"}
	for _, c := range []struct {
		name string
		more map[string]string
		want config
		err  error
	}{
		{"least", nil, config{bucket: "b", region: "us-east-1"}, nil},
		{"all", map[string]string{"kind": "s3", "prefix": "/a/b/", "endpoint": "https://s.example/", "region": "auto", "path_style": "false", "credentials": "sdk", "allow_unsafe_writes": "true"},
			config{bucket: "b", prefix: "a/b/", endpoint: "https://s.example", region: "auto", credentials: "sdk", unsafe: true}, nil},
		{"path style with an endpoint", map[string]string{"endpoint": "http://h:9000"}, config{bucket: "b", region: "us-east-1", endpoint: "http://h:9000", pathStyle: true}, nil},
		{"mastra's words", map[string]string{"forcePathStyle": "true", "readOnly": "false", "displayName": "x"}, config{bucket: "b", region: "us-east-1", pathStyle: true}, nil},
		{"azure", map[string]string{"kind": "azure"}, config{}, providers.ErrUnsupported},
		{"gcs", map[string]string{"kind": "gcs"}, config{}, providers.ErrUnsupported},
		{"no bucket", map[string]string{"bucket": ""}, config{}, providers.ErrInvalid},
		{"misspelt", map[string]string{"prefx": "a"}, config{}, providers.ErrInvalid},
		{"prefix upwards", map[string]string{"prefix": "a/../b"}, config{}, providers.ErrInvalid},
		{"prefix here", map[string]string{"prefix": "./b"}, config{}, providers.ErrInvalid},
		{"prefix with nothing", map[string]string{"prefix": "a//b"}, config{}, providers.ErrInvalid},
		{"prefix with control", map[string]string{"prefix": "a\nb"}, config{}, providers.ErrInvalid},
		{"endpoint without scheme", map[string]string{"endpoint": "h:9000"}, config{}, providers.ErrInvalid},
		{"endpoint with a user", map[string]string{"endpoint": "http://u:p@h"}, config{}, providers.ErrInvalid},
		{"endpoint with a query", map[string]string{"endpoint": "http://h?x"}, config{}, providers.ErrInvalid},
		{"path style", map[string]string{"path_style": "yes"}, config{}, providers.ErrInvalid},
		{"credentials", map[string]string{"credentials": "env"}, config{}, providers.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			settings := providers.Settings{Config: maps.Clone(base)}
			maps.Copy(settings.Config, c.more)
			got, _, err := parseConfig(settings, append(mastraKeys, keys...))
			if got != c.want && c.err == nil || !errors.Is(err, c.err) {
				t.Errorf("got %+v, %v, want %+v, %v", got, err, c.want, c.err)
			}
		})
	}
}
