package netguard

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// An origin is the destination of a request: scheme, host, port, all normalised.
type origin struct {
	scheme, host, port string
	addr               netip.Addr // valid when host is an address
}

func (o origin) String() string {
	h := o.host
	if o.addr.IsValid() && o.addr.Is6() {
		h = "[" + h + "]"
	}
	if o.port == defaultPorts[o.scheme] {
		return o.scheme + "://" + h
	}
	return o.scheme + "://" + h + ":" + o.port
}

var defaultPorts = map[string]string{"http": "80", "https": "443", "ssh": "22", "git": "9418"}

// originOf normalises u, and refuses a URL that could mean two things to two
// readers: user info, opaque parts, addresses in odd notations.
func originOf(u *url.URL) (origin, error) {
	bad := func(reason, hint string) (origin, error) {
		return origin{}, &DeniedError{Origin: shown(u), Reason: reason, Hint: hint}
	}
	if u == nil {
		return bad("there is no URL", "give an absolute URL")
	}
	o := origin{scheme: strings.ToLower(u.Scheme), port: u.Port()}
	if _, known := defaultPorts[o.scheme]; !known {
		return bad("its scheme is not http, https, ssh or git", "use one of these")
	}
	if u.User != nil && (o.scheme != "ssh" || hasPassword(u)) {
		return bad("it carries user info", "credentials belong into secrets, never into a URL")
	}
	if u.Opaque != "" {
		return bad("it is not of the form scheme://host", "write the host after //")
	}
	if o.port == "" {
		o.port = defaultPorts[o.scheme]
	}
	if n, err := strconv.ParseUint(o.port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != o.port {
		return bad("its port is not a number from 1 to 65535", "write a plain number")
	}
	var reason string
	if o.host, o.addr, reason = normalHost(u.Hostname()); reason != "" {
		return bad(reason, "write a plain host name or a plain address")
	}
	return o, nil
}

func hasPassword(u *url.URL) bool { _, has := u.User.Password(); return has }

// shown is the part of a refused URL that an error may show: never its user
// info, path or query.
func shown(u *url.URL) string {
	if u == nil {
		return "(no URL)"
	}
	return fmt.Sprintf("%.16s://%.253s", u.Scheme, u.Host)
}

// normalHost lower-cases a host, drops one trailing dot and unmaps
// addresses. reason is why a host is refused.
func normalHost(h string) (host string, addr netip.Addr, reason string) {
	if a, err := netip.ParseAddr(h); err == nil {
		if a.Zone() != "" {
			return "", addr, "an address with a zone"
		}
		a = a.Unmap()
		return a.String(), a, ""
	}
	h = strings.ToLower(strings.TrimSuffix(h, "."))
	if len(h) == 0 || len(h) > 253 {
		return "", addr, "its host is empty or too long"
	}
	for _, label := range strings.Split(h, ".") {
		if !validLabel(label) {
			return "", addr, "its host is not a plain ASCII name"
		}
	}
	if last := h[strings.LastIndexByte(h, '.')+1:]; looksNumeric(last) {
		// 2130706433, 0x7f.1 and 127.1 are 127.0.0.1 to some resolvers.
		return "", addr, "an address in an odd notation"
	}
	return h, addr, ""
}

func validLabel(l string) bool {
	if len(l) == 0 || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
		return false
	}
	for i := range len(l) {
		c := l[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

func looksNumeric(label string) bool {
	if rest, hex := strings.CutPrefix(label, "0x"); hex {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// A pattern is one granted origin.
type pattern struct {
	origin
	wild bool           // host is the part after "*."
	nets []netip.Prefix // addresses that are listed although not public
}

// ValidatePattern says whether s is a pattern, for a configuration file's
// reader.
func ValidatePattern(s string) error {
	_, err := parsePattern(s)
	return err
}

func parsePattern(s string) (pattern, error) {
	fields := strings.Fields(s)
	if len(fields) == 0 {
		return pattern{}, fmt.Errorf("the pattern of a network address is empty")
	}
	u, err := url.Parse(strings.Replace(fields[0], "://*.", "://", 1))
	if err != nil {
		return pattern{}, fmt.Errorf("pattern %q: not a URL", fields[0])
	}
	p := pattern{wild: strings.Contains(fields[0], "://*.")}
	if p.origin, err = originOf(u); err != nil {
		var denied *DeniedError
		if errors.As(err, &denied) && u.Host == "" && u.User == nil && !strings.Contains(fields[0], "@") {
			denied.Origin = fields[0] // there is nothing to hide
		}
		return pattern{}, err
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return pattern{}, fmt.Errorf("pattern %q: only scheme, host and port can be granted", p.origin)
	}
	if p.wild && (p.addr.IsValid() || !strings.Contains(p.host, ".")) {
		return pattern{}, fmt.Errorf("pattern %q: after \"*.\" a name of at least two labels must follow", fields[0])
	}
	p.nets, err = listedNets(p.origin, fields[1:])
	return p, err
}

// listedNets are the networks a pattern lists by itself and those written
// after it.
func listedNets(o origin, written []string) ([]netip.Prefix, error) {
	var nets []netip.Prefix
	switch {
	case o.addr.IsValid():
		nets = append(nets, netip.PrefixFrom(o.addr, o.addr.BitLen()))
	case o.host == "localhost":
		nets = append(nets, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	}
	for _, w := range written {
		n, err := parseNet(w)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %q is not a network such as 10.1.0.0/16", o, w)
		}
		nets = append(nets, n)
	}
	return nets, nil
}

func parseNet(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err == nil && (p.Addr().Is4In6() || p.Masked() != p) {
		err = fmt.Errorf("%s has bits below its mask", s)
	}
	return p, err
}

func (p *pattern) matches(o origin) bool {
	return p.scheme == o.scheme && p.matchesDial(o)
}

// matchesDial compares host and port only: a dialer is not told the scheme.
func (p *pattern) matchesDial(o origin) bool {
	if p.port != o.port {
		return false
	}
	if !p.wild {
		return p.host == o.host
	}
	label, rest, ok := strings.Cut(o.host, ".")
	return ok && label != "" && !o.addr.IsValid() && rest == p.host
}

func (p *pattern) lists(a netip.Addr) bool {
	for _, n := range p.nets {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// dialOrigin turns the address a dialer is asked for into an origin.
func dialOrigin(addr string) (origin, error) {
	h, port, err := net.SplitHostPort(addr)
	if err != nil {
		return origin{}, &DeniedError{Origin: "(dial)", Reason: "not host:port"}
	}
	host, a, reason := normalHost(h)
	if reason != "" {
		return origin{}, &DeniedError{Origin: fmt.Sprintf("tcp://%.253s", addr), Reason: reason}
	}
	return origin{scheme: "tcp", host: host, addr: a, port: port}, nil
}
