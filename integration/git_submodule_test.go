package integration

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A submodule is an empty directory that stays as it is: a program hears at once that it
// cannot be changed, and so the two sides never differ.
func TestGitSubmodules(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.other.Write(map[string]string{"f": "f\n", "top/f": "f\n"})
	g.other.Commit("main", "begin")
	head := strings.TrimSpace(g.other.Git("rev-parse", "HEAD"))
	for _, path := range []string{"top/module", "only"} {
		g.other.Git("update-index", "--add", "--cacheinfo", "160000,"+head+","+path)
		g.other.Git("config", "-f", g.other.Dir+"/.gitmodules", "submodule."+path+".path", path)
	}
	g.other.Git("add", ".gitmodules")
	g.other.Git("commit", "-q", "-m", "submodules")
	g.other.Git("push", "-q", "origin", "HEAD:main")
	g.workspace("site", "commit: {on: manual}, push: {on: per-commit}")
	m := g.w.Mount("@acme/site")
	before := g.repo.Git("ls-tree", "-r", "main")
	for _, script := range []string{"mv top top2", "mv top/module top/other", "rm -rf only", "rm -rf top/module", "echo x >only/x", "mkdir only/d", "ln f only/f"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "cd '"+m.Dir+"' && "+script).CombinedOutput()
		assert.True(t, err != nil && strings.Contains(strings.ToLower(string(out)), "read-only file system"), script, err, out)
	}
	said := g.read(m.Dir + "/.wsmount/errors.log")
	assert.True(t, strings.Contains(said, "only is a submodule") && strings.Contains(said, "top/module is a submodule"), "errors.log says", said)
	g.check(os.WriteFile(m.Dir+"/top/g", []byte("g\n"), 0o644))
	g.w.MustRun("commit", m.Dir)
	m.Stop()
	want := strings.Replace(before, "\ttop/f\n", "\ttop/f\n"+strings.TrimSpace(g.repo.Git("ls-tree", "main", "top/g"))+"\n", 1)
	got := g.repo.Git("ls-tree", "-r", "main")
	assert.True(t, got == want && strings.Contains(got, "160000 commit"), "the server has", got, "want", want)
}
