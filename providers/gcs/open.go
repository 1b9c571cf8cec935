package gcs

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Provider is a bucket, or what in it lies below a prefix. A Driver makes it.
type Provider struct {
	*bucket.Provider
	store *store
}

var (
	_ providers.Meter    = (*Provider)(nil)
	_ providers.Examiner = (*Provider)(nil)
	_ bucket.Store       = (*store)(nil)
	_ bucket.Patcher     = (*store)(nil)
)

// store is the bucket as the service has it.
type store struct {
	config config
	api    *storage.Service
	client *http.Client // for what the JSON API does not have
	login  *bucket.Login[string]
	meter  *bucket.Meter
	own    *http.Transport // to be closed with the provider; nil: the caller's
	log    *slog.Logger
	now    func() time.Time
}

// openSettings makes a provider and lets it look at its bucket.
func openSettings(ctx context.Context, s providers.Settings) (*Provider, error) {
	c, err := parseConfig(s)
	if err != nil {
		return nil, err
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	service, err := connect(ctx, c, s)
	if err != nil {
		return nil, err
	}
	p, err := bucket.Open(ctx, service, bucket.Options{
		Service: traits, Bucket: c.bucket, Prefix: c.prefix, ReadOnly: s.ReadOnly, Logger: s.Logger, Now: s.Now, Ended: s.Ended,
	})
	if err != nil {
		service.close()
	}
	if isCode(err, noBucket) {
		err = &bucket.Fault{Kind: providers.ErrNotExist, Code: noBucket, Err: fmt.Errorf("bucket %q", c.bucket)}
	}
	if err != nil {
		return nil, err
	}
	return &Provider{p, service}, nil
}

// connect makes the client; nothing is sent yet.
func connect(ctx context.Context, c config, settings providers.Settings) (*store, error) {
	login, err := newLogin(ctx, c, settings)
	if err != nil {
		return nil, err
	}
	s := &store{config: c, login: login, log: settings.Logger, now: settings.Now}
	s.meter = &bucket.Meter{Inner: settings.Transport, Name: nameOf}
	if settings.Transport == nil {
		s.own = bucket.PlainTransport()
		s.meter.Inner = s.own
	}
	s.client = &http.Client{
		Transport: sender{login, genuine(s.meter)},
		// A redirect would send the token where nobody granted it to go.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	// No log: what the environment asks of Google's own tools would have tokens in it.
	s.api, err = storage.NewService(ctx, option.WithHTTPClient(s.client), option.WithEndpoint(c.endpoint+"/storage/v1/"), option.WithLogger(slog.New(slog.DiscardHandler)))
	return s, err
}

// Requests implements providers.Meter.
func (p *Provider) Requests() map[string]providers.Count { return p.store.meter.Requests() }

// Close implements providers.Provider.
func (p *Provider) Close() error {
	err := p.Provider.Close() // which still has to write
	p.store.close()
	return err
}

func (s *store) close() {
	if s.own != nil {
		s.own.CloseIdleConnections()
	}
}
