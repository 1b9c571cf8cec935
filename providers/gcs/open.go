package gcs

import (
	"context"
	"log/slog"
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
	login  *bucket.Login[string]
	way    *bucket.Connection
	log    *slog.Logger
	now    func() time.Time
}

// openSettings makes a provider and lets it look at its bucket.
func openSettings(ctx context.Context, s providers.Settings, known []string) (*Provider, error) {
	c, err := parseConfig(s, known)
	if err != nil {
		return nil, err
	}
	service, err := connect(ctx, c, s)
	if err != nil {
		return nil, err
	}
	p, err := bucket.Open(ctx, service, bucket.Options{
		Service: traits, Bucket: c.bucket, Prefix: c.prefix, ReadOnly: s.ReadOnly, Logger: s.Logger, Now: s.Now, Ended: s.Ended, Way: service.way,
	})
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
	s := &store{config: c, login: login, way: bucket.Connect(settings.Transport, nameOf, genuine), log: settings.Logger, now: settings.Now}
	s.way.Client.Transport = sender{login, s.way.Client.Transport}
	// No log: what the environment asks of Google's own tools would have tokens in it.
	s.api, err = storage.NewService(ctx, option.WithHTTPClient(s.way.Client), option.WithEndpoint(c.endpoint+"/storage/v1/"), option.WithLogger(slog.New(slog.DiscardHandler)))
	return s, err
}
