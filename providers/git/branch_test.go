package git_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
)

// goTo has a provider begin a branch, or go back to it.
func goTo(t *testing.T, p *git.Provider, branch string) {
	t.Helper()
	from := assert.Of(p.Head(t.Context())).OK(t)
	to := assert.Of(p.Begin(t.Context(), branch, true)).OK(t)
	assert.OK(t, p.Start(t.Context(), branch, from, to))
}

func push(t *testing.T, p *git.Provider) providers.PushResult {
	t.Helper()
	return assert.Of(p.Push(t.Context(), providers.PushOptions{})).OK(t)
}

func branches(t *testing.T, p *git.Provider) providers.Branches {
	t.Helper()
	return assert.Of(p.Branches(t.Context())).OK(t)
}

// unmerged are the names of what is listed, those that are not pushed with a !.
func unmerged(t *testing.T, p *git.Provider) string {
	t.Helper()
	var names []string
	for _, b := range branches(t, p).Unmerged {
		if !b.Pushed {
			b.Name += "!"
		}
		names = append(names, b.Name)
	}
	return strings.Join(names, " ")
}

// fetches checks where a fetch says to go on from.
func fetches(t *testing.T, p *git.Provider, what, want string) {
	t.Helper()
	assert.Of(p.Fetch(t.Context())).Equal(t, providers.Revision(strings.TrimSpace(want)), what, "fetch says", want)
}

// A branch outlives a restart with its commits, HEAD names it, and one that is merged
// goes on, also where the remote still has it.
func TestBranchOfItsOwn(t *testing.T) {
	_, repo, other := seeded(t)
	dir := place(t)
	p := clone(t, repo.URL, in(dir))
	main := strings.TrimSpace(repo.Git("rev-parse", "main"))
	goTo(t, p, "wsmount/c/one")
	write(t, p, "mine", "1")
	p = reopen(t, p, repo.URL, dir)
	reads(t, p, "mine", "1")
	b := branches(t, p)
	assert.True(t, b.On == "wsmount/c/one" && b.Tracked == "main" && string(b.Tip) == main, "after a restart", b)
	push(t, p)
	merge := func() {
		other.Git("fetch", "-q", "origin")
		other.Git("merge", "-q", "-m", "merge", "origin/wsmount/c/one")
	}
	merge()
	other.Git("push", "-q", "origin", "HEAD:main")
	fetches(t, p, "after it was merged", repo.Git("rev-parse", "main"))
	head := repo.Git("--git-dir", dir, "symbolic-ref", "HEAD")
	assert.Equal(t, head, "refs/heads/wsmount/c/one\n", "HEAD")
	write(t, p, "more", "1") // also of a branch that is merged
	p = reopen(t, p, repo.URL, dir)
	reads(t, p, "more", "1")
	push(t, p)
	assert.Equal(t, unmerged(t, p), "wsmount/c/one", "unmerged after more")

	goTo(t, p, "wsmount/c/two")
	merge()
	other.Write(map[string]string{"theirs": "2"})
	other.Commit("main", "theirs")
	goTo(t, p, "wsmount/c/one") // which the remote still has, all merged
	reads(t, p, "theirs", "2")
	repo.Git("--git-dir", dir, "fsck", "--strict")
}

// A branch that the remote deletes after all was pushed is put away, with its commits
// kept, and its name begins anew.
func TestBranchDeleted(t *testing.T) {
	t.Parallel()
	_, repo, _ := seeded(t)
	dir := place(t)
	p := clone(t, repo.URL, in(dir))
	goTo(t, p, "wsmount/c/one")
	write(t, p, "one", "1")
	push(t, p)
	one := strings.TrimSpace(repo.Git("rev-parse", "wsmount/c/one"))
	goTo(t, p, "wsmount/c/two")
	repo.Git("update-ref", "-d", "refs/heads/wsmount/c/one")
	fetches(t, p, "of the second", repo.Git("rev-parse", "main"))
	assert.Equal(t, unmerged(t, p), "", "unmerged after one was deleted")
	left := repo.Git("--git-dir", dir, "rev-parse", "refs/wsmount/left/"+one)
	assert.Equal(t, strings.TrimSpace(left), one, "what was deleted")
	goTo(t, p, "wsmount/c/one")
	assert.Is(t, assert.ErrOf(p.Stat(t.Context(), at("one"))), providers.ErrNotExist, "of the old branch")
	repo.Git("--git-dir", dir, "fsck", "--strict")
}

// A branch is begun or it is not: when HEAD cannot be written, all is as it was,
// also after a restart, and the next attempt works.
func TestBranchNotBegun(t *testing.T) {
	_, repo, other := seeded(t)
	dir := place(t)
	p := clone(t, repo.URL, in(dir))
	goTo(t, p, "wsmount/c/one")
	write(t, p, "one", "1")
	push(t, p)
	other.Write(map[string]string{"theirs": "1"})
	other.Commit("main", "theirs")
	from := assert.Of(p.Head(t.Context())).OK(t)
	to := assert.Of(p.Begin(t.Context(), "wsmount/c/two", true)).OK(t)
	lock := filepath.Join(dir, "HEAD.lock")
	assert.OK(t, os.WriteFile(lock, nil, 0o600))
	assert.Is(t, p.Start(t.Context(), "wsmount/c/two", from, to), providers.ErrUnavailable, "start while another holds HEAD")
	reads(t, p, "one", "1")
	assert.OK(t, os.Remove(lock))
	p = reopen(t, p, repo.URL, dir)
	assert.Equal(t, branches(t, p).On, "wsmount/c/one", "on")
	reads(t, p, "one", "1")
	write(t, p, "more", "1")
	push(t, p)
	goTo(t, p, "wsmount/c/two")
	reads(t, p, "theirs", "1")
	repo.Git("--git-dir", dir, "fsck", "--strict")
}

// refusals are what servers say.
var refusals = []struct{ says, code string }{
	{"error: GH006: Protected branch update failed for refs/heads/main.", providers.RefusedBranch},
	{"Gitea: Not allowed to push to protected branch main", providers.RefusedBranch},
	{"refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission", providers.RefusedWorkflow},
	{"refusing to allow an OAuth App to create or update workflow `.github/workflows/ci.yml` without `workflow` scope", providers.RefusedWorkflow},
	{"error: GH001: Large files detected. File big is 120.00 MB; this exceeds GitHub's file size limit of 100.00 MB", providers.RefusedSize},
	{"error: GH013: Repository rule violations found. Push cannot contain secrets", providers.RefusedSecret},
	{"no commits on Fridays", providers.RefusedHook},
}

// Why the remote refuses a push is told as what it is, is listed, also after a
// restart, and is forgotten when a push goes through. Nothing else waits for it.
func TestRefusals(t *testing.T) {
	server, repo, _ := seeded(t)
	dir := place(t)
	p := clone(t, repo.URL, in(dir))
	hook := filepath.Join(repo.Dir, "hooks", "pre-receive")
	goTo(t, p, "wsmount/c/one")
	for _, r := range refusals {
		assert.OK(t, os.WriteFile(hook, []byte("#!/bin/sh\ncat >&2 <<'E'\n"+r.says+"\nE\nexit 1\n"), 0o755))
		write(t, p, "f", r.says)
		_, err := p.Push(t.Context(), providers.PushOptions{})
		var e *providers.Error
		assert.True(t, errors.Is(err, providers.ErrPermission) && errors.As(err, &e) && e.Code == r.code && strings.Contains(err.Error(), r.says), r.says, err, "want", r.code)
	}
	p = reopen(t, p, repo.URL, dir)
	last := refusals[len(refusals)-1]
	b := branches(t, p).Unmerged
	assert.True(t, len(b) == 1 && b[0].Refused.Code == last.code && strings.Contains(b[0].Refused.Says, last.says) && !b[0].Refused.Since.IsZero(), "listed:", b)
	assert.OK(t, os.Remove(hook))
	server.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		}
		return r.Method == http.MethodPost
	})
	assert.Is(t, assert.ErrOf(p.Push(t.Context(), providers.PushOptions{})), providers.ErrTooLarge, "push that is too large")
	b = branches(t, p).Unmerged
	assert.True(t, len(b) == 1 && b[0].Refused.Code == providers.RefusedSize, "listed:", b)
	server.Hook(nil)
	push(t, p)
	b = branches(t, p).Unmerged
	assert.True(t, len(b) == 1 && b[0].Refused == (providers.Refusal{}) && b[0].Pushed, "after it went through:", b)
}

// pulls is an API that fails, or opens what it is asked for.
type pulls struct {
	err               error
	head, title, text string
	n                 int
}

func (h *pulls) Ensure(_ context.Context, head, _, title, text string) (string, error) {
	h.head, h.title, h.text = head, title, text
	h.n++
	return "http://pull/1", h.err
}

// A pull request says what its commits say. One that could not be opened is
// wanted until it is.
func TestPropose(t *testing.T) {
	_, repo, _ := seeded(t)
	dir := place(t)
	api := &pulls{err: providers.ErrUnavailable}
	open := func() *git.Provider {
		return clone(t, repo.URL, in(dir), func(o *git.Options) { o.Pulls = api })
	}
	p := open()
	goTo(t, p, "wsmount/c/one")
	if url, err := p.Propose(t.Context(), "wsmount/c/one", providers.PullRequest{}); url != "" || err != nil || api.n > 0 {
		t.Errorf("of nothing: %q, %v, asked %d times", url, err, api.n)
	}
	commit := func(name, message string) {
		_, err := p.Commit(t.Context(), providers.ChangeSet{Message: message, Changes: []providers.Change{{Locator: at(name), Body: providers.String(name), If: providers.IfAbsent()}}})
		assert.OK(t, err)
	}
	commit("x", "The first thing\n\nAnd why.")
	push(t, p)
	_, err := p.Propose(t.Context(), "wsmount/c/one", providers.PullRequest{})
	assert.Is(t, err, providers.ErrUnavailable, "when the API is away")
	assert.True(t, api.title == "The first thing" && api.text == "And why.", "one commit", api.title, api.text)
	assert.OK(t, p.Close())
	p = open()
	b := branches(t, p).Unmerged
	assert.True(t, len(b) == 1 && !b[0].Wanted.IsZero() && b[0].URL == "", "while it is wanted:", b)
	commit("y", "Another")
	push(t, p)
	api.err = nil
	url, err := p.Propose(t.Context(), "wsmount/c/one", providers.PullRequest{})
	if err != nil || url != "http://pull/1" || api.title != "The first thing" || api.text != "- The first thing\n\n  And why.\n\n- Another\n" {
		t.Errorf("two commits: %q, %v, %q, %q", url, err, api.title, api.text)
	}
	b = branches(t, p).Unmerged
	assert.True(t, len(b) == 1 && b[0].Wanted.IsZero() && b[0].URL == url, "when it is there:", b)
	_, err = p.Propose(t.Context(), "main", providers.PullRequest{})
	assert.Is(t, err, providers.ErrInvalid, "from the tracked branch to itself")
	_, err = clone(t, repo.URL).Propose(t.Context(), "wsmount/c/one", providers.PullRequest{})
	assert.Is(t, err, providers.ErrUnsupported, "without an API")
}

// Whoever gives the credentials hears that the server did not take them.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	server, repo, _ := seeded(t)
	refused := 0
	p := clone(t, repo.URL, func(o *git.Options) {
		o.Credentials = func(context.Context) (map[string]string, error) { return map[string]string{"token": "old"}, nil }
		o.Refused = func() { refused++ }
	})
	_, err := p.Fetch(t.Context())
	assert.True(t, err == nil && refused == 0, "fetch", "refused", refused, err)
	server.Require("new")
	assert.Is(t, assert.ErrOf(p.Fetch(t.Context())), providers.ErrUnauthenticated, "fetch with an old token")
	assert.Equal(t, refused, 1, "times refused")
}
