package bucket

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Driver opens buckets of a service under one name, with these keys in a configuration.
// What open is given has a Logger and a Now.
func Driver[P providers.Provider](s Service, name, text string, keys []string, open func(context.Context, providers.Settings, []string) (P, error)) providers.Driver {
	return providers.Driver{
		Name: name, Text: text, Promises: Promises(s), Keys: slices.Clone(keys),
		Open: func(ctx context.Context, settings providers.Settings) (providers.Provider, error) {
			if settings.Now == nil {
				settings.Now = time.Now
			}
			if settings.Logger == nil {
				settings.Logger = slog.New(slog.DiscardHandler)
			}
			p, err := open(ctx, settings, keys)
			if err != nil {
				return nil, Fail(ctx, s.Name, providers.MethodOpen, providers.Locator{}, err)
			}
			return p, nil
		},
	}
}

// Connection is how a driver's requests reach its service. It is closed with the Provider
// that was opened with it.
type Connection struct {
	Meter
	Client *http.Client

	own *http.Transport // nil: the caller's
}

// Connect makes a connection over what a driver was given, or a transport of its own. name
// is what the service calls a request, and genuine believes what is the service's.
func Connect(given http.RoundTripper, name func(*http.Request) string, genuine func(http.RoundTripper) *Genuine) *Connection {
	c := &Connection{Meter: Meter{Inner: given, Name: name}}
	if given == nil {
		c.own = PlainTransport()
		c.Inner = c.own
	}
	// A redirect would send credentials where nobody granted them to go.
	c.Client = &http.Client{Transport: genuine(&c.Meter), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c
}

// Close lets go of what is kept open.
func (c *Connection) Close() {
	if c != nil && c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// PlainTransport speaks HTTP/1.1: one stream per connection is what object stores are built
// for. Connections are kept for a burst of small requests, of which each is read in one piece.
func PlainTransport() *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConns: 256, MaxIdleConnsPerHost: 128, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second, ResponseHeaderTimeout: time.Minute,
		DisableCompression: true, ReadBufferSize: 16 << 10, Protocols: protocols,
	}
}
