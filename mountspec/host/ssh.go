package host

import (
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/mountspec/host/giturl"
	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/host/yamlread"
)

// An SSHGrant is the keys with which a volume may reach a git server over SSH.
type SSHGrant struct {
	// KnownHosts are the files with the keys of servers, existing or not: the one
	// that the configuration names, the user's, the machine's.
	KnownHosts []string
	// Agent is the socket of the user's ssh-agent. Empty: it is not granted.
	Agent string
	// Secret is the slug of a secret of the host, a private key, from
	// Resolver.Vault. Empty: none.
	Secret string
}

// agentCredentials says that the host's credentials are the keys of ssh-agent.
const agentCredentials = "agent"

const machineKnownHosts = "/etc/ssh/ssh_known_hosts"

func overSSH(base string) bool { return strings.HasPrefix(base, "ssh://") }

// grantSSH gives the keys of servers to every workspace, and the host's own
// credentials to the registered ones that it lists.
func (h *granter) grantSSH(l *loaded, g *Grants) {
	c := h.r.cfg.GitHub.SSH
	g.SSH = &SSHGrant{}
	if c.KnownHosts != "" {
		g.SSH.KnownHosts = append(g.SSH.KnownHosts, c.KnownHosts)
	}
	if h.r.o.Home != "" {
		g.SSH.KnownHosts = append(g.SSH.KnownHosts, filepath.Join(h.r.o.Home, ".ssh", "known_hosts"))
	}
	g.SSH.KnownHosts = append(g.SSH.KnownHosts, machineKnownHosts)
	h.step("known hosts", strings.Join(g.SSH.KnownHosts, ", "))
	if c.Credentials == "" {
		return
	}
	by, ok := grant.MatchesAny(c.Allow, l.ws.ID.Owner, l.ws.ID.Slug)
	switch {
	case l.cand.trust == Unverified:
		h.step("SSH credentials", "not used: the manifest is not registered")
	case !ok:
		h.step("SSH credentials", "not used: providers.github.ssh.allow does not list "+l.ws.ID.String())
	case c.Credentials != agentCredentials:
		g.SSH.Secret = c.Credentials
		h.step("SSH credentials", "secret "+c.Credentials+", granted by providers.github.ssh.allow "+by)
	default:
		if g.SSH.Agent, ok = h.r.o.Lookup("SSH_AUTH_SOCK"); !ok || g.SSH.Agent == "" {
			h.step("SSH credentials", "ssh-agent, which does not run: SSH_AUTH_SOCK is not set")
			return
		}
		h.step("SSH credentials", "ssh-agent at "+g.SSH.Agent+", granted by providers.github.ssh.allow "+by)
	}
}

// gitServer reads the URL of a git server.
func gitServer(v yamlread.Node) string {
	s, ok := v.Text()
	if !ok {
		return ""
	}
	server, err := giturl.Parse(s)
	v.Check("endpoint", giturl.Hint, err)
	return server
}
