package host

import (
	"fmt"
	"net/url"

	"github.com/wsmount/wsmount/mountspec/audit"
	"github.com/wsmount/wsmount/mountspec/netguard"
)

// Guard makes the way to the network for one resolved volume: what was
// granted to it and nothing else. Each refusal is in the audit log.
func (r *Resolver) Guard(v *Resolved) (*netguard.Guard, error) {
	o := netguard.Options{Allow: v.Grants.Endpoints, Logger: r.o.Logger}
	if v.Grants.Proxy != "" {
		u, err := url.Parse(v.Grants.Proxy)
		if err != nil { // the error would show its password
			return nil, denied("", v.Address.String(), "correct HTTPS_PROXY", "the proxy of the environment is not a URL")
		}
		o.Proxy = u
	}
	o.OnDenied = func(d *netguard.DeniedError) {
		rec := audit.Denied{Workspace: v.Address.String(), What: "network " + d.Origin, Reason: d.Reason}
		if err := r.o.Audit.Write(rec); err != nil && r.o.Logger != nil {
			r.o.Logger.Error("the audit log cannot be written", "error", err)
		}
	}
	g, err := netguard.New(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.Address, err)
	}
	return g, nil
}
