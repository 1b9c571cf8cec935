package git_test

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
)

// The first commit goes to the branch that the server's HEAD names, there or not, by
// each way to a server; one that does not say it has main.
func TestUnbornHead(t *testing.T) {
	t.Parallel()
	plain, shell, daemon := gitserver.Start(t), newSSHStage(t), newDaemonStage(t)
	old := gitserver.Start(t)
	old.Hook(func(_ http.ResponseWriter, r *http.Request) bool { r.Header.Del("Git-Protocol"); return false })
	closed := gitserver.Start(t)
	closed.Require("token")
	token := func(o *git.Options) {
		o.Credentials = func(context.Context) (map[string]string, error) { return map[string]string{"token": "token"}, nil }
	}
	none := func(*git.Options) {}
	for name, c := range map[string]struct {
		server *gitserver.Server
		url    func(*gitserver.Repo) string
		over   func(*git.Options)
		want   string
	}{
		"HTTP":              {plain, func(r *gitserver.Repo) string { return r.URL }, none, "trunk"},
		"HTTP with a token": {closed, func(r *gitserver.Repo) string { return r.URL }, token, "trunk"},
		"SSH":               {shell.git, func(*gitserver.Repo) string { return shell.url("r") }, shell.over, "trunk"},
		"git":               {daemon.git, func(*gitserver.Repo) string { return daemon.url("r") }, none, "trunk"},
		"version 0 alone":   {old, func(r *gitserver.Repo) string { return r.URL }, none, "main"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := c.server.Create(t, "r")
			repo.Git("symbolic-ref", "HEAD", "refs/heads/trunk")
			repo.Git("config", "http.receivepack", "true")
			p := clone(t, c.url(repo), c.over)
			write(t, p, "a", "first\n")
			if name == "git" { // a daemon takes no pushes
				assert.Equal(t, branches(t, p).Tracked, c.want, "the branch")
				return
			}
			push(t, p)
			assert.Equal(t, strings.TrimSpace(repo.Git("for-each-ref", "--format=%(refname)")), "refs/heads/"+c.want, "the server has")
		})
	}
}

// HEAD may name a branch that is not there while others are, or none at all.
func TestUnbornBesideOthers(t *testing.T) {
	t.Parallel()
	_, repo, _ := seeded(t)
	repo.Git("symbolic-ref", "HEAD", "refs/heads/trunk")
	p := clone(t, repo.URL)
	assert.Equal(t, branches(t, p).Tracked, "trunk", "the branch")
	repo.Git("update-ref", "--no-deref", "HEAD", strings.TrimSpace(repo.Git("rev-parse", "main")))
	p = clone(t, repo.URL)
	assert.Equal(t, branches(t, p).Tracked, "main", "with a detached HEAD, the branch")
}

// Whether HEAD names another branch is not guessed while the server does not answer.
func TestUnbornUnanswered(t *testing.T) {
	t.Parallel()
	for what, foreign := range notGit {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if foreign.reaches {
				continue
			}
			repo := gitserver.Start(t).Create(t, "r")
			_, err := git.Open(t.Context(), git.Options{URL: repo.URL, Dir: filepath.Join(place(t), "new"), Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.Header.Get("Git-Protocol") == "" || r.Method != method {
					return http.DefaultTransport.RoundTrip(r)
				}
				return page(r, "", "", foreign.answer)
			})})
			assert.Is(t, err, providers.ErrUnavailable, method+" answered with "+what)
		}
	}
}
