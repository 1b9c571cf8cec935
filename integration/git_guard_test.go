package integration

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A file that is too large, and one that holds the token of the workspace, are
// held back from the commit of a turn, and nothing else with them. Who unmounts
// is told; what was cured goes.
func TestGitHoldsBack(t *testing.T) {
	t.Parallel()
	g := newGitStage(t)
	g.seed()
	g.server.Require(gitToken)
	g.workspace("guarded", "pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-commit}")
	m := g.w.Mount("@acme/guarded")
	g.event(m, "turn-start")
	g.check(os.WriteFile(m.Dir+"/dataset", nil, 0o644))
	g.check(os.Truncate(m.Dir+"/dataset", 101<<20))
	g.check(os.WriteFile(m.Dir+"/.env", []byte("GITHUB_TOKEN="+gitToken+"\n"), 0o600))
	g.check(os.WriteFile(m.Dir+"/fine", []byte("fine\n"), 0o644))
	var got map[string]any
	end := g.w.Run("event", "--json", m.Dir, "turn-end")
	g.check(json.Unmarshal([]byte(end.Out), &got))
	assert.True(t, end.Code == 7 && got["heldBack"] == 2.0 && got["committed"] == 1.0 && got["pushed"] == 1.0, "the end of the turn answers", end.Code, got)
	assert.Equal(t, g.repo.Git("show", "--format=", "--name-only", "main"), "fine\n", "the commit")
	status, large, secret := strings.Join(strings.Fields(g.w.MustRun("status", m.Dir)), " "), "dataset: 105906176 bytes, and a commit takes files of up to 100 MiB", ".env: it holds the value of the secret github-token"
	assert.True(t, contains(status, large, secret), "status says:", status)
	r := g.w.Run("umount", m.Dir)
	assert.True(t, r.Code == 7 && contains(r.Err, "dataset", ".env", "github-token") && !strings.Contains(r.Err+end.Out+status, gitToken), "umount answers", r.Code, r.Err)
	m.WaitGone()

	m.Start() // nothing has been asked of the server since
	r = g.w.Run("commit", m.Dir)
	assert.True(t, r.Code == 7 && contains(r.Out+r.Err, "2 held back"), "a commit after a restart answers", r.Code, r.Out, r.Err)
	g.check(os.Truncate(m.Dir+"/dataset", 1<<10))
	g.check(os.WriteFile(m.Dir+"/.env", []byte("GITHUB_TOKEN=$TOKEN\n"), 0o600))
	m.Stop()
	assert.Equal(t, g.repo.Git("show", "main:.env"), "GITHUB_TOKEN=$TOKEN\n", "what was cured")
	g.sound()
}
