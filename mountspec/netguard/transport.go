package netguard

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// TransportOptions of one round-tripper of a Guard.
type TransportOptions struct {
	// NoRedirects turns every redirect into an error. Set it for pushes: a
	// client that follows one delivers the commit, and its credentials, to
	// another place.
	NoRedirects bool
	// ResponseHeaderTimeout is how long an answer's header may take after
	// the request was written. Zero: no limit.
	ResponseHeaderTimeout time.Duration
}

// Transport makes a round-tripper with its own connections. Close them
// with its CloseIdleConnections, which http.Client calls.
func (g *Guard) Transport(o TransportOptions) http.RoundTripper {
	tc := &tls.Config{MinVersion: tls.VersionTLS12}
	if g.o.TLS != nil {
		tc = g.o.TLS.Clone()
	}
	return &transport{g: g, o: o, next: &http.Transport{
		Proxy:                 g.proxyFor,
		DialContext:           g.DialContext,
		TLSClientConfig:       tc,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   128,
		ReadBufferSize:        16 << 10, // a small object and its header at once
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		ResponseHeaderTimeout: o.ResponseHeaderTimeout,
	}}
}

type transport struct {
	g    *Guard
	o    TransportOptions
	next *http.Transport
}

var _ http.RoundTripper = (*transport)(nil)

func (t *transport) CloseIdleConnections() { t.next.CloseIdleConnections() }

// RoundTrip checks and sends one request. A client that follows a redirect
// calls this again, so that each hop is checked like the first.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.check(r); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	resp, err := t.next.RoundTrip(r)
	if err != nil || !t.o.NoRedirects || !isRedirect(resp.StatusCode) {
		return resp, err
	}
	resp.Body.Close()
	return nil, t.g.deny(&DeniedError{Origin: shown(r.URL), Reason: "it answered with a redirect, which is not followed here",
		Hint: "configure the address that it redirects to, if it is the right one"})
}

func (t *transport) check(r *http.Request) error {
	if err := t.g.Check(r.URL); err != nil {
		return err
	}
	// A Host header of its own reaches another virtual host at the address.
	if r.Host != "" && r.Host != r.URL.Host {
		return t.g.Check(&url.URL{Scheme: r.URL.Scheme, Host: r.Host})
	}
	return nil
}

func isRedirect(code int) bool {
	switch code {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// proxyFor sends requests to origins without listed addresses through the granted proxy.
func (g *Guard) proxyFor(r *http.Request) (*url.URL, error) {
	if g.proxy == nil {
		return nil, nil
	}
	o, err := originOf(r.URL)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	if p := g.match(o); p != nil && len(p.nets) > 0 {
		return nil, nil
	}
	return g.proxy, nil
}
