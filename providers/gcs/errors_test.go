package gcs

import (
	"net/http"
	"testing"

	"google.golang.org/api/googleapi"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// The status of a refusal whose reason is cut off means nothing: what it refuses is sent
// again.
func TestCutRefusal(t *testing.T) {
	for _, c := range []struct {
		length, body string
		want         error
	}{
		{"1000", `{"error": {"code": 403, "err`, providers.ErrUnavailable},
		{"9", "forbidden", providers.ErrPermission},
		{"", "forbidden", providers.ErrPermission},
	} {
		answer := &googleapi.Error{Code: http.StatusForbidden, Body: c.body, Header: http.Header{}}
		if c.length != "" {
			answer.Header.Set("Content-Length", c.length)
		}
		assert.Is(t, translate(t.Context(), answer), c.want, c.body, "of", c.length)
	}
}
