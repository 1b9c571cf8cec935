package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// gitToken is what the server asks for. It must be nowhere on this disk but in
// the file that the host configuration names.
const gitToken = "token-of-the-test-4711"

// A gitStage is a workspace in a repository of a real server.
type gitStage struct {
	t        *testing.T
	w        *harness.World
	server   *gitserver.Server
	repo     *gitserver.Repo
	other    *gitserver.Repo // a clone of somebody else
	auth     string          // what auth.state.env names; "": nothing
	compared string          // the commit that git was last asked about in likeAWorkTree
	traced   string          // the file to which the git program in a mount writes what it does; "": none
}

func newGitStage(t *testing.T) *gitStage {
	t.Helper()
	g := &gitStage{t: t, w: harness.New(t, harness.Options{}), server: gitserver.Start(t), auth: "GITHUB_TOKEN"}
	g.repo = g.server.Create(t, "acme/site")
	g.other = g.repo.Share(g.w.Path("other"))
	g.w.Write("config/token", gitToken, 0o600)
	g.w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_endpoints: [ \"%[1]s 127.0.0.1\" ]\n"+
		"allow_overlap: [ { from: \"@acme/*\", to: \"@acme/*\" } ]\nproviders: { github: { base_url: %[1]q } }\nsecrets: { github-token: { file: %[2]q, allow: [\"@acme/*\"] } }\n",
		g.server.URL, g.w.Path("config/token")), 0o600)
	return g
}

// workspace registers @acme/slug with a sync block.
func (g *gitStage) workspace(slug, sync string) {
	g.t.Helper()
	g.workspaceOf(slug, "repo: acme/site, branch: main", sync, "")
}

// workspaceOf registers @acme/slug in a repository, with further blocks.
func (g *gitStage) workspaceOf(slug, config, sync, more string) {
	g.t.Helper()
	g.workspaceWith(slug, "config: {"+config+"}, sync: {"+sync+"}", more)
}

// workspaceWith registers @acme/slug with what its storage block says.
func (g *gitStage) workspaceWith(slug, storage, more string) {
	g.t.Helper()
	dir := g.w.Mkdir("ws-"+slug, 0o755)
	g.w.Write("ws-"+slug+"/WORKSPACE.md", harness.Manifest("@acme/"+slug, "identity: [ { name: Bob, email: bob@acme.test }, { name: Ops, email: ops@acme.test } ]\n"+
		"storage: {inline: {provider: github, auth: {state: {env: ["+g.auth+"]}}, "+storage+"}}\n"+more), 0o644)
	g.w.MustRun("registry", "add", dir)
}

// seed is a first commit with what a tree can have.
func (g *gitStage) seed() {
	g.t.Helper()
	g.other.Write(map[string]string{
		"README.md": "hello\n", "docs/a.md": "a\n", "docs/deep/er/b.md": "b\n", "bin/run": "#!/bin/sh\n", "name with é": "odd\n", "empty": "",
		"large": strings.Repeat("0123456789abcdef", 1<<17), ".gitignore": "*.tmp\n",
	})
	for name := range 50 {
		g.other.Write(map[string]string{fmt.Sprintf("many/%d/%d.txt", name%7, name): fmt.Sprintf("file %d\n", name)})
	}
	g.check(os.Chmod(filepath.Join(g.other.Dir, "bin/run"), 0o755))
	g.check(os.Symlink("docs/a.md", filepath.Join(g.other.Dir, "link")))
	g.other.Commit("main", "begin")
}

func (g *gitStage) check(err error) {
	g.t.Helper()
	assert.OK(g.t, err)
}

// lines is a line for each file and link of a tree: mode, name and content.
func (g *gitStage) lines(root string) (lines []string) {
	g.t.Helper()
	g.check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch rel, _ := filepath.Rel(root, path); {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".wsmount"):
			return filepath.SkipDir
		case d.Name() == ".git": // of a mount, where it leads to what is not listed
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			lines = append(lines, "120000 "+rel+" "+target)
			return err
		case d.Type().IsRegular():
			info, err := d.Info()
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			mode := "100644"
			if info.Mode()&0o100 != 0 {
				mode = "100755"
			}
			lines = append(lines, mode+" "+rel+" "+string(content))
			return err
		}
		return nil
	}))
	slices.Sort(lines)
	return lines
}

// fresh is what somebody who clones the branch now gets.
func (g *gitStage) fresh() []string {
	g.t.Helper()
	g.check(g.other.Follow("main"))
	return g.lines(g.other.Dir)
}

func (g *gitStage) same(what string, got, want []string) {
	g.t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			g.t.Fatalf("%s: line %d of %d and %d differs:\n%.100q\n%.100q", what, i, len(got), len(want), got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
		}
	}
}

// arrives waits until the server's branch has what a tree has.
func (g *gitStage) arrives(m *harness.Mount, what string) {
	g.t.Helper()
	looks, compared := 0, ""
	harness.Eventually(g.t, what+": it is at the server", func() bool {
		tip, err := os.ReadFile(filepath.Join(g.repo.Dir, "refs/heads/main"))
		g.check(err)
		if looks++; string(tip) == compared && looks%30 > 0 { // to compare takes long
			return false
		}
		compared = string(tip)
		return slices.Equal(g.fresh(), g.lines(m.Dir))
	})
}

// sound has the git program look at every object, at the server and in the
// clone of the mount.
func (g *gitStage) sound() {
	g.t.Helper()
	g.repo.Git("fsck", "--strict")
	clones, err := filepath.Glob(g.w.Path("state", "acme", "*", "*", "git"))
	assert.Must(g.t, err == nil && len(clones) != 0, "the clones of the mounts:", clones, err)
	for _, dir := range clones {
		g.repo.Git("--git-dir", dir, "fsck", "--strict")
	}
}

func (g *gitStage) event(m *harness.Mount, name string) map[string]any {
	g.t.Helper()
	var out map[string]any
	g.check(json.Unmarshal([]byte(g.w.MustRun("event", "--json", m.Dir, name)), &out))
	return out
}

// A repository is a tree of plain files. What is changed in it is committed and
// pushed a moment later, what others push comes with a pull, and a kill loses
// nothing of either.
func TestGitIsATree(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.seed()
	g.server.Require(gitToken)
	g.workspace("site", "pull: {on: turn-start}, commit: {on: write, batch_window_ms: 50}, push: {on: per-commit}")
	m := g.w.Mount("@acme/site")
	g.same("after the clone", g.lines(m.Dir), g.fresh())

	g.check(os.WriteFile(m.Dir+"/README.md", []byte("hello, world\n"), 0o644))
	g.check(os.MkdirAll(m.Dir+"/new/dir", 0o755))
	g.check(os.WriteFile(m.Dir+"/new/dir/tool", []byte("#!/bin/sh\nexit 0\n"), 0o755))
	g.check(os.Symlink("tool", m.Dir+"/new/dir/link"))
	g.check(os.Rename(m.Dir+"/many", m.Dir+"/moved"))
	g.check(os.Remove(m.Dir + "/docs/a.md"))
	g.check(os.Chmod(m.Dir+"/bin/run", 0o644))
	g.arrives(m, "what was changed here")
	got := g.repo.Git("log", "-1", "--format=%an <%ae>%n%(trailers)", "main")
	assert.True(t, strings.HasPrefix(got, "Bob <bob@acme.test>\n") && strings.Contains(got, "Co-authored-by: Ops <ops@acme.test>"), "the commit is by", got)

	g.other.Write(map[string]string{"docs/theirs.md": "theirs\n", "README.md": "hello, all\n"})
	g.other.Commit("main", "theirs")
	g.event(m, "turn-start")
	g.same("after a pull", g.lines(m.Dir), g.fresh())
	g.event(m, "turn-end")

	g.check(os.WriteFile(m.Dir+"/late", []byte("before the kill\n"), 0o644))
	want := g.lines(m.Dir)
	m.Kill()
	m.Start()
	g.same("after a kill", g.lines(m.Dir), want)
	g.arrives(m, "what was written before the kill")
	m.Stop()
	g.sound()
	g.nowhere(gitToken)
}

// nowhere looks for secrets in all that wsmount keeps.
func (g *gitStage) nowhere(secrets ...string) {
	g.t.Helper()
	g.check(filepath.WalkDir(g.w.Path("state"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, secret := range secrets {
			assert.False(g.t, bytes.Contains(content, []byte(secret)), "a secret is in", path)
		}
		return err
	}))
}

// Where the manifest says so, a turn is a commit, which is pushed when it ends.
// What others pushed meanwhile is no obstacle.
func TestGitCommitsATurn(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.seed()
	g.workspace("turns", "pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-commit}")
	m := g.w.Mount("@acme/turns")
	before := g.repo.Git("rev-parse", "main")
	g.event(m, "turn-start")
	for i := range 5 {
		g.check(os.WriteFile(fmt.Sprintf("%s/turn%d", m.Dir, i), []byte("of a turn\n"), 0o644))
	}
	assert.Equal(t, g.repo.Git("rev-parse", "main"), before, "in a turn the branch has gone on")
	g.other.Write(map[string]string{"theirs": "meanwhile\n"})
	g.other.Commit("main", "theirs")
	g.w.MustRun("event", m.Dir, "turn-end", "--var", "turnId=t1", "--var", "conversationId=c\x01\n1")
	g.arrives(m, "the turn")
	assert.Contains(t, g.repo.Git("log", "-1", "--format=%(trailers)", "main"), "Wsmount-Turn: t1\nWsmount-Conversation: c 1\n", "the turn's commit ends")
	g.same("and what others pushed", []string{g.repo.Git("show", "main:theirs"), g.repo.Git("show", "main:turn4")}, []string{"meanwhile\n", "of a turn\n"})

	g.check(os.WriteFile(m.Dir+"/unsaved", []byte("at the unmount\n"), 0o644))
	m.Stop()
	assert.Equal(t, g.repo.Git("show", "main:unsaved"), "at the unmount\n", "what the unmount had to push")
	g.sound()
}

// What a repository cannot be asked for yet, a mount refuses, and says what
// would do.
func TestGitRefusals(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.seed()
	g.server.Require("another token")
	for i, c := range []struct {
		sync, says string
		code       int
	}{
		{"push: {on: per-commit, pr_policy: auto}", "from the tracked branch to itself", 3},
		{"push: {branch_policy: per-turn, pr_policy: auto}", "providers.github.api_url", 3},
		{"push: {on: per-commit}", "credentials", 5},
	} {
		slug := fmt.Sprint("refused", i)
		g.workspace(slug, c.sync)
		r := g.w.Run("mount", "@acme/"+slug, g.w.Mkdir("mnt-"+slug, 0o755))
		assert.True(t, r.Code == c.code && strings.Contains(r.Err, c.says) && !strings.Contains(r.Err, gitToken), c.sync, "exit", r.Code, "want", c.code, "with", c.says, r.Err)
	}
}

// Files are as old as the commit that a clone began with, whenever they are first
// listed, and stay so; what a pull brings is as old as the pull.
func TestGitTimes(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.seed()
	day := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
	g.other.Git("commit", "-q", "--amend", "--no-edit", "--date", day.Format(time.RFC3339))
	g.other.Git("-c", "core.editor=true", "rebase", "-q", "--committer-date-is-author-date", "--root")
	g.other.Git("push", "-q", "--force", "origin", "HEAD:refs/heads/main")
	g.workspace("site", "pull: {on: turn-start}, commit: {on: manual}, push: {on: manual}")
	m := g.w.Mount("@acme/site")
	is := func(path string, want time.Time) {
		t.Helper()
		info, err := os.Stat(filepath.Join(m.Dir, path))
		g.check(err)
		got := info.ModTime()
		assert.True(t, got.Equal(want), path, "is of", got, "want", want)
	}
	is("README.md", day)
	m.Stop()
	m.Start()
	is("README.md", day)
	is("docs/deep/er/b.md", day)

	g.other.Write(map[string]string{"README.md": "theirs\n"})
	g.other.Commit("main", "theirs")
	begun := time.Now()
	g.event(m, "turn-start")
	is("docs/a.md", day)
	if info, err := os.Stat(m.Dir + "/README.md"); err != nil || info.ModTime().Before(begun) {
		t.Errorf("what was pulled after %v is of %v, %v", begun, info.ModTime(), err)
	}
	m.Stop()
}
