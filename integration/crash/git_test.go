package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/internal/gate"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
)

// The same with a repository, to which somebody else pushes while the daemon is
// dead: each push of the next one is refused first, and what was committed is made
// anew on top of theirs.
func TestCrashGit(t *testing.T) {
	t.Parallel()
	t.Run("pushed", func(t *testing.T) {
		t.Parallel()
		newGitStage(t, 100*time.Millisecond).crash(5).run((*kills+1)/2, "after POST git-receive-pack")
	})
	t.Run("cut off", func(t *testing.T) {
		t.Parallel()
		f := newGitStage(t, tier.Pick(time.Hour, 3*time.Second)) // a queue of changes, and not of commits
		f.asks = !tier.Soak
		f.crash(6).queues().run(*kills/2, "at pwrite64")
	})
}

// A gitFar is a branch of a repository behind a gate.
type gitFar struct {
	*gated
	repo, other *gitserver.Repo // other is a clone of somebody else
	dead        int             // how often the daemon was
}

// newGitStage is newStage with a repository, and commits are made so often.
func newGitStage(t *testing.T, window time.Duration) *gitFar {
	t.Helper()
	server := gitserver.Start(t)
	g := gate.Open(t, server.URL)
	s := &stage{t: t, w: harness.New(t, harness.Options{})}
	f := &gitFar{gated: newGated(s, g, gitVerb), repo: server.Create(t, "acme/site")}
	s.far = f
	f.other = f.repo.Share(s.w.Path("other"))
	s.w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_endpoints: [ \"%[1]s 127.0.0.1\" ]\nproviders: { github: { base_url: %[1]q } }\n", g.Endpoint), 0o600)
	dir := s.w.Mkdir("ws", 0o755)
	s.w.Write("ws/WORKSPACE.md", harness.Manifest("@acme/stage", fmt.Sprintf("identity: [ { name: Bob, email: bob@acme.test } ]\n"+
		"storage: {inline: {provider: github, config: {repo: acme/site, branch: main}, "+
		"sync: {commit: {on: write, batch_window_ms: %d}, push: {on: per-commit}, pull: {ttl_seconds: 1}}}}\n", window.Milliseconds())), 0o644)
	s.w.MustRun("registry", "add", dir)
	return f
}

// crash prepares a run of kills.
func (f *gitFar) crash(which uint64) *crash {
	c := newCrash(f.t, f.stage, which)
	c.killed = func(what string) {
		f.dead++
		f.tamper(fmt.Sprint("others/", f.dead), []byte(what))
		if f.dead%10 == 1 {
			f.sound(what)
		}
	}
	f.t.Cleanup(func() { f.sound("in the end"); f.once() })
	return c
}

// gitVerb is what a request asks of a git server.
func gitVerb(r *http.Request) string {
	_, verb, _ := strings.Cut(r.URL.Path, ".git/")
	return r.Method + " " + verb
}

func (f *gitFar) calls() []string {
	return []string{"GET info/refs", "POST git-upload-pack", "POST git-receive-pack"}
}

func (f *gitFar) late() time.Duration { return 0 }
func (f *gitFar) emptyDirs() bool     { return false }

// put tries again: what a daemon asked for before it died may come in between.
func (f *gitFar) put(files map[string][]byte) (err error) {
	texts := map[string]string{}
	for path, content := range files {
		texts[path] = string(content)
	}
	for range 5 {
		f.take()
		f.other.Write(texts)
		f.other.Git("add", "-A")
		f.other.Git("commit", "-q", "-m", "theirs")
		if _, err = f.other.Try("push", "-q", "origin", "HEAD:refs/heads/main"); err == nil {
			break
		}
	}
	return err
}

// take has the clone show what the branch has.
func (f *gitFar) take() {
	if err := f.other.Follow("main"); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be empty
		f.t.Fatal(err)
	}
}

func (f *gitFar) lines() []string {
	f.take()
	return treeLines(f.t, f.other.Dir)
}

// sound has the git program look at every object, at the server and in the clone
// of the mount.
func (f *gitFar) sound(what string) {
	f.t.Helper()
	clones, err := filepath.Glob(f.w.Path("state/acme/stage/*/git"))
	assert.Must(f.t, err == nil && len(clones) == 1, "the clone of the mount:", clones, err)
	for _, dir := range append(clones, f.repo.Dir) {
		out, err := f.repo.Try("--git-dir", dir, "fsck", "--strict")
		assert.True(f.t, err == nil, what, dir, err, out)
	}
}

// once wants every commit to change something: one that was made twice does not.
func (f *gitFar) once() {
	f.t.Helper()
	trees := map[string]string{}
	for line := range strings.Lines(f.repo.Git("log", "--reverse", "--topo-order", "--format=%H %T %P", "main")) {
		words := strings.Fields(line)
		if trees[words[0]] = words[1]; len(words) == 3 && trees[words[2]] == words[1] {
			f.t.Errorf("commit %s changes nothing", words[0])
		}
	}
	f.t.Logf("%d commits", len(trees))
}
