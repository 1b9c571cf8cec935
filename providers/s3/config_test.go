package s3

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

func TestConfig(t *testing.T) {
	at := bucket.Place{Bucket: "b", Endpoint: "http://h:9000"}
	for _, c := range []struct {
		get  map[string]string
		at   bucket.Place
		want config
		err  error
	}{
		{nil, bucket.Place{}, config{region: "us-east-1"}, nil},
		{nil, at, config{Place: at, region: "us-east-1", pathStyle: true}, nil},
		{map[string]string{"region": "auto", "path_style": "false", "allow_unsafe_writes": "true"}, at, config{Place: at, region: "auto", unsafe: true}, nil},
		{map[string]string{"forcePathStyle": "true"}, bucket.Place{}, config{region: "us-east-1", pathStyle: true}, nil},
		{map[string]string{"path_style": "yes"}, at, config{}, providers.ErrInvalid},
	} {
		got, err := parseConfig(c.get, c.at)
		assert.Is(t, err, c.err, c.get)
		assert.Equal(t, got, c.want, c.get)
	}
}
