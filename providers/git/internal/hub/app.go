package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v88/github"

	"github.com/wsmount/wsmount/providers"
)

// App is an installation of a GitHub App, which authenticates with tokens that it mints. A token
// is for one repository, in memory alone, and used until shortly before it ends; the key is asked
// for when one is minted, and not kept.
type App struct {
	URL              string // of the API
	ID, Installation int64
	Repo             string
	// Key reveals the field private_key, a PEM, under this name or as the only
	// field.
	Key       func(ctx context.Context) (map[string]string, error)
	Transport http.RoundTripper // nil: http.DefaultTransport
	Now       func() time.Time  // nil: time.Now

	mu      sync.Mutex // held while a token is minted, and guards it
	token   string
	expires time.Time
}

// early is how long before its end a token is used no more: longer than any
// operation with it takes.
const early = 5 * time.Minute

// Credentials gives a token, in the fields that a session expects.
func (a *App) Credentials(ctx context.Context) (map[string]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now
	if a.Now != nil {
		now = a.Now
	}
	if a.token == "" || !now().Add(early).Before(a.expires) {
		if err := a.mint(ctx); err != nil {
			return nil, err
		}
	}
	return map[string]string{"username": "x-access-token", "token": a.token, "expiration": a.expires.Format(time.RFC3339)}, nil
}

// Forget has the next Credentials mint another token: the service did not take
// the last one.
func (a *App) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = ""
}

func (a *App) mint(ctx context.Context) error {
	a.token = ""
	fields, err := a.Key(ctx)
	if err != nil {
		return err
	}
	key := fields["private_key"]
	if key == "" && len(fields) == 1 {
		for _, only := range fields {
			key = only
		}
	}
	next := a.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	t, err := ghinstallation.New(polite{next}, a.ID, a.Installation, []byte(key))
	if err != nil { // it may show the key
		return providers.Kinded(errors.New("the GitHub App's key is no RSA key in PEM"), providers.ErrUnauthenticated)
	}
	t.BaseURL = strings.TrimRight(a.URL, "/")
	t.InstallationTokenOptions = &github.InstallationTokenOptions{Repositories: []string{a.Repo}}
	token, err := t.Token(ctx)
	if err != nil {
		return a.unminted(ctx, err)
	}
	expires, _, err := t.Expiry()
	if err == nil && (token == "" || expires.IsZero()) {
		err = foreign("there is no token in it, or no end of it")
	}
	if err == nil {
		a.token, a.expires = token, expires
	}
	return err
}

// unminted is the error for a token that could not be minted.
func (a *App) unminted(ctx context.Context, err error) error {
	var answer *ghinstallation.HTTPError
	var own *Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &own):
		return own
	case !errors.As(err, &answer) || answer.Response == nil:
		return &Error{Kind: providers.ErrUnavailable, Says: line("no token for the GitHub App's installation: " + err.Error()), Err: err}
	}
	answer.Response.Body.Close()
	status := answer.Response.StatusCode
	kind := providers.ErrUnauthenticated
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || answer.Response.Header.Get("Retry-After") != "" {
		kind = providers.ErrUnavailable
	}
	return &Error{Kind: kind, Code: fmt.Sprint(status), Says: fmt.Sprintf("installation %d of GitHub App %d for %s: the API answers %s", a.Installation, a.ID, a.Repo, answer.Response.Status), Err: err}
}
