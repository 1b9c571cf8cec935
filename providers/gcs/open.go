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

var (
	_ bucket.Store    = (*store)(nil)
	_ bucket.Patcher  = (*store)(nil)
	_ bucket.Examined = (*store)(nil)
)

// store is the bucket at the service.
type store struct {
	config bucket.Place
	api    *storage.Service
	login  *bucket.Login[string]
	way    *bucket.Connection
	log    *slog.Logger
	now    func() time.Time
	chunk  int // see chunkSize
}

// connect makes the client; nothing is sent yet.
func connect(ctx context.Context, settings providers.Settings, at bucket.Place) (*store, *bucket.Connection, error) {
	c, err := parseConfig(at)
	if err != nil {
		return nil, nil, err
	}
	login, err := newLogin(ctx, c, settings)
	if err != nil {
		return nil, nil, err
	}
	s := &store{config: c, login: login, way: bucket.Connect(settings.Transport, nameOf, genuine), log: settings.Logger, now: settings.Now, chunk: chunkSize}
	s.way.Client.Transport = sender{login, s.way.Client.Transport}
	// No log: one that the environment turns on for Google's own tools would have tokens in it.
	s.api, err = storage.NewService(ctx, option.WithHTTPClient(s.way.Client), option.WithEndpoint(c.Endpoint+"/storage/v1/"), option.WithLogger(slog.New(slog.DiscardHandler)))
	return s, s.way, err
}
