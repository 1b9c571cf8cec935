package git_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git"
)

var always = providers.WriteOptions{If: providers.Unconditional()}

func at(name string) providers.Locator { return providers.MustLocator(name) }

// reopen ends a provider and opens its clone again.
func reopen(t *testing.T, p *git.Provider, url, dir string) *git.Provider {
	t.Helper()
	assert.OK(t, p.Close())
	return clone(t, url, in(dir))
}

func in(dir string) func(*git.Options) { return func(o *git.Options) { o.Dir = dir } }

func write(t *testing.T, p providers.Provider, name, content string) providers.Info {
	t.Helper()
	return assert.Of(p.Write(t.Context(), at(name), providers.String(content), always)).OK(t)
}

func reads(t *testing.T, p providers.Provider, name, want string) {
	t.Helper()
	got, _, err := providers.Fetch(t.Context(), p, at(name), providers.ReadOptions{})
	assert.True(t, string(got) == want && err == nil, name, got, want, err)
}

// seeded is a repository with one commit, and somebody's clone of it.
func seeded(t *testing.T) (server *gitserver.Server, repo, other *gitserver.Repo) {
	t.Helper()
	server = gitserver.Start(t)
	repo = server.Create(t, "acme/r")
	other = repo.Clone(filepath.Join(t.TempDir(), "other"))
	other.Write(map[string]string{"a": "one\n", "dir/b": "two\n"})
	other.Commit("main", "begin")
	return server, repo, other
}

// A commit that is made stands in its branch after a loss of power, with all that it names.
func TestCommitsSurviveALossOfPower(t *testing.T) {
	if !testrun.Private(t) {
		return
	}
	_, repo, _ := seeded(t)
	disk := testrun.NewDisk(t, t.TempDir(), 64<<20)
	dir := filepath.Join(disk.Dir, "clone")
	p := clone(t, repo.URL, in(dir))
	unix.Sync() // of the clone nothing is asked here
	made, err := p.Commit(t.Context(), providers.ChangeSet{Op: "op", Changes: []providers.Change{
		{Locator: at("a"), Body: providers.String("two"), If: always.If}}})
	assert.OK(t, err)
	disk.Off()
	_ = p.Close() // the disk takes nothing any more
	disk.On()
	p = clone(t, repo.URL, in(dir))
	assert.Of(p.Head(t.Context())).Equal(t, made.Revision, "the branch")
	reads(t, p, "a", "two")
	repo.Git("--git-dir", dir, "fsck", "--strict")
	assert.OK(t, p.Close())
}

// What became of an operation is known after a crash: of one whose reference
// moved, and of one whose reference did not.
func TestOutcomesOutliveACrash(t *testing.T) {
	_, repo, _ := seeded(t)
	dir := place(t)
	p := clone(t, repo.URL, in(dir))
	set := providers.ChangeSet{Op: "op-1", Changes: []providers.Change{{Locator: at("new"), Body: providers.String("x"), If: providers.IfAbsent()}}}
	first := assert.Of(p.Commit(t.Context(), set)).OK(t)
	assert.OK(t, p.Adopt(t.Context(), first.Revision, first.Revision))
	ask := providers.ChangeSet{Op: "op-1", Base: "none"}
	p = reopen(t, p, repo.URL, dir)
	again := assert.Of(p.Commit(t.Context(), ask)).OK(t)
	if again.Revision != first.Revision || !again.Committed || len(again.Entries) != 1 || !again.Entries[0].Version.Matches(first.Entries[0].Version) {
		t.Errorf("after a crash: %+v, was %+v", again, first)
	}
	// One that was noted when the crash came, and the head had not moved; and
	// the half of a line behind it.
	file := filepath.Join(dir, "wsmount/outcomes")
	b := assert.Of(os.ReadFile(file)).OK(t)
	lost := fmt.Sprintf(`{"From":%q,"To":%q,"Op":"op-2"}`+"\n", first.Revision, strings.Repeat("1", 40))
	assert.OK(t, os.WriteFile(file, append(b, lost+lost[:30]...), 0o600))
	p = reopen(t, p, repo.URL, dir)
	ask.Op = "op-2"
	assert.Is(t, assert.ErrOf(p.Commit(t.Context(), ask)), providers.ErrConflict, "what never happened")
	write(t, p, "more", "y")
	p = reopen(t, p, repo.URL, dir)
	ask.Op = "op-1"
	again, err := p.Commit(t.Context(), ask)
	assert.True(t, err == nil && again.Revision == first.Revision, "later", again, err)
	repo.Git("--git-dir", dir, "fsck", "--strict")
}

// The git program and we keep out of each other's way, and a commit that could
// not be made leaves all as it was.
func TestLockedByGit(t *testing.T) {
	_, repo, _ := seeded(t)
	dir := place(t)
	p := clone(t, repo.URL, in(dir))
	lock := filepath.Join(dir, "refs/heads/main.lock")
	assert.OK(t, os.WriteFile(lock, nil, 0o644))
	_, err := p.Write(t.Context(), at("a"), providers.String("x"), always)
	assert.Is(t, err, providers.ErrUnavailable, "write while git has locked the branch")
	reads(t, p, "a", "one\n")
	assert.OK(t, os.Remove(lock))
	write(t, p, "a", "x")
	assert.Equal(t, repo.Git("--git-dir", dir, "show", "main:a"), "x", "git sees")
}

// A clone works on without its remote, also when it is opened anew.
func TestOffline(t *testing.T) {
	server, repo, _ := seeded(t)
	dir := place(t)
	p := clone(t, repo.URL, in(dir))
	server.Stop()
	p = reopen(t, p, repo.URL, dir)
	write(t, p, "a", "offline")
	reads(t, p, "a", "offline")
	assert.Is(t, assert.ErrOf(p.Fetch(t.Context())), providers.ErrUnavailable, "fetch")
	assert.Is(t, assert.ErrOf(p.Push(t.Context(), providers.PushOptions{})), providers.ErrUnavailable, "push")
	_, err := git.Open(t.Context(), git.Options{URL: repo.URL, Dir: place(t)})
	assert.Is(t, err, providers.ErrUnavailable, "a new clone")
}

// Errors of the remote have their kinds; that of a repository that has gone is
// not that of one without the branch.
func TestRemoteErrors(t *testing.T) {
	server, repo, _ := seeded(t)
	token := "wrong"
	reveal := func(o *git.Options) {
		o.Credentials = func(context.Context) (map[string]string, error) { return map[string]string{"token": token}, nil }
	}
	server.Require("right")
	_, err := git.Open(t.Context(), git.Options{URL: repo.URL, Dir: place(t)})
	assert.Is(t, err, providers.ErrUnauthenticated, "open without a token")
	token = "right" // it is asked for each time
	p := clone(t, repo.URL, reveal)
	write(t, p, "a", "x")
	token = "wrong"
	_, err = p.Push(t.Context(), providers.PushOptions{})
	assert.Is(t, err, providers.ErrUnauthenticated, "push with a token that ended")
	token = "right"

	hook := filepath.Join(repo.Dir, "hooks/pre-receive")
	assert.OK(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	assert.OK(t, os.WriteFile(hook, []byte("#!/bin/sh\necho 'GH006: Protected branch update failed' >&2\nexit 1\n"), 0o755))
	_, err = p.Push(t.Context(), providers.PushOptions{})
	assert.Is(t, err, providers.ErrPermission, "push that a hook refuses")
	assert.True(t, err != nil && strings.Contains(err.Error(), "GH006") && strings.Contains(err.Error(), "pre-receive hook declined"), "it does not say why:", err)
	assert.OK(t, os.Remove(hook))

	_, err = git.Open(t.Context(), git.Options{URL: server.URL + "/acme/none.git", Dir: place(t), Credentials: func(context.Context) (map[string]string, error) {
		return map[string]string{"token": token}, nil
	}})
	assert.Is(t, err, providers.ErrNotExist, "open of what is not there")
	assert.OK(t, os.Rename(repo.Dir, repo.Dir+".gone"))
	for what, call := range map[string]func() error{
		"fetch": func() error { _, err := p.Fetch(t.Context()); return err },
		"push":  func() error { _, err := p.Push(t.Context(), providers.PushOptions{}); return err },
	} {
		assert.Is(t, call(), providers.ErrUnavailable, what+" of what is not there any more")
		assert.False(t, errors.Is(call(), providers.ErrNotExist), what, "it looks as if the branch were new")
	}
}

// A push goes nowhere but where it is meant to go; a fetch may be sent
// elsewhere, and the token stays.
func TestRedirects(t *testing.T) {
	server, repo, _ := seeded(t)
	var told []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		told = append(told, r.Method+" "+user+password)
		http.Error(w, "not here", http.StatusNotFound)
	}))
	defer elsewhere.Close()
	p := clone(t, repo.URL, func(o *git.Options) {
		o.Credentials = func(context.Context) (map[string]string, error) { return map[string]string{"token": "secret"}, nil }
	})
	write(t, p, "a", "x")
	server.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, elsewhere.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		return true
	})
	assert.Is(t, assert.ErrOf(p.Push(t.Context(), providers.PushOptions{})), providers.ErrPermission, "push that is redirected")
	assert.Equal(t, len(told), 0, "the other server was asked:", told)
	assert.Is(t, assert.ErrOf(p.Fetch(t.Context())), providers.ErrUnavailable, "fetch that is redirected to nothing")
	assert.Slice(t, told, []string{"GET "}, "the other server was asked")
}

// What the remote lost in a forced push, and what a pull left behind, stays.
func TestNothingIsThrownAway(t *testing.T) {
	_, repo, other := seeded(t)
	dir := place(t)
	p := clone(t, repo.URL, in(dir))
	begin := assert.Of(p.Head(t.Context())).OK(t)
	other.Write(map[string]string{"a": "theirs\n"})
	other.Commit("main", "theirs")
	theirs := assert.Of(p.Fetch(t.Context())).OK(t)
	write(t, p, "a", "ours")
	ours := assert.Of(p.Head(t.Context())).OK(t)
	assert.OK(t, p.Adopt(t.Context(), ours, begin))
	other.Git("push", "-q", "-f", "origin", string(begin)+":refs/heads/main")
	assert.OK(t, assert.ErrOf(p.Fetch(t.Context())))
	p = reopen(t, p, repo.URL, dir)
	for r, want := range map[providers.Revision]string{theirs: "theirs\n", ours: "ours"} {
		past := assert.Of(p.At(t.Context(), r)).OK(t)
		reads(t, past, "a", want)
	}
	repo.Git("--git-dir", dir, "gc", "-q", "--prune=now")
	left := repo.Git("--git-dir", dir, "for-each-ref", "--format=%(objectname)", "refs/wsmount")
	assert.True(t, strings.Contains(left, string(theirs)) && strings.Contains(left, string(ours)), "references to", left, "want to", theirs, "and", ours)
	reads(t, reopen(t, p, repo.URL, dir), "a", "one\n") // from what git has packed anew
}

// Bases are those that git finds, also when all commits were made at once and
// their times say nothing.
func TestBases(t *testing.T) {
	_, repo, other := seeded(t)
	r := rand.New(rand.NewPCG(tier.Seed(t), 4))
	tree := strings.TrimSpace(other.Git("rev-parse", "HEAD^{tree}"))
	commits := []string{strings.TrimSpace(other.Git("rev-parse", "HEAD"))}
	for i := range 25 {
		args := []string{"commit-tree", tree, "-m", fmt.Sprint(i)}
		for _, p := range slices.Compact([]int{r.IntN(len(commits)), r.IntN(len(commits))}) {
			args = append(args, "-p", commits[p])
		}
		commits = append(commits, strings.TrimSpace(other.Git(args...)))
	}
	all := []string{"commit-tree", tree, "-m", "all"}
	for _, c := range commits {
		all = append(all, "-p", c)
	}
	other.Git("push", "-q", "origin", strings.TrimSpace(other.Git(all...))+":refs/heads/main")
	p := clone(t, repo.URL)
	for range tier.Pick(25, 60) {
		a, b := commits[r.IntN(len(commits))], commits[r.IntN(len(commits))]
		base := assert.Of(p.Base(t.Context(), providers.Revision(a), providers.Revision(b))).OK(t)
		want := strings.Fields(other.Git("merge-base", "--all", a, b))
		assert.True(t, slices.Contains(want, string(base)), "base of", a, b, base, "git says", want)
	}
}

// An unchanged remote costs one request; a commit none.
func TestRequests(t *testing.T) {
	server, repo, _ := seeded(t)
	p := clone(t, repo.URL)
	server.Requests()
	write(t, p, "a", "x")
	reads(t, p, "dir/b", "two\n")
	assert.Equal(t, len(server.Requests()), 0, "work here asks")
	assert.OK(t, assert.ErrOf(p.Fetch(t.Context())))
	assert.Equal(t, len(server.Requests()), 1, "a fetch of nothing asks")
}

// Entries that are no files: submodules are directories without entries, and
// what no file system here can show is left as it is.
func TestOddEntries(t *testing.T) {
	_, repo, other := seeded(t)
	head := strings.TrimSpace(other.Git("rev-parse", "HEAD"))
	other.Git("update-index", "--add", "--cacheinfo", "160000,"+head+",sub/module")
	long := strings.Repeat("n", 300)
	other.Git("update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(other.Git("rev-parse", "HEAD:a"))+",dir/"+long)
	other.Git("commit", "-q", "-m", "odd")
	other.Git("push", "-q", "origin", "HEAD:main")
	dir := place(t)
	p := clone(t, repo.URL, in(dir))
	page := assert.Of(p.List(t.Context(), providers.Locator{}, providers.ListOptions{Recursive: true})).OK(t)
	var names []string
	for _, e := range page.Entries {
		names = append(names, fmt.Sprint(e.Locator, " ", e.Kind))
	}
	assert.Slice(t, names, []string{"a file", "dir dir", "dir/b file", "sub dir", "sub/module dir"}, "listed")
	for l, want := range map[string]string{"": "sub/module", "sub": "sub/module", "sub/module": "sub/module", "dir": "", "a": "", "none": "", "sub/module/x": ""} {
		asked, _ := providers.ParseLocator(l)
		got, found, err := p.Submodule(t.Context(), asked)
		assert.OK(t, err)
		assert.True(t, found == (want != "") && got.String() == want, "the submodule at or below", l, got, found, "want", want)
	}
	_, err := p.Write(t.Context(), at("sub/module/x"), providers.String("x"), always)
	assert.Is(t, err, providers.ErrPermission, "write in a submodule")
	for _, name := range []string{".git", "dir/.GIT/config", "git~1"} {
		_, err = p.Write(t.Context(), at(name), providers.String("x"), always)
		assert.Is(t, err, providers.ErrInvalid, "write of "+name)
	}
	write(t, p, "dir/new", "x")
	write(t, p, "sub/file", "y")
	tree := repo.Git("--git-dir", dir, "ls-tree", "-r", "--name-only", "main")
	assert.Equal(t, tree, "a\ndir/b\ndir/new\ndir/"+long+"\nsub/file\nsub/module\n", "the tree")
	repo.Git("--git-dir", dir, "fsck", "--strict")
}

// The name of a branch becomes that of a file, also when a server chooses it.
func TestHostileBranch(t *testing.T) {
	server, repo, _ := seeded(t)
	server.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		line := func(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		id := strings.Repeat("1", 40)
		fmt.Fprint(w, line("# service=git-upload-pack\n"), "0000",
			line(id+" HEAD\x00symref=HEAD:refs/heads/../../../../evil\n"), line(id+" refs/heads/../../../../evil\n"), "0000")
		return true
	})
	dir := place(t)
	_, err := git.Open(t.Context(), git.Options{URL: repo.URL, Dir: dir})
	assert.Is(t, err, providers.ErrInvalid, "a branch that leads elsewhere")
	server.Hook(nil)
	p := clone(t, repo.URL)
	for _, name := range []string{"../x", "a..b", "a/.b", "x.lock", "a b", "-x", "a//b", "@{x", "a\\b"} {
		_, err := p.Push(t.Context(), providers.PushOptions{Branch: name})
		assert.Is(t, err, providers.ErrInvalid, "push to "+name)
	}
}

// However many commits there are, there are few packs, and the history is whole.
func TestManyCommits(t *testing.T) {
	_, repo, _ := seeded(t)
	dir := place(t)
	p := clone(t, repo.URL, in(dir))
	const commits = 150
	for i := range commits {
		write(t, p, fmt.Sprint("f", i%7), fmt.Sprint("content ", i))
	}
	assert.OK(t, p.Close()) // which waits for what is being packed
	packs, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
	assert.True(t, err == nil && len(packs) <= commits/2, len(packs), "packs", err)
	repo.Git("--git-dir", dir, "fsck", "--strict")
	assert.Equal(t, strings.TrimSpace(repo.Git("--git-dir", dir, "rev-list", "--count", "HEAD")), fmt.Sprint(commits+1), "commits")
	p = clone(t, repo.URL, in(dir))
	reads(t, p, "f0", "content 147")
}
