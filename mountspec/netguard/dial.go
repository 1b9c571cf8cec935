package netguard

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// DialContext connects to addr ("host:port") when a granted origin has
// this host and port, and when the address that the name resolved to is
// public or listed. The address is checked in the moment of connect(2).
func (g *Guard) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, g.deny(&DeniedError{Origin: fmt.Sprintf("%.16s://%.253s", network, addr), Reason: "only TCP is granted"})
	}
	o, err := dialOrigin(addr)
	if err != nil {
		return nil, g.deny(err)
	}
	may, err := g.dialRule(o)
	if err != nil {
		return nil, g.deny(err)
	}
	d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Resolver: g.o.Resolver,
		ControlContext: func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			return g.checkResolved(o, resolved, may)
		}}
	return d.DialContext(ctx, network, net.JoinHostPort(o.host, o.port))
}

// dialRule says which addresses a connection to o may end at: those listed
// by any pattern with its host and port.
func (g *Guard) dialRule(o origin) (func(netip.Addr) bool, error) {
	if g.proxy != nil {
		if p, err := originOf(g.proxy); err == nil && p.host == o.host && p.port == o.port {
			return func(netip.Addr) bool { return true }, nil // the host named it
		}
	}
	var ps []*pattern
	for i := range g.patterns {
		if g.patterns[i].matchesDial(o) {
			ps = append(ps, &g.patterns[i])
		}
	}
	if len(ps) == 0 {
		return nil, &DeniedError{Origin: o.String(), Reason: "the host does not list it",
			Hint: "add its origin to allow_endpoints of the host configuration"}
	}
	return func(a netip.Addr) bool {
		for _, p := range ps {
			if p.lists(a) {
				return true
			}
		}
		return isPublic(a)
	}, nil
}

func (g *Guard) checkResolved(o origin, resolved string, may func(netip.Addr) bool) error {
	ap, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return g.deny(&DeniedError{Origin: o.String(), Reason: "its address cannot be read"})
	}
	a := ap.Addr().Unmap().WithZone("")
	if may(a) {
		return nil
	}
	return g.deny(&DeniedError{Origin: o.String(), Reason: fmt.Sprintf("it leads to %s, which is not a public address", a),
		Hint: fmt.Sprintf("if that is meant, write the network behind the origin in allow_endpoints: \"<origin> %s\"", a)})
}
