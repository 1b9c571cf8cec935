package host

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/wsmount/wsmount/mountspec/host/grant"
	"github.com/wsmount/wsmount/mountspec/netguard"
)

// An SSHGrant is with what a volume may reach a git server over SSH.
type SSHGrant struct {
	// KnownHosts are the files that say which key a server has, be they there or
	// not: the one that the configuration names, the user's, the machine's.
	KnownHosts []string
	// Agent is the socket of the user's ssh-agent. Empty: it is not granted.
	Agent string
	// Secret is the slug of a secret of the host, a private key, to be asked of
	// Resolver.Vault. Empty: none.
	Secret string
}

// agentCredentials says that the host's credentials are the keys of ssh-agent.
const agentCredentials = "agent"

const machineKnownHosts = "/etc/ssh/ssh_known_hosts"

func overSSH(base string) bool { return strings.HasPrefix(base, "ssh://") }

// grantSSH gives the keys of servers to everybody, and the host's own credentials
// to the registered workspaces that it lists.
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

// scpLike is [user@]host:path, as git and scp take it; a path with "//" after
// the colon is that of a URL.
var scpLike = regexp.MustCompile(`^(?:([A-Za-z0-9._-]+)@)?([A-Za-z0-9._-]+):(.*)$`)

// gitServer reads the URL of a git server: one of http or https, one of git, or one
// of ssh in either of the ways that git takes. A path that scp would begin in the login's
// home begins with /~/ in the URL.
func gitServer(v node) string {
	s, ok := v.text()
	if !ok {
		return ""
	}
	if m := scpLike.FindStringSubmatch(s); m != nil && !strings.HasPrefix(m[3], "//") {
		s = "ssh://" + m[2]
		if m[1] != "" {
			s = "ssh://" + m[1] + "@" + m[2]
		}
		if !strings.HasPrefix(m[3], "/") {
			s += "/~/"
		}
		s += m[3]
	}
	if !v.check("endpoint", "write it like https://git.acme.test, ssh://git@git.acme.test:22 or git@git.acme.test:", checkGitServer(s)) {
		return ""
	}
	s = strings.TrimRight(s, "/")
	if scheme := strings.ToLower(s[:3]); scheme == "ssh" || scheme == "git" { // which others look for
		s = scheme + s[3:]
	}
	return s
}

// sshName is what a login, and what a path of a repository, may be: the server's
// shell reads the path.
var (
	sshLogin = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)
	sshPath  = regexp.MustCompile(`^[A-Za-z0-9._~/+@-]*$`)
)

// checkGitServer never shows the URL: it may hold a password.
func checkGitServer(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return fmt.Errorf("it is not a URL")
	}
	_, password := u.User.Password()
	switch isSSH := u.Scheme == "ssh"; {
	case !isSSH && u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "git":
		return fmt.Errorf("its scheme is not https, http, ssh or git")
	case password:
		return fmt.Errorf("it holds a password: credentials belong into secrets")
	case u.User != nil && !isSSH:
		return fmt.Errorf("it holds a user, which only a URL of ssh may")
	case u.User != nil && !sshLogin.MatchString(u.User.Username()):
		return fmt.Errorf("its user is not a login")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "":
		return fmt.Errorf("must be scheme, host, port and at most a path")
	case isSSH && (!sshPath.MatchString(u.Path) || strings.HasPrefix(u.Path, "/-")):
		return fmt.Errorf("its path has characters that a shell would read")
	case u.Scheme == "git" && !sshPath.MatchString(u.Path):
		return fmt.Errorf("its path has characters that a daemon need not take")
	}
	return netguard.ValidatePattern(u.Scheme + "://" + u.Host)
}
