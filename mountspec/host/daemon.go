package host

import (
	"strings"

	"github.com/wsmount/wsmount/mountspec"
)

// overGit reports whether a git server is reached over git://, without encryption
// or authentication of the server.
func overGit(base string) bool { return strings.HasPrefix(base, "git://") }

// grantDaemon grants the one origin that the host names, and no secrets: neither
// those that the manifest asks for nor the host's own.
func (h *granter) grantDaemon(l *loaded, g *Grants) error {
	base, c := h.r.cfg.GitHub.BaseURL, l.storage.Config.(mountspec.GitHubConfig)
	const instead = "write an https or ssh URL as providers.github.base_url of the host configuration"
	switch {
	case len(l.storage.Auth.Env) > 0:
		return h.r.deny(l, CodeAuth, l.storage.Auth.Pos, "leave auth away, or "+instead,
			"the storage names a secret, which is never sent to %s: over git:// anybody may read it", base)
	case c.InstallationID != "" && l.cand.trust != Unverified:
		return h.r.deny(l, CodeAuth, l.storage.ConfigPos, "leave installation_id away, or "+instead,
			"installation %s is for https, and %s is reached over git://", c.InstallationID, base)
	}
	g.Endpoints, g.Daemon = h.r.cfg.AllowEndpoints.Of(base), true
	h.step("git daemon", base+", without credentials: nothing is encrypted and the server is not authenticated")
	return nil
}
