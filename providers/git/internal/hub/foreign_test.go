package hub_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/hub"
)

// notAPI are answers that the API never gives: their type, and their content.
var notAPI = map[string][2]string{
	"login page":              {"text/html", "<html>Log in</html>"},
	"nothing":                 {"", ""},
	"nothing, of JSON's type": {"application/json", ""},
	"null":                    {"application/json", "null"},
	"an empty object":         {"application/json", "{}"},
	"another verb's":          {"application/json", `[{"name": "main"}]`},
	"half":                    {"application/json", `[{"number": 1, "html_u`},
	"JSON of another type":    {"text/plain", "[]"},
}

type answering func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// foreign answers requests of a method otherwise than the API does.
func foreign(method, kind, body string) http.RoundTripper {
	return answering(func(r *http.Request) (*http.Response, error) {
		if r.Method != method {
			return http.DefaultTransport.RoundTrip(r)
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Request: r,
			ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body))}, nil
	})
}

// A success that the API never gives is none: no pull request is missing, or there, or
// useless for it, and no token is empty.
func TestAnswersThatAreNotTheAPIs(t *testing.T) {
	t.Parallel()
	api, _, _ := started(t)
	app := gitserver.Start(t).StartAPI(t).StartApp()
	for what, page := range notAPI {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			h := hub.New(hub.Options{URL: api.URL, Owner: "acme", Repo: "site", Transport: foreign(method, page[0], page[1]),
				Credentials: with(map[string]string{"token": token})})
			if url, err := h.Ensure(t.Context(), "topic", "main", "t", ""); !errors.Is(err, providers.ErrUnavailable) || url != "" {
				t.Errorf("%s to %s: %q, %v", what, method, url, err)
			}
		}
		a := &hub.App{URL: api.URL, ID: app.ID, Installation: app.Installation, Repo: "site", Transport: foreign(http.MethodPost, page[0], page[1]),
			Key: with(map[string]string{"private_key": app.Key})}
		if fields, err := a.Credentials(t.Context()); !errors.Is(err, providers.ErrUnavailable) || fields != nil {
			t.Errorf("%s for a token: %v", what, err)
		}
	}
	if len(api.Pulls()) > 0 {
		t.Errorf("pulls: %+v", api.Pulls())
	}
}
