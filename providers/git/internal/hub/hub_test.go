package hub_test

import (
	"context"
	"errors"
	"fmt"
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
			url, err := h.Ensure(t.Context(), "topic", "main", "a title", "why")
			if err != nil || len(api.Pulls()) != 4 || url != api.Pulls()[3].HTML {
				t.Fatalf("first: %q, %v, pulls %+v", url, err, api.Pulls())
			}
			if p := api.Pulls()[3]; p.Title != "a title" || p.Text != "why" || p.Head != "topic" || p.Base != "main" {
				t.Errorf("it is %+v", p)
			}
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
	if url, err := h.Ensure(t.Context(), "same", "main", "t", ""); url != "" || err != nil {
		t.Errorf("nothing between: %q, %v", url, err)
	}
	api.Fail(func(r *http.Request) *gitserver.Answer {
		if r.Method == http.MethodPost && len(api.Pulls()) == 0 {
			api.Add(gitserver.Pull{Repo: "acme/site", Head: "topic", Base: "main"})
		}
		return nil
	})
	url, err := h.Ensure(t.Context(), "topic", "main", "t", "")
	if err != nil || len(api.Pulls()) != 1 || url != api.Pulls()[0].HTML {
		t.Errorf("somebody was faster: %q, %v, %+v", url, err, api.Pulls())
	}
	_, err = h.Ensure(t.Context(), "nowhere", "main", "t", "")
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
	if url, err := h.Ensure(t.Context(), "topic", "main", "t", ""); err != nil || url != api.Pulls()[0].HTML {
		t.Errorf("got %q, %v", url, err)
	}
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
		if c.after > 0 && (!errors.As(err, &later) || later.RetryAfter() < c.after) {
			t.Errorf("%s: does not say to wait for %v", c.name, c.after)
		}
	}
	if len(api.Pulls()) > 0 {
		t.Errorf("pulls: %+v", api.Pulls())
	}
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
	if _, err := h.Ensure(t.Context(), "topic", "main", "t", ""); !errors.Is(err, providers.ErrPermission) || posts != 1 {
		t.Errorf("got %v after %d posts", err, posts)
	}
}

func TestWhoAsks(t *testing.T) {
	t.Parallel()
	api, _, _ := started(t)
	o := hub.Options{URL: api.URL, Owner: "acme", Repo: "site"}
	if _, err := hub.New(o).Ensure(t.Context(), "topic", "main", "t", ""); !errors.Is(err, providers.ErrUnauthenticated) {
		t.Errorf("nobody: %v", err)
	}
	o.Credentials = with(map[string]string{"token": "another"})
	if _, err := hub.New(o).Ensure(t.Context(), "topic", "main", "t", ""); !errors.Is(err, providers.ErrUnauthenticated) || !strings.Contains(err.Error(), "Bad credentials") {
		t.Errorf("a stranger: %v", err)
	}
}
