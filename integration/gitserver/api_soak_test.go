//go:build soak

package gitserver

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// failures is a T that keeps what would fail a test.
type failures struct {
	*testing.T
	mu   sync.Mutex // guards what follows
	said []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

// was is what was said since it was last asked.
func (f *failures) was() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := strings.Join(f.said, "\n")
	f.said = nil
	return all
}

// apiOf is an API with a repository whose branch topic is ahead of main.
func apiOf(t *testing.T) (*API, *failures) {
	t.Helper()
	s := Start(t)
	s.Require("token")
	a := s.StartAPI(t)
	f := &failures{T: t}
	a.t = f
	other := s.Create(t, "acme/site").Clone(t.TempDir() + "/other")
	for _, branch := range []string{"main", "topic"} {
		other.Write(map[string]string{"a": branch})
		other.Commit(branch, branch)
	}
	return a, f
}

const (
	pulls  = "/repos/acme/site/pulls"
	tokens = "/app/installations/42/access_tokens"
	opened = `{"title":"t","head":"topic","base":"main","body":""}`
)

// ask sends a request with all headers that are wanted, but for those that are
// given otherwise; "-" is none.
func ask(t *testing.T, a *API, method, path, body string, header map[string]string) {
	t.Helper()
	r := assert.Of(http.NewRequestWithContext(t.Context(), method, a.URL+path, strings.NewReader(body))).OK(t)
	for name, value := range map[string]string{"Accept": "application/vnd.github+json", "User-Agent": "x", "Authorization": "Bearer token", "Content-Type": "application/json"} {
		r.Header.Set(name, value)
	}
	for name, value := range header {
		if r.Header.Set(name, value); value == "-" {
			r.Header[name] = nil
		}
	}
	r.Header["User-Agent"] = append(r.Header["User-Agent"], "")[:1] // or net/http sends its own
	resp := assert.Of(http.DefaultClient.Do(r)).OK(t)
	defer resp.Body.Close()
	assert.Is(t, assert.ErrOf(io.Copy(io.Discard, resp.Body)), nil)
}

// These need GitHub's description of its API, which is of make soak only. A request
// that does not fit what GitHub says of its API fails the test, and
// it is said where it does not.
func TestRequestThatDoesNotFit(t *testing.T) {
	t.Parallel()
	a, f := apiOf(t)
	for _, c := range []struct {
		name, method, path, body string
		header                   map[string]string
		says                     string // "": it fits
	}{
		{"list", "GET", pulls + "?state=open&head=acme:topic&base=main&per_page=100", "", nil, ""},
		{"open", "POST", pulls, opened, nil, ""},
		{"token", "POST", tokens, `{"repositories":["site"]}`, nil, ""},
		{"of another version", "GET", pulls, "", map[string]string{"X-GitHub-Api-Version": "2026-03-10"}, `pulls/list: header X-GitHub-Api-Version is "2026-03-10", want 2022-11-28`},
		{"of the version", "GET", pulls, "", map[string]string{"X-GitHub-Api-Version": "2022-11-28"}, ""},
		{"head misspelled", "POST", pulls, strings.Replace(opened, "head", "haed", 1), nil, `pulls/create: request body has an error: doesn't match schema: property "haed" is unsupported | Error at "/head": property "head" is missing`},
		{"base misspelled", "POST", pulls, strings.Replace(opened, "base", "bse", 1), nil, `Error at "/base": property "base" is missing`},
		{"title misspelled", "POST", pulls, strings.Replace(opened, "title", "titel", 1), nil, `property "titel" is unsupported`},
		{"without a title", "POST", pulls, strings.Replace(opened, `"title":"t",`, "", 1), nil, `pulls/create: title ""`},
		{"head is a number", "POST", pulls, strings.Replace(opened, `"topic"`, "7", 1), nil, `Error at "/head": value must be a string`},
		{"no JSON", "POST", pulls, "{", nil, "pulls/create: request body has an error: failed to decode request body"},
		{"no body", "POST", pulls, "", nil, "pulls/create: request body has an error: value is required but missing"},
		{"method", "PUT", pulls, opened, nil, "PUT /repos/acme/site/pulls: no matching operation was found"},
		{"path", "POST", "/repos/acme/site/pull", opened, nil, "POST /repos/acme/site/pull: no matching operation was found"},
		{"unknown parameter", "GET", pulls + "?sate=open", "", nil, `pulls/list: parameter "sate" in query`},
		{"state", "GET", pulls + "?state=opened", "", nil, `pulls/list: parameter "state" in query has an error: value is not one of the allowed values ["open","closed","all"]`},
		{"page", "GET", pulls + "?page=two", "", nil, `parameter "page" in query has an error: value two: an invalid integer`},
		{"installation", "POST", "/app/installations/acme/access_tokens", "{}", nil, `parameter "installation_id" in path has an error`},
		{"repositories", "POST", tokens, `{"repositories":"site"}`, nil, `apps/create-installation-access-token: request body has an error: doesn't match schema: Error at "/repositories": value must be an array`},
		{"permissions", "POST", tokens, `{"permissions":{"contents":"all"}}`, nil, `Error at "/permissions/contents": value is not one of the allowed values ["read","write"]`},
		{"no Accept", "GET", pulls, "", map[string]string{"Accept": "-"}, `pulls/list: header Accept is ""`},
		{"no User-Agent", "GET", pulls, "", map[string]string{"User-Agent": "-"}, `pulls/list: header User-Agent is ""`},
		{"User-Agent of nobody", "GET", pulls, "", map[string]string{"User-Agent": "Go-http-client/1.1"}, `want who asks`},
		{"nobody", "GET", pulls, "", map[string]string{"Authorization": "-"}, `pulls/list: header Authorization is ""`},
		{"no type", "POST", pulls, opened, map[string]string{"Content-Type": "-"}, `pulls/create: request body has an error: header Content-Type has unexpected value ""`},
		{"another type", "POST", pulls, opened, map[string]string{"Content-Type": "text/plain"}, `header Content-Type has unexpected value "text/plain"`},
	} {
		ask(t, a, c.method, c.path, c.body, c.header)
		got := f.was()
		assert.True(t, (got == "") == (c.says == "") && strings.Contains(got, c.says), c.name, got, c.says)
	}
}

// An answer that is not as GitHub's own fails the test too, unless that is what
// the test is about.
func TestAnswerThatDoesNotFit(t *testing.T) {
	t.Parallel()
	a, f := apiOf(t)
	for _, c := range []struct {
		name, method string
		answer       Answer
		says         string // "": it fits
	}{
		{"an empty list", "GET", Answer{Status: 200, Body: "[]"}, ""},
		{"a failure that the operation names", "POST", Answer{Status: 422, Body: `{"message":"no","documentation_url":"x","errors":[{"code":"custom"}]}`}, ""},
		{"a failure that it does not name", "GET", Answer{Status: 503, Body: `{"message":"later"}`}, ""},
		{"an object for a list", "GET", Answer{Status: 200, Body: "{}"}, "pulls/list: answer 200: response body doesn't match schema: value must be an array"},
		{"a pull request of almost nothing", "POST", Answer{Status: 201, Body: `{"number":"7","htlm_url":"x"}`}, `Error at "/number": value must be an integer`},
		{"a name misspelled", "POST", Answer{Status: 201, Body: `{"htlm_url":"x"}`}, `property "htlm_url" is unsupported`},
		{"what is missing", "POST", Answer{Status: 201, Body: `{}`}, `Error at "/html_url": property "html_url" is missing`},
		{"another status", "POST", Answer{Status: 200, Body: `{}`}, "pulls/create: answer 200: the operation has none of that status"},
		{"errors without a code", "POST", Answer{Status: 422, Body: `{"message":"no","documentation_url":"x","errors":[{"field":"head"}]}`}, `Error at "/errors/0/code": property "code" is missing`},
		{"a failure of another shape", "GET", Answer{Status: 503, Body: `{"message":7}`}, `pulls/list: answer 503: response body doesn't match schema Basic Error: Error at "/message": value must be a string`},
		{"another type", "GET", Answer{Status: 200, Header: map[string]string{"Content-Type": "text/html"}, Body: "<html>"}, "pulls/list: answer 200: response header Content-Type has unexpected value"},
		{"a proxy's", "GET", Answer{Status: 502, Body: "<html>", Foreign: true}, ""},
	} {
		a.Fail(func(*http.Request) *Answer { return &c.answer })
		body := opened
		if c.method == "GET" {
			body = ""
		}
		ask(t, a, c.method, pulls, body, nil)
		got := f.was()
		assert.True(t, (got == "") == (c.says == "") && strings.Contains(got, c.says), c.name, got, c.says)
	}
}

// What the API makes up itself is held to the description as well.
func TestOwnAnswersAreChecked(t *testing.T) {
	t.Parallel()
	a, f := apiOf(t)
	a.Add(Pull{Repo: "acme/site", Head: "topic", Base: "main"})
	a.pulls[0].HTML = "no URL"
	ask(t, a, "GET", pulls, "", nil)
	assert.Contains(t, f.was(), `pulls/list: answer 200: response body doesn't match schema: Error at "/0/html_url": string doesn't match the format "uri"`)
}
