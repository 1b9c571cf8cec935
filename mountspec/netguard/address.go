package netguard

import "net/netip"

// notPublic lists the networks that are not the public internet (the IANA
// special-purpose registries of both families). 169.254.169.254, where
// clouds keep credentials, is one of the link-local addresses.
var notPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
	"172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20",
	"5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

// Networks that carry an IPv4 address inside an IPv6 one, and where.
var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	sixTo4 = netip.MustParsePrefix("2002::/16")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// isPublic says whether a is an address of the public internet. Addresses
// that carry another one are judged by the one inside.
func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	switch b := a.As16(); {
	case nat64.Contains(a):
		return isPublic(netip.AddrFrom4([4]byte(b[12:16])))
	case sixTo4.Contains(a):
		return isPublic(netip.AddrFrom4([4]byte(b[2:6])))
	}
	return a.IsValid()
}
