package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/tier"
)

// program runs git in a mount, as a person does there.
func (g *gitStage) program(dir string, args ...string) (out string, err error) {
	g.t.Helper()
	cmd := exec.CommandContext(context.Background(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.w.Path("home"), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_PAGER=cat", "GIT_TRACE2_PERF=" + g.traced}
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// Program runs git and fails the test with it.
func (g *gitStage) programs(dir string, args ...string) string {
	g.t.Helper()
	out, err := g.program(dir, args...)
	assert.OK(g.t, err, "git", strings.Join(args, " "), out)
	return out
}

// likeAWorkTree has git say the same of the mount as of a clone with the same
// files on a disk.
func (g *gitStage) likeAWorkTree(m *harness.Mount, what string) {
	g.t.Helper()
	g.other.Git("fetch", "-q", "origin")
	head := strings.TrimSpace(g.programs(m.Dir, "rev-parse", "HEAD"))
	g.other.Git("reset", "-q", "--hard", head)
	g.other.Git("clean", "-qfdx")
	out, err := exec.CommandContext(g.t.Context(), "rsync", "-a", "--delete", "--exclude=/.git", m.Dir+"/", g.other.Dir+"/").CombinedOutput()
	assert.Must(g.t, err == nil, "rsync:", err, out)
	commands := [][]string{{"status", "--porcelain"}, {"status", "--porcelain", "--ignored", "-uall"}, {"diff"}, {"diff", "--cached"}, {"ls-files", "-s"}}
	if head != g.compared { // what is about a commit is so each time
		g.compared = head
		commands = append(commands, []string{"log", "--format=%H %s"}, []string{"show", "--stat"}, []string{"blame", "-s", "docs/deep/er/b.md"},
			[]string{"describe", "--always", "--dirty"}, []string{"rev-parse", "--abbrev-ref", "HEAD"}, []string{"grep", "-c", "file"})
	}
	for _, args := range commands {
		want, got := g.other.Git(args...), g.programs(m.Dir, args...)
		assert.Equal(g.t, got, want, what, "git", strings.Join(args, " "), "says in the mount")
	}
}

// In a mount the git program sees a work tree of which nothing is committed but
// by policy. It is right about everything, before and after changes, commits and pulls.
func TestGitProgram(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "git", "rsync")
	g := newGitStage(t)
	g.seed()
	g.other.Write(map[string]string{"docs/.gitignore": "/deep/made\n!*.tmp\n", "kept.tmp": "tracked, and ignored\n",
		"gone/with/all": "x\n", "gone/with/more": "y\n", "gone/z": "z\n", "again/made/before": "x\n", "again/kept/not": "y\n"})
	g.other.Git("add", "-f", "kept.tmp")
	g.other.Commit("main", "more")
	g.workspaceWith("tree", "config: {repo: acme/site, branch: main}, exclude: [out/, \"**/*.log\"], "+
		"sync: {pull: {on: turn-start}, commit: {on: manual}, push: {on: per-commit}}", "")
	m := g.w.Mount("@acme/tree")
	g.likeAWorkTree(m, "after the clone")
	assert.Equal(t, g.programs(m.Dir, "status", "--porcelain", "--ignored"), "", "unchanged, and git")
	entries, err := os.ReadDir(m.Dir)
	g.check(err)
	var listed []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".git") {
			listed = append(listed, e.Name())
		}
	}
	g.same("what is listed for git", listed, []string{".git", ".gitignore"})

	g.check(os.WriteFile(m.Dir+"/README.md", []byte("changed\n"), 0o644))
	for _, dir := range []string{"new/dir", "out/much", "docs/deep/made"} {
		g.check(os.MkdirAll(m.Dir+"/"+dir, 0o755))
	}
	for _, name := range []string{"out/much/x", "docs/only-here.log", "docs/deep/made/x", "docs/y.tmp", "many/2/z.log"} {
		g.check(os.WriteFile(m.Dir+"/"+name, []byte("stays here, or is ignored\n"), 0o644))
	}
	g.check(os.WriteFile(m.Dir+"/new/dir/tool", []byte("#!/bin/sh\n"), 0o755))
	g.check(os.WriteFile(m.Dir+"/new/ignored.tmp", []byte("x"), 0o644))
	g.check(os.Rename(m.Dir+"/many/3", m.Dir+"/many/moved"))
	g.check(os.RemoveAll(m.Dir + "/gone"))
	g.check(os.RemoveAll(m.Dir + "/again"))
	g.check(os.MkdirAll(m.Dir+"/again/made", 0o755))
	g.check(os.WriteFile(m.Dir+"/again/made/x", []byte("new\n"), 0o644))
	g.check(os.Remove(m.Dir + "/docs/a.md"))
	g.check(os.Chmod(m.Dir+"/bin/run", 0o644))
	g.check(os.Remove(m.Dir + "/link"))
	g.check(os.Symlink("elsewhere", m.Dir+"/link"))
	f, err := os.OpenFile(m.Dir+"/many/1/1.txt", os.O_RDWR, 0)
	g.check(err)
	_, err = f.WriteString("not closed yet")
	g.check(err)
	g.likeAWorkTree(m, "after changes")
	g.check(f.Close())

	index, err := os.Open(filepath.Join(m.Dir, strings.TrimSpace(strings.TrimPrefix(g.read(m.Dir+"/.git"), "gitdir: ")), "index"))
	g.check(err)
	before, err := index.Stat()
	g.check(err)
	g.w.MustRun("commit", m.Dir)
	if after, err := index.Stat(); err != nil || after.Size() != before.Size() {
		t.Errorf("an index that was open before a commit has %v, %v and not %d bytes", after, err, before.Size())
	}
	g.arrives(m, "the commit")
	g.likeAWorkTree(m, "after a commit")

	g.other.Git("checkout", "-q", "-B", "main", "origin/main")
	g.other.Git("reset", "-q", "--hard")
	g.other.Git("clean", "-qfdx")
	g.other.Write(map[string]string{"docs/theirs.md": "theirs\n", "many/2/2.txt": "theirs\n"})
	g.other.Commit("main", "theirs")
	g.w.MustRun("pull", m.Dir)
	g.check(os.WriteFile(m.Dir+"/mine", []byte("mine\n"), 0o644))
	g.likeAWorkTree(m, "after a pull")

	g.check(os.Remove(m.Dir + "/docs/only-here.log"))
	g.check(os.Rename(m.Dir+"/many/2/z.log", m.Dir+"/many/3.log"))
	g.likeAWorkTree(m, "after changes of what stays here")
	g.check(index.Close())
	m.Stop()
	g.sound()
}

// The git program is right about what was changed before a kill, and changes nothing.
func TestGitProgramOnlyReads(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "git", "rsync")
	g := newGitStage(t)
	g.seed()
	g.other.Write(map[string]string{"docs/a.md": "b\n"})
	g.other.Commit("main", "more")
	g.workspace("tree", "commit: {on: manual}")
	m := g.w.Mount("@acme/tree")
	g.check(os.WriteFile(m.Dir+"/README.md", []byte("changed\n"), 0o644))
	g.check(os.WriteFile(m.Dir+"/new", []byte("new\n"), 0o644))
	m.Kill()
	m.Start()
	g.likeAWorkTree(m, "after a kill")
	g.changesNothing(m)
}

func (g *gitStage) read(path string) string {
	g.t.Helper()
	b, err := os.ReadFile(path)
	g.check(err)
	return string(b)
}

// changesNothing has git refuse all that would write, with a line that says what
// to do instead.
func (g *gitStage) changesNothing(m *harness.Mount) {
	g.t.Helper()
	before, status := g.lines(m.Dir), g.programs(m.Dir, "status", "--porcelain")
	for _, args := range [][]string{
		{"add", "-A"}, {"commit", "-am", "x"}, {"checkout", "--", "README.md"}, {"checkout", "-b", "other"}, {"stash"}, {"reset", "--hard"},
		{"rm", "README.md"}, {"mv", "README.md", "x"}, {"init"}, {"merge", "HEAD~1"}, {"branch", "x"}, {"tag", "x"}, {"config", "a.b", "c"}, {"gc"},
	} {
		out, err := g.program(m.Dir, args...)
		silent := args[0] == "stash"
		assert.True(g.t, err != nil && (silent || strings.Contains(out, "commit-with--wsmount-commit")), "git", strings.Join(args, " "), err, out)
	}
	for _, name := range []string{".git", strings.TrimSpace(strings.TrimPrefix(g.read(m.Dir+"/.git"), "gitdir: "))} {
		path := filepath.Join(m.Dir, name)
		for what, err := range map[string]error{
			"remove": os.Remove(path), "remove all": os.RemoveAll(path), "rename": os.Rename(path, m.Dir+"/x"), "write": os.WriteFile(path, nil, 0o644),
			"make": os.Mkdir(path, 0o755), "put over it": os.Rename(m.Dir+"/README.md", path), "make in it": os.WriteFile(path+"/x", nil, 0o644),
			"chmod": os.Chmod(path, 0o777),
		} {
			assert.False(g.t, err == nil, name, "can be changed:", what)
		}
	}
	g.same("after what git refused", g.lines(m.Dir), before)
	g.same("and its status", []string{g.programs(m.Dir, "status", "--porcelain")}, []string{status})
}

// Each repository of a tree has a .git of its own, and is none of the files of the
// one around it. Where nothing has changed, git status reads no directory.
func TestGitProgramOfParts(t *testing.T) {
	t.Parallel()
	tier.RequireTools(t, "git")
	g := newGitStage(t)
	g.seed()
	lib := g.server.Create(t, "acme/lib")
	other := lib.Clone(g.w.Path("lib"))
	other.Write(map[string]string{"lib.go": "package lib\n"})
	other.Commit("main", "a library")
	const sync = "pull: {on: turn-start}, commit: {on: manual}"
	g.workspaceOf("lib", "repo: acme/lib, branch: main", sync, "")
	g.workspaceOf("app", "repo: acme/site, branch: main", sync, "metadata: { wsmount: { mounts: [ { at: /docs/lib/, source: \"@acme/lib\" } ] } }\n")
	m := g.w.Mount("@acme/app")
	inside := m.Dir + "/docs/lib"
	says := func(dir, what, want string) {
		t.Helper()
		assert.Equal(t, g.programs(dir, "status", "--porcelain"), want, what, "git")
	}
	trace := g.w.Path("trace")
	g.traced = trace
	says(m.Dir, "unchanged", "")
	g.traced = ""
	for _, none := range []string{"opendir:", "gitignore-invalidation:", "directory-invalidation:"} {
		assert.Contains(t, g.read(trace), none+"0\n", "not", none, "0")
	}
	says(inside, "the part, unchanged", "")
	g.check(os.WriteFile(inside+"/new.go", []byte("package lib\n"), 0o644))
	g.check(os.WriteFile(m.Dir+"/docs/new.md", []byte("new\n"), 0o644))
	says(m.Dir, "changed", "?? docs/new.md\n")
	says(inside, "the part, changed", "?? new.go\n")
	assert.Equal(t, strings.TrimSpace(g.programs(inside, "rev-parse", "--show-toplevel")), inside, "the part is in")
}
