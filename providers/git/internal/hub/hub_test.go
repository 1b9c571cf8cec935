package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/hub"
)

const token = "token-of-the-test"

func with(fields map[string]string) func(context.Context) (map[string]string, error) {
	return func(context.Context) (map[string]string, error) { return fields, nil }
}

// started is an API with a repository that has a branch main, a branch topic with
// two commits more, and a branch same with none.
func started(t *testing.T) (*gitserver.API, *gitserver.Repo, *hub.Hub) {
	t.Helper()
	s := gitserver.Start(t)
	s.Require(token)
	repo := s.Create(t, "acme/site")
	other := repo.Clone(t.TempDir() + "/other")
	other.Write(map[string]string{"a": "1"})
	other.Commit("main", "begin")
	repo.Git("branch", "same", "main")
	other.Write(map[string]string{"a": "2"})
	other.Commit("topic", "on a topic")
	api := s.StartAPI(t)
	return api, repo, hub.New(hub.Options{URL: api.URL, Owner: "acme", Repo: "site", Credentials: with(map[string]string{"token": token})})
}

// A pull request is opened once, whoever opened it and however often it is asked
// for: of another branch, to another base or of a fork are others.
func TestEnsure(t *testing.T) {
	t.Parallel()
	for _, filters := range []bool{true, false} {
		t.Run(fmt.Sprint("filters ", filters), func(t *testing.T) {
			t.Parallel()
			api, _, h := started(t)
			if !filters {
				api.Unfiltered()
			}
			for _, other := range []gitserver.Pull{{Head: "topic", Base: "release"}, {Head: "other", Base: "main"}, {Head: "topic", Base: "main", From: "fork/site"}} {
				other.Repo = "acme/site"
				api.Add(other)
			}
			url := assert.Of(h.Ensure(t.Context(), "topic", "main", "a title", "why")).OK(t)
			assert.Must(t, len(api.Pulls()) == 4 && url == api.Pulls()[3].HTML, url, "pulls", api.Pulls())
			p := api.Pulls()[3]
			assert.True(t, p.Title == "a title" && p.Text == "why" && p.Head == "topic" && p.Base == "main", "it is", p)
			if again, err := h.Ensure(t.Context(), "topic", "main", "another", ""); again != url || err != nil || len(api.Pulls()) != 4 {
				t.Errorf("again: %q, %v, %d pulls", again, err, len(api.Pulls()))
			}
			api.Close(4)
			if again, err := h.Ensure(t.Context(), "topic", "main", "another", ""); again == url || err != nil || len(api.Pulls()) != 5 {
				t.Errorf("after it was closed: %q, %v, %d pulls", again, err, len(api.Pulls()))
			}
		})
	}
}

// That there is nothing to merge is success, and so is that somebody was faster.
func TestNothingAndAlready(t *testing.T) {
	t.Parallel()
	api, _, h := started(t)
	assert.Of(h.Ensure(t.Context(), "same", "main", "t", "")).Equal(t, "", "nothing between")
	api.Fail(func(r *http.Request) *gitserver.Answer {
		if r.Method == http.MethodPost && len(api.Pulls()) == 0 {
			api.Add(gitserver.Pull{Repo: "acme/site", Head: "topic", Base: "main"})
		}
		return nil
	})
	url := assert.Of(h.Ensure(t.Context(), "topic", "main", "t", "")).OK(t)
	assert.True(t, len(api.Pulls()) == 1 && url == api.Pulls()[0].HTML, "somebody was faster", url, api.Pulls())
	_, err := h.Ensure(t.Context(), "nowhere", "main", "t", "")
	assert.Is(t, err, providers.ErrInvalid, "a branch that is not there")
}

// Gitea says with another status that a pull request is there.
func TestAlreadyAtGitea(t *testing.T) {
	t.Parallel()
	api, _, h := started(t)
	api.Fail(func(r *http.Request) *gitserver.Answer {
		if r.Method != http.MethodPost {
			return nil
		}
		api.Add(gitserver.Pull{Repo: "acme/site", Head: "topic", Base: "main"})
		return &gitserver.Answer{Status: http.StatusConflict, Foreign: true, Body: `{"message":"pull request already exists for these targets [id: 1]","url":"http://127.0.0.1/api/swagger"}`}
	})
	assert.Of(h.Ensure(t.Context(), "topic", "main", "t", "")).Equal(t, api.Pulls()[0].HTML)
}

// What the API answers has a kind, its own words, and when to come again; never
// the credentials.
func TestErrors(t *testing.T) {
	t.Parallel()
	api, _, h := started(t)
	soon := fmt.Sprint(time.Now().Add(time.Minute).Unix())
	for _, c := range []struct {
		name   string
		answer gitserver.Answer
		kind   error
		says   string
		after  time.Duration // at least
	}{
		{"may not", gitserver.Answer{Status: 403, Body: `{"message":"Resource not accessible by integration"}`}, providers.ErrPermission, "Resource not accessible by integration", 0},
		{"not there", gitserver.Answer{Status: 404, Body: `{"message":"Not Found"}`}, providers.ErrPermission, "Not Found", 0},
		{"broken", gitserver.Answer{Status: 502, Body: `<html>bad gateway</html>`, Foreign: true}, providers.ErrUnavailable, "", 0},
		{"busy", gitserver.Answer{Status: 503, Header: map[string]string{"Retry-After": "7"}, Body: `{"message":"later"}`}, providers.ErrUnavailable, "later", 7 * time.Second},
		{"limit", gitserver.Answer{Status: 403, Header: map[string]string{"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": soon},
			Body: `{"message":"API rate limit exceeded"}`}, providers.ErrUnavailable, "rate limit", 50 * time.Second},
		{"second limit", gitserver.Answer{Status: 403, Header: map[string]string{"Retry-After": "30"},
			Body: `{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`},
			providers.ErrUnavailable, "secondary rate limit", 30 * time.Second},
		{"no JSON", gitserver.Answer{Status: 200, Body: `<html>`, Foreign: true}, providers.ErrUnavailable, "", 0},
		{"elsewhere", gitserver.Answer{Status: 301, Header: map[string]string{"Location": "http://127.0.0.2:1/x"}, Foreign: true}, providers.ErrPermission, "redirects to 127.0.0.2:1", 0},
	} {
		api.Fail(func(*http.Request) *gitserver.Answer { return &c.answer })
		_, err := h.Ensure(t.Context(), "topic", "main", "t", "")
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v, want %v", c.name, err, c.kind)
			continue
		}
		var later providers.RetryAfter
		assert.False(t, c.after > 0 && (!errors.As(err, &later) || later.RetryAfter() < c.after), c.name, "does not say to wait for", c.after)
	}
	assert.True(t, len(api.Pulls()) == 0, "pulls", api.Pulls())
}

// A change is not sent to where the API redirects it, even within the server.
func TestChangeIsNotRedirected(t *testing.T) {
	t.Parallel()
	posts := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "[]")
			return
		}
		posts++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	h := hub.New(hub.Options{URL: s.URL, Owner: "acme", Repo: "site", Credentials: with(map[string]string{"token": token})})
	_, err := h.Ensure(t.Context(), "topic", "main", "t", "")
	assert.True(t, errors.Is(err, providers.ErrPermission) && posts == 1, "after", posts, "posts", err)
}

func TestWhoAsks(t *testing.T) {
	t.Parallel()
	api, _, _ := started(t)
	o := hub.Options{URL: api.URL, Owner: "acme", Repo: "site"}
	assert.Is(t, assert.ErrOf(hub.New(o).Ensure(t.Context(), "topic", "main", "t", "")), providers.ErrUnauthenticated, "nobody")
	o.Credentials = with(map[string]string{"token": "another"})
	_, err := hub.New(o).Ensure(t.Context(), "topic", "main", "t", "")
	assert.True(t, errors.Is(err, providers.ErrUnauthenticated) && strings.Contains(err.Error(), "Bad credentials"), "a stranger:", err)
}

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
			url, err := h.Ensure(t.Context(), "topic", "main", "t", "")
			assert.True(t, errors.Is(err, providers.ErrUnavailable) && url == "", what, method, url, err)
		}
		a := &hub.App{URL: api.URL, ID: app.ID, Installation: app.Installation, Repo: "site", Transport: foreign(http.MethodPost, page[0], page[1]),
			Key: with(map[string]string{"private_key": app.Key})}
		fields, err := a.Credentials(t.Context())
		assert.True(t, errors.Is(err, providers.ErrUnavailable) && fields == nil, what, "for a token:", err)
	}
	assert.True(t, len(api.Pulls()) == 0, "pulls", api.Pulls())
}
