// Package netguard is the one way from a volume to the network.
//
// It knows which origins (scheme, host, port) the host granted to a
// volume, and promises three things about everything that goes through
// it. Each request, and so each redirect hop, pagination link and LFS
// link, is checked before a byte leaves. Each connection is checked again
// on the address it really goes to, so that a name that resolves to
// something else the second time (DNS rebinding) gains nothing. And an
// address that is not public is reached only where the grant lists it.
//
//	g, err := netguard.New(netguard.Options{Allow: []string{
//		"https://s3.eu-west-1.amazonaws.com",
//		"http://127.0.0.1:9000",
//		"https://minio.corp.example 10.1.0.0/16",
//	}})
//	client := &http.Client{Transport: g.Transport(netguard.TransportOptions{})}
//
// A pattern is an origin, followed by the networks that its name may
// resolve to when they are not public. An address written as the host of a
// pattern lists itself, localhost lists the loopback networks. A host may
// begin with "*.", which stands for exactly one label (a bucket in front
// of a service's name). There is no pattern for "everything".
package netguard

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
)

// Options of a Guard. The zero value reaches nothing.
type Options struct {
	// Allow lists the granted origins, see the package comment.
	Allow []string
	// Proxy is the proxy that the host granted. nil: connections are
	// direct, whatever HTTP_PROXY and its relatives say. A proxy resolves
	// names itself, so that only origins are checked; origins
	// whose addresses are listed always go direct.
	Proxy *url.URL
	// TLS is the base of the TLS configuration. nil: the system's roots.
	// A configuration that skips verification is refused.
	TLS *tls.Config
	// Resolver resolves names. nil: the system's.
	Resolver *net.Resolver
	// OnDenied is called with each refusal, for the audit log; it may be nil.
	// It is called on the goroutine of the request and must not block.
	OnDenied func(*DeniedError)
	// Logger gets one warning for each refusal. nil: silent.
	Logger *slog.Logger
}

// A Guard checks and dials. It is safe for concurrent use and does not
// change after New.
type Guard struct {
	patterns []pattern
	proxy    *url.URL
	o        Options
}

// ErrDenied matches every refusal of this package with errors.Is.
var ErrDenied = errors.New("network destination not granted")

// A DeniedError says which origin was refused. Origin holds scheme, host and port
// only: paths and queries may carry credentials.
type DeniedError struct {
	Origin string
	Reason string
	Hint   string
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s refused: %s", e.Origin, e.Reason)
}

// Is makes every DeniedError match ErrDenied.
func (e *DeniedError) Is(target error) bool { return target == ErrDenied }

// New makes a Guard. Every pattern that cannot be read is an error, all of
// them in one answer: a grant that is misread must not become a wider one.
func New(o Options) (*Guard, error) {
	g := &Guard{o: o, proxy: o.Proxy}
	var errs []error
	for _, s := range o.Allow {
		p, err := parsePattern(s)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		g.patterns = append(g.patterns, p)
	}
	if o.TLS != nil && o.TLS.InsecureSkipVerify {
		errs = append(errs, errors.New("a TLS configuration that skips verification is refused"))
	}
	if o.Proxy != nil {
		if _, err := originOf(o.Proxy); err != nil {
			errs = append(errs, fmt.Errorf("proxy: %w", err))
		}
	}
	return g, errors.Join(errs...)
}

// Check says whether u may be asked at all. It does no I/O: the address
// behind a name is checked when it is dialed.
func (g *Guard) Check(u *url.URL) error {
	o, err := originOf(u)
	if err != nil {
		return g.deny(err)
	}
	if g.match(o) == nil {
		return g.deny(&DeniedError{Origin: o.String(), Reason: "the host does not list it",
			Hint: fmt.Sprintf("add %q to allow_endpoints of the host configuration", o)})
	}
	return nil
}

func (g *Guard) match(o origin) *pattern {
	for i := range g.patterns {
		if g.patterns[i].matches(o) {
			return &g.patterns[i]
		}
	}
	return nil
}

func (g *Guard) deny(err error) error {
	var d *DeniedError
	if !errors.As(err, &d) {
		return err
	}
	if g.o.Logger != nil {
		g.o.Logger.Warn("network destination refused", "origin", d.Origin, "reason", d.Reason)
	}
	if g.o.OnDenied != nil {
		g.o.OnDenied(d)
	}
	return d
}
