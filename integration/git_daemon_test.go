package integration

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// A daemonMount is a gitStage whose server is a git daemon, which nobody has secrets
// for.
type daemonMount struct {
	*gitStage
	daemon *gitserver.Daemon
}

// newDaemonMount has the host name a daemon that takes pushes.
func newDaemonMount(t *testing.T) *daemonMount {
	t.Helper()
	g := &daemonMount{gitStage: newGitStage(t)}
	g.auth, g.daemon = "", gitserver.StartDaemon(t, g.server, gitserver.Pushable)
	g.w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_overlap: [ { from: \"@acme/*\", to: \"@acme/*\" } ]\nproviders: { github: { base_url: %q } }\n"+
		"secrets: { github-token: { file: %q, allow: [\"@acme/*\"] } }\n", g.daemon.URL, g.w.Path("config/token")), 0o600)
	g.seed()
	return g
}

// refused checks that a mount ends with a code and words, before the server hears
// anything.
func (g *daemonMount) refused(slug string, code int, words ...string) {
	g.t.Helper()
	r := g.w.Run("mount", "@acme/"+slug, g.w.Mkdir("mnt-"+slug, 0o755))
	assert.True(g.t, r.Code == code && contains(r.Out+r.Err, words...) && !strings.Contains(r.Out+r.Err, gitToken), slug, "exit", r.Code, "want", code, "with", words, r.Out, r.Err)
	assert.Equal(g.t, g.daemon.Heard(), "", slug, "the daemon heard")
}

// A repository at a daemon is what one over HTTP is: cloned, changed, pushed and
// pulled, through times in which its server is away, or goes in the middle. That it
// proves nothing is told.
func TestGitDaemon(t *testing.T) {
	t.Parallel()
	g := newDaemonMount(t)
	g.workspace("site", "pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-commit}")
	const unproved = "the server is not authenticated"
	told := g.w.MustRun("resolve", "--explain", "@acme/site")
	assert.True(t, contains(told, g.daemon.URL, unproved), "resolve says", told)
	told = g.w.MustRun("doctor", "--json", "@acme/site")
	assert.True(t, contains(told, g.daemon.URL, "answers in", unproved), "doctor says", told)
	log := g.w.Path("log")
	m := g.w.Mount("@acme/site", "--log-file", log)
	assert.Contains(t, g.w.MustRun("status", "--json", m.Dir), unproved, "status says")
	text := g.read(log)
	assert.True(t, contains(text, "WARN", unproved), "the log says", text)
	g.turnsOfBoth(m)
	m.Stop()

	m = g.w.Mount("@acme/site", "--patience", "1s") // for a server that does not answer
	g.daemon.Away()
	g.later(m, "away", "refused")
	g.check(g.daemon.Back())
	g.w.Run("event", m.Dir, "turn-end") // which may be too slow for that
	g.arrives(m, "what was written while the server was away")
	var went atomic.Int32
	g.daemon.Hook(func(c net.Conn) bool { // as the daemon has begun to answer
		went.Add(1)
		asked := bufio.NewReader(c)
		for range 2 { // the service with its path, and the host
			_, _ = asked.ReadString(0)
		}
		fmt.Fprintf(c, "00b0%040d refs/he", 1)
		return true
	})
	g.later(m, "vanished", "did not say why")
	g.daemon.Hook(nil)
	g.w.Run("event", m.Dir, "turn-end")
	g.arrives(m, "what was written while the server went in the middle")
	assert.False(t, went.Load() == 0, "it never went")
	m.Stop()
	g.sound()
	for _, asked := range gitserver.Services(g.daemon.Heard()) {
		assert.True(t, strings.HasSuffix(asked, "pack /acme/site.git"), "the daemon was asked for", asked)
	}
}

// Nothing secret goes to a daemon, and none is reached but by the host's word.
func TestGitDaemonIsNotTrusted(t *testing.T) {
	t.Parallel()
	g := newDaemonMount(t)
	g.auth = "GITHUB_TOKEN"
	g.workspace("token", "push: {on: per-commit}")
	g.refused("token", exitDenied, "never sent to "+g.daemon.URL, "anybody may read it", "leave auth away")
	g.auth = ""
	g.workspaceOf("app", "repo: acme/site, branch: main, installation_id: \"42\"", "", "")
	g.refused("app", exitDenied, "is for https")

	g.w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_endpoints: [ %q ]\n", g.daemon.URL), 0o600)
	for slug, config := range map[string]string{
		"url": "repo: \"" + g.daemon.URL + "/acme/site\"", "base": "repo: acme/site, base_url: \"" + g.daemon.URL + "\"",
		"bucket": "",
	} {
		text := "storage: {inline: {provider: github, config: {" + config + "}}}\n"
		if slug == "bucket" {
			text = "storage: {inline: {provider: self-bucket, config: {kind: s3, bucket: b, endpoint: \"" + g.daemon.URL + "\"}}}\n"
		}
		dir := g.w.Mkdir("ws-"+slug, 0o755)
		g.w.Write("ws-"+slug+"/WORKSPACE.md", harness.Manifest("@acme/"+slug, text), 0o644)
		r := g.w.Run("mount", "--trust", dir, g.w.Mkdir("mnt-"+slug, 0o755))
		assert.True(t, r.Code == 3, slug, "exit", r.Code, r.Out, r.Err)
	}
	assert.Equal(t, g.daemon.Heard(), "", "the daemon heard")
}
