package integration

import (
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// What .gitignore says stays here while it is untracked, and is no obstacle to
// pulls. A rule that another takes away by a push lets it go.
func TestGitIgnores(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.seed() // which ignores *.tmp
	g.other.Write(map[string]string{"docs/.gitignore": "!keep.tmp\n/out/\n", "docs/out/tracked": "1\n"})
	g.other.Git("add", "-f", "docs/out/tracked")
	g.other.Commit("main", "more rules")
	g.workspace("ignores", "pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-commit}")
	m := g.w.Mount("@acme/ignores")
	g.event(m, "turn-start")
	for _, name := range []string{"a.tmp", "docs/b.tmp", "docs/keep.tmp", "docs/out/new", "docs/out/tracked", "new"} {
		g.check(os.WriteFile(m.Dir+"/"+name, []byte("here\n"), 0o644))
	}
	changed := func() string {
		return strings.Join(strings.Fields(g.repo.Git("show", "--format=", "--name-only", "main")), " ")
	}
	g.event(m, "turn-end")
	assert.Equal(t, changed(), "docs/keep.tmp docs/out/tracked new", "the commit")

	g.other.Git("pull", "-q", "--ff-only", "origin", "main")
	g.other.Write(map[string]string{".gitignore": "*.log\n"})
	g.other.Commit("main", "fewer rules")
	g.event(m, "turn-start")
	g.same("what the pull brought", g.lines(m.Dir+"/.gitignore"), []string{"100644 . *.log\n"})
	g.event(m, "turn-end")
	assert.Equal(t, changed(), "a.tmp docs/b.tmp", "with fewer rules the commit")
	m.Stop()
	g.sound()
}
