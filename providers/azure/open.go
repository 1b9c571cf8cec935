package azure

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

var (
	_ bucket.Store    = (*store)(nil)
	_ bucket.Patcher  = (*store)(nil)
	_ bucket.Examined = (*store)(nil)
)

// store is the container at the service.
type store struct {
	config  config
	login   *bucket.Login[*session]
	way     *bucket.Connection
	log     *slog.Logger
	now     func() time.Time
	tags    *bucket.Tags
	uploads sync.Map // those not ended: bucket.Upload, and when it began

	// Directories of the service's own. hierarchical: all are; folders: some were seen.
	hierarchical, folders atomic.Bool

	tagless, modeless atomic.Bool // listings with these are refused
}

// connect makes the clients; nothing is sent yet.
func connect(_ context.Context, settings providers.Settings, at bucket.Place) (*store, *bucket.Connection, error) {
	c, err := parseConfig(settings.Config, at)
	if err != nil {
		return nil, nil, err
	}
	s := &store{config: c, way: bucket.Connect(settings.Transport, operation, genuine), log: settings.Logger, now: settings.Now}
	s.tags = bucket.NewTags(settings.Logger, "blobs/tags/read", "blobs/tags/write", s.tagsOf)
	s.login, err = newLogin(c, settings, once(s.way.Client))
	return s, s.way, err
}

// Examination implements bucket.Examined.
func (s *store) Examination() bucket.Examination {
	return bucket.Examination{
		Endpoint:   s.config.Endpoint,
		Own:        func(context.Context) []providers.Finding { return []providers.Finding{s.examineTags()} },
		Conditions: []providers.Finding{bucket.Good("conditions", "Azure decides on those of every change")},
	}
}

// examineTags reports on tags from an earlier listing.
func (s *store) examineTags() providers.Finding {
	switch {
	case s.hierarchical.Load():
		return bucket.Good("tags", "the account has a hierarchical namespace, in which blobs have none")
	case s.tagless.Load():
		return bucket.Less("tags", "grant blobs/tags/read and blobs/tags/write (t of a signature), if blobs have tags that are to stay",
			"index tags cannot be read: a blob that is written anew loses them")
	}
	return bucket.Good("tags", "index tags of a blob that is written anew stay")
}

// call sends one request, and once more after a new login. again, unless nil, prepares the
// request's body for that, or returns false if it cannot.
func call[O any](ctx context.Context, s *store, again func() bool, send func(*session) (O, error)) (out O, err error) {
	err = s.login.Do(ctx, func() error {
		who, err := s.login.Get(ctx)
		if err == nil {
			out, err = send(who)
		}
		return translate(ctx, err)
	}, bucket.MayBeLogin, again)
	return out, err
}

// Honours implements bucket.Store. It also finds out whether directories are the service's own:
// a failure of that does not make a mount fail, as few logins may ask for it.
func (s *store) Honours(ctx context.Context, _ bucket.Listing) (bucket.Honours, error) {
	info, err := call(ctx, s, nil, func(who *session) (bool, error) {
		out, err := who.container.GetAccountInfo(ctx, nil)
		return out.IsHierarchicalNamespaceEnabled != nil && *out.IsHierarchicalNamespaceEnabled, err
	})
	switch {
	case ctx.Err() != nil:
		return bucket.Honours{}, err
	case err != nil:
		s.log.DebugContext(ctx, "the service does not say of what kind the account is", "error", err)
	case info:
		s.hierarchical.Store(true)
	}
	return bucket.Honours{Create: true, Replace: true, Complete: true, Copy: true, Delete: true, Encodes: true}, nil
}
