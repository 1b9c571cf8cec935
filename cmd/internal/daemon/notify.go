package daemon

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
	"github.com/wsmount/wsmount/cmd/internal/notify"
	"github.com/wsmount/wsmount/mountspec/netguard"
	"github.com/wsmount/wsmount/mountspec/secrets"
)

// startNotifier starts the notifier, which tells the host's hooks of problems.
func (d *Daemon) startNotifier() {
	host := d.tree.host
	d.hooks = notify.Start(notify.Options{Hooks: host.Hooks(), Workspace: d.tree.Name, Mountpoint: d.tree.Mountpoint,
		Transport: func(url string) (http.RoundTripper, error) {
			guard, err := host.HookGuard(d.tree.Name, url)
			if err != nil {
				return nil, err
			}
			return guard.Transport(netguard.TransportOptions{NoRedirects: true}), nil
		},
		Secret: func(ctx context.Context, slug string) (string, error) {
			s, err := host.Vault().Host(ctx, slug, d.tree.Sources[0].resolved.Address, "notify")
			if err != nil {
				return "", err
			}
			v, one := s.Field(secrets.Single)
			if !one {
				return "", fmt.Errorf("secret %s is not one text", slug)
			}
			d.opts.Copy.Secrets.Add(slug, v.Reveal())
			return v.Reveal(), nil
		},
		Holds: d.opts.Copy.Secrets.Holds, Lookup: os.LookupEnv, Changed: d.kick.raise, Now: d.opts.Now, Log: d.log})
	if d.hooks == nil {
		return
	}
	d.onClose(d.hooks.Close)
	d.bus.On(eventConflict, func(e lifecycle.Event) { d.hooks.Conflict(e.Source.ID, e.Payload["path"]) })
}
