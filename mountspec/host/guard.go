package host

import (
	"fmt"
	"net/url"

	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/host/hook"
	"github.com/wsmount/wsmount/mountspec/netguard"
)

// Guard makes the way to the network for one resolved volume: to the endpoints
// granted to it and no others. Each refusal is in the audit log.
func (r *Resolver) Guard(v *Resolved) (*netguard.Guard, error) {
	o := r.guardOptions(v.Address.String(), v.Grants.Endpoints)
	if v.Grants.Proxy != "" {
		u, err := url.Parse(v.Grants.Proxy)
		if err != nil { // the error would show its password
			return nil, denied("", v.Address.String(), "correct HTTPS_PROXY", "the proxy of the environment is not a URL")
		}
		o.Proxy = u
	}
	g, err := netguard.New(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.Address, err)
	}
	return g, nil
}

// Hooks are the host's hooks for problems in a mount.
func (r *Resolver) Hooks() []hook.Hook { return r.cfg.Notify }

// HookGuard makes the way to a webhook of the host, and to nothing else. An address that is not
// public must be in the URL, or in allow_endpoints behind its origin.
func (r *Resolver) HookGuard(workspace, to string) (*netguard.Guard, error) {
	return netguard.New(r.guardOptions(workspace, r.cfg.AllowEndpoints.Of(to)))
}

func (r *Resolver) guardOptions(workspace string, allow []string) netguard.Options {
	return netguard.Options{Allow: allow, Logger: r.o.Logger, OnDenied: func(d *netguard.DeniedError) {
		rec := audit.Denied{Workspace: workspace, What: "network " + d.Origin, Reason: d.Reason}
		if err := r.o.Audit.Write(rec); err != nil && r.o.Logger != nil {
			r.o.Logger.Error("the audit log cannot be written", "error", err)
		}
	}}
}
