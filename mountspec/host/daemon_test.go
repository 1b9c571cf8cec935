package host

import (
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A git daemon is for what is no secret: the host names it, one origin is reached,
// and who wants to prove who it is gets nowhere.
func TestGitHubAtADaemon(t *testing.T) {
	const server = "providers: { github: { base_url: \"git://git.acme.test/srv\", ssh: { credentials: agent, allow: [ \"@acme/*\" ] } } }\n"
	const listed = "allow_endpoints: [ \"git://git.acme.test 10.0.0.0/8\", \"https://media.acme.test\", \"git://git.other.test\" ]\n"
	token := gitHubWith("", ", auth: { state: { env: [ GITHUB_TOKEN ] } }")
	for _, c := range []struct {
		name, storage, config string
		unregistered          bool
		words                 string // empty: granted
		endpoint              string
	}{
		{name: "named by the host", config: server, endpoint: "git://git.acme.test"},
		{name: "listed with its network", config: listed + server, endpoint: "git://git.acme.test 10.0.0.0/8"},
		{name: "not registered", config: server, unregistered: true, endpoint: "git://git.acme.test"},
		{name: "a token", storage: token, config: server, words: "never sent to git://git.acme.test"},
		{name: "a token, not registered", storage: token, config: server, unregistered: true, words: "never sent to git://git.acme.test"},
		{name: "an installation", storage: gitHubWith(`, installation_id: "42"`, ""), config: server, words: "is for https"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.env["SSH_AUTH_SOCK"], w.env["GITHUB_TOKEN"] = "/run/agent", secretValue
			w.config = c.config
			w.manifest("ws", "@acme/bot", orDefault(c.storage, gitHubWith("", "")))
			o := ResolveOptions{Trust: !c.unregistered}
			if c.words != "" {
				w.refused("ws", o, Denied, c.words)
				return
			}
			got := w.ok("ws", o)
			g := got.Grants
			assert.True(t, g.Daemon && g.SSH == nil && g.App == nil && g.Secrets == nil && g.API == "" && slices.Equal(g.Endpoints, []string{c.endpoint}), "granted", g)
			assert.Equal(t, got.Location.String(), "git://git.acme.test/srv/acme/bot#main", "location", got.Location)
			assert.Contains(t, explained(got), "git daemon: git://git.acme.test/srv, without credentials")
			checkReach(t, got, map[string]bool{"git://git.acme.test:9418": true, "git://git.acme.test:22": false, "ssh://git.acme.test:9418": false,
				"https://api.github.com": false, "https://media.acme.test": false, "git://git.other.test": false})
		})
	}
}

// What a manifest says is never where a daemon is: without the host's word it is the
// public service, whatever the host lists.
func TestManifestNamesNoDaemon(t *testing.T) {
	const listed = "allow_endpoints: [ \"git://git.acme.test\" ]\n"
	w := newWorld(t)
	w.config = listed
	w.manifest("ws", "@acme/bot", gitHubWith("", ""))
	if got := w.ok("ws", ResolveOptions{Trust: true}); got.Grants.Daemon || got.Location.Endpoint != "https://github.com" || slices.Contains(got.Grants.Endpoints, "git://git.acme.test") {
		t.Errorf("granted %+v at %s", got.Grants, got.Location)
	}
}
