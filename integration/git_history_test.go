package integration

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// committedOnce mounts a repository of one commit, whose tree was, and commits a change.
func committedOnce(t *testing.T) (g *gitStage, m *harness.Mount, was []string) {
	t.Helper()
	g = newGitStage(t)
	g.seed()
	was = g.lines(g.other.Dir)
	g.workspace("past", "pull: {on: turn-start}, commit: {on: manual}, push: {on: per-commit}")
	m = g.w.Mount("@acme/past")
	g.check(os.WriteFile(m.Dir+"/README.md", []byte("later\n"), 0o644))
	g.check(os.RemoveAll(m.Dir + "/many/1"))
	g.w.MustRun("commit", m.Dir)
	g.arrives(m, "the second commit")
	return g, m, was
}

func (g *gitStage) revision(of string) string { return strings.TrimSpace(g.repo.Git("rev-parse", of)) }

// The tree of every commit can be read below .wsmount/history, as it was, by the
// owner of the mount.
func TestGitHistory(t *testing.T) {
	t.Parallel()
	g, m, was := committedOnce(t)
	first, second := g.revision("main~1"), g.revision("main")
	past := filepath.Join(m.Dir, ".wsmount", "history")
	g.same("the first commit", g.lines(filepath.Join(past, first)), was)
	g.same("the first commit by a part of its name", g.lines(filepath.Join(past, first[:7])), was)
	g.same("the second commit", g.lines(filepath.Join(past, second)), g.lines(m.Dir))
	for _, path := range []string{strings.Repeat("0", 40), first[:3], second + "/many/1", first + "/README.md/x", first + "/.wsmount"} {
		_, err := os.Lstat(filepath.Join(past, path))
		assert.True(t, (errors.Is(err, fs.ErrNotExist) || strings.Contains(path, "README.md/")) && err != nil, path, err)
	}
	for what, err := range map[string]error{
		"write": os.WriteFile(filepath.Join(past, first, "README.md"), nil, 0o600), "remove": os.Remove(filepath.Join(past, first, "README.md")),
		"make": os.Mkdir(filepath.Join(past, first, "x"), 0o700),
	} {
		assert.False(t, !errors.Is(err, fs.ErrPermission) && !strings.Contains(err.Error(), "read-only"), "the past can be changed:", what, err)
	}
	info, err := os.Stat(filepath.Join(past, first))
	assert.True(t, err == nil && info.Mode().Perm()&0o077 == 0, "others may read the past:", info, err)
}

// A commit is a state like others: what went into it is listed, what it changed is
// shown, and a restore to it is a new change.
func TestGitByCommit(t *testing.T) {
	t.Parallel()
	g, m, was := committedOnce(t)
	first, second := g.revision("main~1"), g.revision("main")
	log := g.w.MustRun("log", m.Dir, "--commit", second[:8])
	assert.True(t, strings.Contains(log, "README.md") && strings.Contains(log, "commit "+second[:10]), "the log of the second commit:", log)
	log = g.w.MustRun("log", m.Dir, "--commit", first[:8])
	assert.True(t, strings.Contains(log, "no local change went into "+first[:8]) && strings.Contains(log, "wsmount diff "+m.Dir), "the log of somebody else's commit:", log)
	want := "--- README.md@before commit:" + second[:8] + "\n+++ README.md@commit:" + second[:8] + "\n@@ -1,1 +1,1 @@\n-hello\n+later\n"
	for _, args := range [][]string{{"README.md", "--commit", second[:8]}, {"--commit", second[:8]}} {
		diff := g.w.MustRun(append([]string{"diff", m.Dir}, args...)...)
		assert.True(t, strings.HasPrefix(diff, want), args, "the diff of the second commit:", diff)
	}
	assert.Contains(t, g.w.MustRun("diff", m.Dir, "--commit", second[:8]+".."+first[:8]), "-later\n+hello\n", "the diff of two commits")
	g.check(os.WriteFile(m.Dir+"/built.tmp", []byte("ignored\n"), 0o644))
	g.w.MustRun("restore", m.Dir, ".", "--commit", first[:6])
	g.check(os.Remove(m.Dir + "/built.tmp")) // it was ignored, so it stayed
	g.same("what was restored", g.lines(m.Dir), was)
	g.w.MustRun("commit", m.Dir)
	g.arrives(m, "the third commit")
	again := g.repo.Git("diff", first, "main")
	assert.True(t, again == "" && strings.TrimSpace(g.repo.Git("rev-list", "--count", "main")) == "3", "the commit of the restore differs from what was restored:", again)
}

// What was committed here and not pushed goes where another has renamed the file
// meanwhile, and of a log that is declared so the lines of both are kept, as long
// as nobody has changed the same.
func TestGitFollowsRenames(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.seed()
	g.other.Write(map[string]string{".gitattributes": "*.log merge=union\n", "work.log": "begin\n"})
	g.other.Commit("main", "a log")
	g.workspace("moved", "pull: {on: turn-start}, commit: {on: manual}, push: {on: manual}")
	m := g.w.Mount("@acme/moved")
	g.check(os.WriteFile(m.Dir+"/docs/a.md", []byte("ours\n"), 0o644))
	g.check(os.Rename(m.Dir+"/docs/deep", m.Dir+"/deeper"))
	g.check(os.WriteFile(m.Dir+"/work.log", []byte("begin\nours\n"), 0o644))
	g.w.MustRun("commit", m.Dir)

	g.other.Git("mv", "docs/a.md", "plan.md")
	g.other.Write(map[string]string{"docs/deep/er/b.md": "theirs\n", "work.log": "begin\ntheirs\n"})
	g.other.Commit("main", "theirs")
	g.w.MustRun("pull", m.Dir)
	for path, want := range map[string]string{"plan.md": "ours\n", "deeper/er/b.md": "theirs\n", "work.log": "begin\ntheirs\nours\n"} {
		got, err := os.ReadFile(filepath.Join(m.Dir, path))
		assert.True(t, err == nil && string(got) == want, path, "is", got, err, "want", want)
	}
	for _, path := range []string{"docs/a.md", "docs/deep"} {
		assert.Is(t, assert.ErrOf(os.Lstat(filepath.Join(m.Dir, path))), fs.ErrNotExist, path, "is still there")
	}
	g.w.MustRun("push", m.Dir)
	g.arrives(m, "what was made anew")
	g.sound()
}
