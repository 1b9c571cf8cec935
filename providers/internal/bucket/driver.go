package bucket

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Opened is a Provider, and the Store that it is over.
type Opened[S Store] struct {
	*Provider
	Store S
}

// Keys of every configuration, and Mastra's additional ones, of which a bucket uses the first
// alone.
var (
	plainKeys  = []string{"kind", "bucket", "prefix", "endpoint", "region", "credentials"}
	mastraKeys = []string{"readOnly", "id", "displayName", "icon", "description"}
)

// Drivers opens buckets of a service under AIP-35's names for them. connect gets settings with a
// Logger and a Now, and sends nothing yet. A Provider looks at its bucket when it is opened.
func Drivers[S Store](s Service, connect func(context.Context, providers.Settings, Place) (S, *Connection, error)) []providers.Driver {
	driver := func(name, text string, keys ...[]string) providers.Driver {
		d := providers.Driver{Name: name, Text: text + ", " + s.People, Promises: Promises(s), Keys: slices.Concat(keys...)}
		d.Open = func(ctx context.Context, settings providers.Settings) (providers.Provider, error) {
			if settings.Now == nil {
				settings.Now = time.Now
			}
			if settings.Logger == nil {
				settings.Logger = slog.New(slog.DiscardHandler)
			}
			p, err := open(ctx, s, settings, d.Keys, connect)
			if err != nil {
				return nil, Fail(ctx, s.Name, providers.MethodOpen, providers.Locator{}, err)
			}
			return p, nil
		}
		return d
	}
	all := []providers.Driver{
		driver("cloud-bucket", "a place in the host's bucket service", plainKeys, s.Keys),
		driver("self-bucket", "a bucket of the workspace's owner", plainKeys, s.Keys),
	}
	if s.Mastra != nil {
		all = append(all, driver("mastra-"+s.Name, "a bucket as Mastra's filesystem of it is configured", plainKeys, s.Keys, s.Mastra, mastraKeys))
	}
	return all
}

func open[S Store](ctx context.Context, s Service, settings providers.Settings, keys []string, connect func(context.Context, providers.Settings, Place) (S, *Connection, error)) (*Opened[S], error) {
	at, err := s.place(settings, keys)
	if err != nil {
		return nil, err
	}
	store, way, err := connect(ctx, settings, at)
	if err != nil {
		return nil, err
	}
	p, err := Open(ctx, store, Options{
		Service: s, Bucket: at.Bucket, Prefix: at.Prefix, ReadOnly: settings.ReadOnly || settings.Config["readOnly"] == "true",
		Logger: settings.Logger, Now: settings.Now, Ended: settings.Ended, Way: way,
	})
	return &Opened[S]{p, store}, err
}

// Connection is how a driver's requests reach its service. It is closed with the Provider
// that was opened with it.
type Connection struct {
	Meter
	Client *http.Client

	Ended func() // ends the service's other parts with it; nil: none

	own *http.Transport // nil: the caller's
}

// Connect makes a connection over the given transport, or over one of its own. name is the
// service's name of a request, and genuine checks that answers are the service's.
func Connect(given http.RoundTripper, name func(*http.Request) string, genuine func(http.RoundTripper) *Genuine) *Connection {
	c := &Connection{Meter: Meter{Inner: given, Name: name}}
	if given == nil {
		c.own = PlainTransport()
		c.Inner = c.own
	}
	// A redirect would send credentials to a host that they were not granted to.
	c.Client = &http.Client{Transport: genuine(&c.Meter), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c
}

// Close closes the idle connections of an own transport, and calls Ended.
func (c *Connection) Close() {
	if c == nil {
		return
	}
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	if c.Ended != nil {
		c.Ended()
	}
}

// PlainTransport speaks HTTP/1.1: object stores are built for one stream per connection.
// Connections are kept for a burst of small requests, of which each is read in one piece.
func PlainTransport() *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConns: 256, MaxIdleConnsPerHost: 128, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second, ResponseHeaderTimeout: time.Minute,
		DisableCompression: true, ReadBufferSize: 16 << 10, Protocols: protocols,
	}
}
