package host

import (
	"slices"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// Both ways of writing a server over SSH, and a daemon, mean what they mean to git.
func TestGitServerURLs(t *testing.T) {
	for in, want := range map[string]string{
		"https://git.acme.test/":         "https://git.acme.test",
		"ssh://git@git.acme.test":        "ssh://git@git.acme.test",
		"ssh://git.acme.test:2222/srv/":  "ssh://git.acme.test:2222/srv",
		"git@git.acme.test:":             "ssh://git@git.acme.test/~",
		"git@git.acme.test:repositories": "ssh://git@git.acme.test/~/repositories",
		"git.acme.test:/srv/git":         "ssh://git.acme.test/srv/git",
		"SSH://git.acme.test":            "ssh://git.acme.test",
		"git://git.acme.test/":           "git://git.acme.test",
		"Git://git.acme.test:9419/srv":   "git://git.acme.test:9419/srv",
		"HTTPS://git.acme.test":          "HTTPS://git.acme.test",
	} {
		c, findings := parseAs("providers: { github: { base_url: \"" + in + "\" } }\n")
		assert.True(t, len(findings) == 0 && c.GitHub.BaseURL == want, in, "is read as", c.GitHub.BaseURL, "want", want, findings)
	}
}

// Over SSH the host grants its own credentials to whom it lists, and one origin.
func TestGitHubOverSSH(t *testing.T) {
	const server = "secrets: { key: { file: /k } }\nproviders: { github: { base_url: \"ssh://git@git.acme.test:2222\", ssh: { known_hosts: /etc/keys "
	const agent, key = server + ", credentials: agent, allow: [ \"@acme/*\" ] } } }\n", server + ", credentials: key, allow: [ \"@acme/*\" ] } } }\n"
	token := gitHubWith("", ", auth: { state: { env: [ GITHUB_TOKEN ] } }")
	for _, c := range []struct {
		name, id, storage, config string
		unregistered              bool
		words                     string // empty: granted
		agent, secret, says       string
	}{
		{name: "nothing of the host's", id: "@acme/bot", config: server + "} } }\n"},
		{name: "the agent", id: "@acme/bot", config: agent, agent: "/run/agent", says: "ssh-agent at /run/agent, granted by providers.github.ssh.allow @acme/*"},
		{name: "the agent beside a token", id: "@acme/bot", storage: token, config: agent, agent: "/run/agent"},
		{name: "a secret of the host", id: "@acme/bot", config: key, secret: "key", says: "secret key, granted by"},
		{name: "another owner", id: "@evil/bot", config: agent, says: "does not list @evil/bot"},
		{name: "not registered", id: "@acme/bot", config: agent, unregistered: true, says: "not registered"},
		{name: "an installation", id: "@acme/bot", storage: gitHubWith(`, installation_id: "42"`, ""), config: agent, words: "is for https"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.env["SSH_AUTH_SOCK"], w.env["GITHUB_TOKEN"] = "/run/agent", secretValue
			w.config = c.config
			w.manifest("ws", c.id, orDefault(c.storage, gitHubWith("", "")))
			o := ResolveOptions{Trust: !c.unregistered}
			if c.words != "" {
				w.refused("ws", o, Denied, c.words)
				return
			}
			got := w.ok("ws", o)
			g := got.Grants.SSH
			if g == nil || g.Agent != c.agent || g.Secret != c.secret || !slices.Equal(g.KnownHosts, []string{"/etc/keys", w.home + "/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts"}) {
				t.Errorf("granted %+v", g)
			}
			assert.Equal(t, got.Location.String(), "ssh://git@git.acme.test:2222/acme/bot#main", "location")
			assert.Contains(t, explained(got), c.says)
			assert.Contains(t, explained(got), "known hosts: /etc/keys")
			checkReach(t, got, map[string]bool{"ssh://git.acme.test:2222": true, "ssh://git.acme.test": false, "https://git.acme.test:2222": false})
		})
	}
}

// One server over SSH, over https and as a daemon has the same repositories.
func TestServersOverlap(t *testing.T) {
	a := Location{Service: ServiceGit, Endpoint: "https://git.acme.test", Bucket: "acme/bot", Branch: "main"}
	for endpoint, want := range map[string]bool{"ssh://git@git.acme.test:22": true, "git://git.acme.test:9418": true, "git://git.acme.test": true,
		"git://git.acme.test:22": false, "git://git.other.test": false} {
		b := a
		if b.Endpoint = endpoint; a.Overlaps(b) != want {
			t.Errorf("%s and %s overlap: %v", a.Endpoint, endpoint, !want)
		}
	}
}
