package integration

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Several workspaces of one repository ask the server for its objects once, are
// whole, and keep their own work. Proportional memory and the time of a mount are
// for the benchmark.
func TestWorkspacesOfOneRepository(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.server.Require(gitToken)
	g.seed()
	want := g.lines(g.other.Dir)
	for i := range 4 {
		slug := "site" + strconv.Itoa(i)
		g.workspace(slug, "pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-turn}")
		g.server.Requests()
		mnt := g.w.Mount("@acme/" + slug).Dir
		fetches := len(slices.DeleteFunc(g.server.Requests(), func(r string) bool {
			return !strings.HasPrefix(r, "POST ") || !strings.HasSuffix(r, "/git-upload-pack")
		}))
		if first := i == 0; fetches != 0 && !first || fetches != 1 && first {
			t.Errorf("mount %d asked for %d packs", i, fetches)
		}
		if got := g.lines(mnt); !slices.Equal(got, want) {
			t.Errorf("mount %d shows\n%s\nwant\n%s", i, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		g.check(os.WriteFile(mnt+"/mine-"+slug, []byte(slug), 0o644))
		if i > 0 {
			if _, err := os.Stat(mnt + "/mine-site0"); err == nil {
				t.Errorf("mount %d has what the first has not sent", i)
			}
		}
	}
}
