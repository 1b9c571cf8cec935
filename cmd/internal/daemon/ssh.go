package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/wsmount/wsmount/mountspec/host"
	"github.com/wsmount/wsmount/mountspec/netguard"
	"github.com/wsmount/wsmount/mountspec/secrets"
	"github.com/wsmount/wsmount/providers"
)

// hostSSH adds the host's settings for servers that are reached over SSH. A key
// that the manifest names is used; else the host's key.
func hostSSH(s providers.Settings, r *host.Resolved, e Env, guard *netguard.Guard) providers.Settings {
	g := r.Grants.SSH
	s.Dial = e.dial(guard)
	s.Config["known_hosts"] = strings.Join(g.KnownHosts, string(filepath.ListSeparator))
	put(s.Config, "agent", g.Agent)
	s.Credentials = sshCredentials(r, e)
	if s.Credentials == nil {
		s.Config["credentials"] = "none"
	}
	return s
}

// privateKey is the field of a key for SSH.
const privateKey = "ssh_private_key"

// sshCredentials are the manifest's credentials, and the host's key if they contain
// no key (but a token for the API, say); nil: nothing is granted.
func sshCredentials(r *host.Resolved, e Env) func(context.Context) (map[string]string, error) {
	var named, ours func(context.Context) (map[string]string, error)
	if r.Grants.Secrets != nil {
		named = planned(r, e)
	}
	if slug := r.Grants.SSH.Secret; slug != "" {
		ours = revealed(e.Copy.Secrets, slug, func(ctx context.Context) (secrets.Secret, error) {
			return e.Host.Vault().Host(ctx, slug, r.Address, "SSH to "+r.Location.Endpoint)
		})
	}
	switch {
	case named == nil:
		return ours
	case ours == nil:
		return named
	}
	return func(ctx context.Context) (map[string]string, error) {
		fields, err := named(ctx)
		if err != nil || fields[privateKey] != "" {
			return fields, err
		}
		key, err := ours(ctx)
		if err != nil {
			return nil, err
		}
		if key[privateKey] == "" {
			key[privateKey] = key[secrets.Single]
		}
		maps.Copy(fields, key)
		return fields, nil
	}
}

// dial is guarded, and counts the received bytes.
func (e Env) dial(guard *netguard.Guard) func(context.Context, string) (net.Conn, error) {
	if e.Copy.Received == nil {
		return guarded(guard)
	}
	return e.Copy.Received.Dial(guarded(guard))
}

// guarded connects to an origin that was granted. A connection alone is not enough:
// a grant for another scheme at the same host and port does not cover this origin.
func guarded(guard *netguard.Guard) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, origin string) (net.Conn, error) {
		u, err := url.Parse(origin)
		if err == nil {
			err = guard.Check(u)
		}
		var conn net.Conn
		if err == nil {
			conn, err = guard.DialContext(ctx, "tcp", u.Host)
		}
		if errors.Is(err, netguard.ErrDenied) {
			err = fmt.Errorf("%w: %w", providers.ErrPermission, err)
		}
		return conn, err
	}
}
