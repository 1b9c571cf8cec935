package s3

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// Such a prefix is refused before anything is written, whether the service would list what is
// below it or not.
func TestPrefixIsAnObject(t *testing.T) {
	for _, c := range []struct {
		object, prefix string
		refused        bool
	}{
		{"notes", "notes", true},
		{"team", "team/notes/deep", true},
		{"team/notes", "team/notes/deep", true},
		{"notes/", "notes", false}, // the marker of a directory
		{"notes2", "notes", false},
		{"notes/a", "notes", false},
		{"notes", "", false},
	} {
		for _, hides := range []bool{true, false} {
			for _, readOnly := range []bool{true, false} {
				f := newFake()
				f.hides = hides
				f.put(c.object, "", nil)
				p, err := Drivers()[0].Open(t.Context(), providers.Settings{Transport: f, ReadOnly: readOnly,
					Config:      map[string]string{"bucket": "b", "endpoint": "http://fake.invalid", "prefix": c.prefix},
					Credentials: secrets{"access_key_id": "a", "secret_access_key": "b"}.reveal})
				if err == nil {
					p.Close()
				}
				assert.Equal(t, err != nil, c.refused, "object", c.object, "prefix", c.prefix, "readOnly", readOnly)
				if !c.refused {
					continue
				}
				assert.True(t, errors.Is(err, providers.ErrInvalid) && strings.Contains(err.Error(), `"`+c.object+`"`), "object", c.object, "the error does not name it:", err)
				assert.Equal(t, len(f.keys()), 1, "object", c.object, "left")
			}
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A right to what is below the prefix is enough.
func TestPrefixNotAllowedAbove(t *testing.T) {
	f := newFake()
	refuseAbove := roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodHead && (r.URL.Path == "/b/team" || r.URL.Path == "/b/team/ws") {
			return answer(r, 403, nil, nil), nil
		}
		return f.RoundTrip(r)
	})
	assert.Is(t, assert.ErrOf(openFakeErr(t, refuseAbove, map[string]string{"prefix": "team/ws"})), nil)
}

// Without an answer nothing is mounted.
func TestPrefixUnknown(t *testing.T) {
	f := newFake()
	fails := roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodHead && r.URL.Path == "/b/pre" {
			return answer(r, 503, nil, nil), nil
		}
		return f.RoundTrip(r)
	})
	assert.Is(t, assert.ErrOf(openFakeErr(t, fails, nil)), providers.ErrUnavailable)
}
