package remote

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/shell"
)

// Large finds the server's large files, for an operation of package lfs: over HTTP below the
// repository, over SSH where the server says, and over git:// nowhere. The error is
// lfs.ErrNotOffered if it is sure that there are none.
func (r *Remote) Large(ctx context.Context, operation string) (lfs.Endpoint, error) {
	return r.over.large(ctx, operation)
}

func (h *overHTTP) large(ctx context.Context, _ string) (lfs.Endpoint, error) {
	at := lfs.Endpoint{URL: strings.TrimSuffix(h.url, ".git") + ".git/info/lfs"}
	if h.o.Credentials == nil {
		return at, nil
	}
	user, password, err := Login(ctx, h.o.Credentials)
	if err == nil {
		at.Header = map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
	}
	return at, err
}

// told are the answers of a server, by operation, until they expire.
type told struct {
	mu  sync.Mutex
	now func() time.Time
	by  map[string]lfs.Endpoint
}

// spare is how long before its end an answer is no longer used, and briefly the life of one that
// gives no end.
const (
	spare   = 15 * time.Second
	briefly = time.Minute
)

func (s overSSH) large(ctx context.Context, operation string) (lfs.Endpoint, error) {
	s.told.mu.Lock()
	is, ok := s.told.by[operation]
	s.told.mu.Unlock()
	if ok && s.told.now().Add(spare).Before(is.Until) {
		return is, nil
	}
	text, err := s.Authenticate(ctx, operation)
	switch {
	case ctx.Err() != nil:
		return lfs.Endpoint{}, ctx.Err()
	case errors.Is(err, shell.ErrNoService):
		return lfs.Endpoint{}, fmt.Errorf("%w: %w", lfs.ErrNotOffered, errors.New(err.Error()))
	case errors.Is(err, providers.ErrNotExist): // it must not look like a file that is not there
		return lfs.Endpoint{}, &Error{Kind: providers.ErrUnavailable, Err: errors.New(err.Error())}
	case err != nil:
		return lfs.Endpoint{}, translate(ctx, err)
	}
	if is, err = lfs.ParseEndpoint(text, s.told.now()); err != nil {
		return is, err
	}
	if is.Until.IsZero() {
		is.Until = s.told.now().Add(briefly)
	}
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	s.told.by[operation] = is
	return is, nil
}
