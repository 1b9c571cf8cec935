package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/gitserver"
	"github.com/wsmount/wsmount/integration/internal/harness"
)

// A sshMount is a gitStage whose server is reached over SSH alone.
type sshMount struct {
	*gitStage
	ssh          *gitserver.SSH
	host, client gitserver.Key
}

// newSSHMount has the host keep the key that the server admits; more is further
// host configuration of SSH.
func newSSHMount(t *testing.T, more string) *sshMount {
	t.Helper()
	g := &sshMount{gitStage: newGitStage(t)}
	g.auth = "SSH_PRIVATE_KEY"
	g.ssh, g.host, g.client = gitserver.StartSSH(t, g.server)
	g.keeps(g.client)
	g.w.Write("config/wsmount/config.yaml", fmt.Sprintf("allow_endpoints: [ \"ssh://%s\" ]\nallow_overlap: [ { from: \"@acme/*\", to: \"@acme/*\" } ]\n"+
		"providers: { github: { base_url: \"ssh://git@%s\"%s } }\nsecrets: { ssh-private-key: { file: %q, allow: [\"@acme/*\"] } }\n",
		g.ssh.Addr, g.ssh.Addr, more, g.w.Path("config/key")), 0o600)
	g.seed()
	return g
}

func (g *sshMount) keeps(k gitserver.Key) { g.w.Write("config/key", k.PEM, 0o600) }

// knows says which key of the server the user knows.
func (g *sshMount) knows(k gitserver.Key) {
	g.w.Mkdir("home/.ssh", 0o700)
	g.w.Write("home/.ssh/known_hosts", k.Known(g.ssh.Addr), 0o600)
}

// refused checks that neither a mount nor doctor reaches the server, and that both
// say why.
func (g *sshMount) refused(slug string, code int, words ...string) {
	g.t.Helper()
	r := g.w.Run("mount", "@acme/"+slug, g.w.Mkdir("mnt-"+slug, 0o755))
	d := g.w.Run("doctor", "--json", "@acme/"+slug)
	for what, r := range map[string]harness.Result{"mount": r, "doctor": d} {
		all := r.Out + r.Err
		assert.True(g.t, r.Code == code && contains(all, words...) && !strings.Contains(all, "PRIVATE KEY"), what, "exit", r.Code, "want", code, "with", words, all)
	}
}

// What keeps a server from being believed, or it from believing us, is said before
// anything is mounted.
func TestGitOverSSHIsRefused(t *testing.T) {
	t.Parallel()
	g := newSSHMount(t, "")
	g.workspace("site", "push: {on: per-commit}")
	told := g.w.MustRun("resolve", "--explain", "@acme/site")
	all := strings.Join(strings.Fields(told), "")
	assert.True(t, contains(all, "location:ssh://git@"+g.ssh.Addr, "knownhosts:"+g.w.Path("home/.ssh/known_hosts"), "secretssh-private-key:file"), "resolve says", told)
	g.refused("site", exitDenied, g.host.Fingerprint(), g.w.Path("home/.ssh/known_hosts"), "ssh-keyscan -p", "compare the fingerprint")
	other := gitserver.MakeKey(t)
	g.knows(other)
	g.refused("site", exitDenied, g.host.Fingerprint(), other.Fingerprint(), "known_hosts:1", "ssh-keyscan -p")
	g.knows(g.host)
	g.keeps(other)
	g.refused("site", exitDenied, "does not take the key", "login git", "check the secret")
	g.keeps(g.client)
	told = g.w.MustRun("doctor", "--json", "@acme/site")
	assert.True(t, contains(told, "ssh://git@"+g.ssh.Addr, "answers in"), "doctor says", told)
}

// A repository over SSH is what one over HTTP is: cloned, changed, pushed and
// pulled, through times in which its server is away or not to be believed.
func TestGitOverSSH(t *testing.T) {
	t.Parallel()
	g := newSSHMount(t, "")
	g.workspace("site", "pull: {on: turn-start}, commit: {on: per-turn}, push: {on: per-commit}")
	g.knows(g.host)
	m := g.w.Mount("@acme/site")
	g.turnsOfBoth(m)
	m.Stop()

	m = g.w.Mount("@acme/site", "--patience", "1s") // for a server that does not answer
	g.ssh.Away()
	g.later(m, "away", "refused")
	g.check(g.ssh.Back())
	g.arrives(m, "what was written while the server was away")
	other := gitserver.MakeKey(t)
	g.ssh.Rekey(other)
	g.later(m, "rekeyed", "somebody may be in between")
	g.knows(other)
	g.w.Run("event", m.Dir, "turn-end") // which may be too slow for that
	g.arrives(m, "what was written while the server was not believed")
	m.Stop()
	g.sound()
	g.nowhere(strings.Split(g.client.PEM, "\n")[2])
	for _, asked := range g.ssh.Commands() {
		assert.True(t, strings.HasSuffix(asked, "pack '/acme/site.git'"), "the server was asked to run", asked)
	}
}

// turnsOfBoth has a turn go to the server, and what somebody else made there come.
func (g *gitStage) turnsOfBoth(m *harness.Mount) {
	g.t.Helper()
	g.same("after the clone", g.lines(m.Dir), g.fresh())
	g.check(os.WriteFile(m.Dir+"/ours", []byte("of a turn\n"), 0o644))
	g.event(m, "turn-end")
	g.arrives(m, "the turn")
	g.other.Write(map[string]string{"theirs": "theirs\n"})
	g.other.Commit("main", "theirs")
	g.event(m, "turn-start")
	g.same("after a pull", g.lines(m.Dir), g.fresh())
}

// later writes a file, which the server does not get yet, and status says why.
func (g *gitStage) later(m *harness.Mount, name, why string) {
	g.t.Helper()
	g.check(os.WriteFile(m.Dir+"/"+name, []byte("later\n"), 0o644))
	harness.Eventually(g.t, name+": the event says "+why, func() bool { // a slow machine's patience may end before an attempt has
		var told struct{ Failed []string }
		r := g.w.Run("event", "--json", m.Dir, "turn-end")
		g.check(json.Unmarshal([]byte(r.Out), &told))
		assert.Must(g.t, r.Code != 0, name, "the event has not failed, want", why)
		return strings.Contains(strings.Join(told.Failed, "\n"), why)
	})
	harness.Eventually(g.t, "status says "+why, func() bool {
		return strings.Contains(g.w.MustRun("status", "--json", m.Dir), why)
	})
}

// The host's own credentials are for the workspaces that it lists.
func TestGitOverSSHWithAnAgent(t *testing.T) {
	t.Parallel()
	g := newSSHMount(t, ", ssh: { credentials: agent, allow: [ \"@acme/listed\" ] }")
	g.knows(g.host)
	g.auth = ""
	g.w.Env("SSH_AUTH_SOCK=" + gitserver.StartAgent(t, g.client))
	for _, slug := range []string{"listed", "other"} {
		g.workspace(slug, "push: {on: per-commit}")
	}
	g.refused("other", exitDenied, "wants a key", "ssh_private_key", "providers.github.ssh.credentials")
	m := g.w.Mount("@acme/listed")
	g.check(os.WriteFile(m.Dir+"/ours", []byte("with the agent's key\n"), 0o644))
	m.Stop()
	assert.Equal(t, g.repo.Git("show", "main:ours"), "with the agent's key\n", "the server")
}
