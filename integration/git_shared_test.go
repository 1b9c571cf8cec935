package integration

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
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
		first := i == 0
		assert.True(t, (fetches == 0 || first) && (fetches == 1 || !first), "mount", i, "asked for", fetches, "packs")
		got := g.lines(mnt)
		assert.True(t, slices.Equal(got, want), "mount", i, "shows", strings.Join(got, "\n"), "want", strings.Join(want, "\n"))
		g.check(os.WriteFile(mnt+"/mine-"+slug, []byte(slug), 0o644))
		if i > 0 {
			assert.True(t, assert.ErrOf(os.Stat(mnt+"/mine-site0")) != nil, "mount", i, "has what the first has not sent")
		}
	}
}
