package remote

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/wsmount/wsmount/providers"
)

// overHTTP is go-git's own.
type overHTTP struct {
	url         string
	o           Options
	fetch, push transport.Transport
}

func newHTTP(url string, o Options) *overHTTP {
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	client := func(p githttp.RedirectPolicy) transport.Transport {
		return githttp.NewClientWithOptions(&http.Client{Transport: genuine{o.Transport}}, &githttp.ClientOptions{RedirectPolicy: p})
	}
	return &overHTTP{url: url, o: o, fetch: client(githttp.FollowInitialRedirects), push: client(githttp.NoFollowRedirects)}
}

// auth are the credentials of a session, nil if there are none.
func (h *overHTTP) auth(ctx context.Context) (transport.AuthMethod, error) {
	if h.o.Credentials == nil {
		return nil, nil
	}
	user, password, err := Login(ctx, h.o.Credentials)
	if err != nil {
		return nil, err
	}
	return &githttp.BasicAuth{Username: user, Password: password}, nil
}

// Login is the user and the password that credentials reveal.
func Login(ctx context.Context, credentials func(context.Context) (map[string]string, error)) (user, password string, err error) {
	fields, err := credentials(ctx)
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", providers.ErrUnauthenticated, err)
	}
	if user = fields["username"]; user == "" {
		user = "x-access-token"
	}
	if password = fields["token"]; password == "" {
		password = fields["password"]
	}
	if password == "" {
		return "", "", fmt.Errorf("the secret has neither a token nor a password: %w", providers.ErrUnauthenticated)
	}
	return user, password, nil
}

// prepare makes the endpoint and the credentials of a session.
func (h *overHTTP) prepare(ctx context.Context) (*transport.Endpoint, transport.AuthMethod, error) {
	auth, err := h.auth(ctx)
	if err != nil {
		return nil, nil, err
	}
	ep, err := transport.NewEndpoint(h.url)
	if err != nil {
		return nil, nil, fmt.Errorf("the repository's URL: %w", providers.ErrInvalid) // the URL may hold a secret
	}
	return ep, auth, nil
}

func (h *overHTTP) upload(ctx context.Context) (transport.UploadPackSession, error) {
	ep, auth, err := h.prepare(ctx)
	if err != nil {
		return nil, err
	}
	up, err := h.fetch.NewUploadPackSession(ep, auth)
	if err != nil {
		return nil, translate(ctx, err)
	}
	return up, nil
}

func (h *overHTTP) receive(ctx context.Context) (transport.ReceivePackSession, error) {
	ep, auth, err := h.prepare(ctx)
	if err != nil {
		return nil, err
	}
	down, err := h.push.NewReceivePackSession(ep, auth)
	if err != nil {
		return nil, translate(ctx, err)
	}
	return down, nil
}
