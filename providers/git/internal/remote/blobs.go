package remote

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/wsmount/wsmount/providers"
)

// Filters reports whether the server leaves blobs out if it is asked to, and sends
// them by their ids later.
func (s *Session) Filters() bool {
	return s.can.Supports(capability.Filter) && s.can.Supports(capability.AllowReachableSHA1InWant)
}

// Blobs fetches blobs, as a pack that receive reads: with one request over HTTP if an earlier
// answer told the server's capabilities, else with a session. Some of them may not come.
func (r *Remote) Blobs(ctx context.Context, blobs []ID, receive func(io.Reader) error) error {
	if can := r.can.Load(); can != nil {
		err := r.blobsAtOnce(ctx, can, blobs, receive)
		if !isRedirect(err) {
			return err
		}
		r.can.Store(nil) // only the first request of a session is followed elsewhere
	}
	s, err := r.Ask(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.blobs(ctx, blobs, receive)
}

// blobsAtOnce is Blobs with the capabilities of an earlier answer.
func (r *Remote) blobsAtOnce(ctx context.Context, can *capability.List, blobs []ID, receive func(io.Reader) error) error {
	up, err := r.over.upload(ctx)
	if err != nil {
		return err
	}
	s := &Session{up: up, can: can}
	defer s.Close()
	return s.blobs(ctx, blobs, receive)
}

func (s *Session) blobs(ctx context.Context, blobs []ID, receive func(io.Reader) error) error {
	req := packp.NewUploadPackRequestFromCapabilities(s.can)
	req.Wants = slices.Clone(blobs) // they get sorted
	return s.fetch(ctx, req, receive)
}

// isRedirect reports whether a request was not made because it was redirected.
func isRedirect(err error) bool {
	var e *Error
	return errors.As(err, &e) && errors.Is(e.Kind, providers.ErrPermission) && (strings.HasPrefix(e.Code, "3") || strings.Contains(e.Err.Error(), "http redirect:"))
}
