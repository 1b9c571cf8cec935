package gcs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// The scopes of a token: objects, and not their permissions.
const (
	scopeWrite = "https://www.googleapis.com/auth/devstorage.read_write"
	scopeRead  = "https://www.googleapis.com/auth/devstorage.read_only"
)

// newLogin chooses the source of tokens; nil: there is none, and no token is sent.
func newLogin(ctx context.Context, at bucket.Place, s providers.Settings) (*bucket.Login[string], error) {
	var fetch func(context.Context) (string, time.Time, error)
	scope := scopeWrite
	if s.ReadOnly {
		scope = scopeRead
	}
	switch {
	case at.Credentials == "none":
		return nil, nil
	case at.Credentials == "sdk":
		// They ask services of the host's own, which the transport of the bucket's requests
		// does not admit. Their caches outlive the call.
		found, err := google.FindDefaultCredentials(context.WithoutCancel(ctx), scope)
		if err != nil {
			return nil, &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: fmt.Errorf("application default credentials: %w", err)}
		}
		fetch = func(context.Context) (string, time.Time, error) { return tokenOf(found.TokenSource) }
	case s.Credentials == nil:
		return nil, fmt.Errorf("no credentials given: %w", providers.ErrUnauthenticated)
	default:
		fetch = func(ctx context.Context) (string, time.Time, error) { return named(ctx, s, scope) }
	}
	return bucket.NewLogin(s.Now, func(a, b string) bool { return a == b }, func(ctx context.Context) (string, time.Time, error) {
		token, ends, err := fetch(ctx)
		if err == nil && s.Minted != nil {
			s.Minted(token)
		}
		return token, ends, err
	}), nil
}

// named asks for a token, or for the key that signs one.
func named(ctx context.Context, s providers.Settings, scope string) (token string, ends time.Time, err error) {
	fields, ends, err := bucket.Reveal(ctx, s)
	if err != nil {
		return "", time.Time{}, err
	}
	if token := fields["token"]; token != "" {
		return token, ends, nil
	}
	if text := fields["credentials_file"]; text != "" { // a key file in one piece
		fields = map[string]string{}
		if json.Unmarshal([]byte(text), &fields) != nil { // the error may show the key
			return "", time.Time{}, &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: errors.New("credentials_file is no key file of a service account (want its content, not its path)")}
		}
	}
	for _, name := range []string{"client_email", "private_key"} {
		if fields[name] == "" {
			return "", time.Time{}, &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: fmt.Errorf("the credentials have no %s (want those of a service account's key, or token)", name)}
		}
	}
	key, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": fields["client_email"], "private_key": fields["private_key"], "private_key_id": fields["private_key_id"],
	})
	if err != nil {
		return "", time.Time{}, err
	}
	source, err := google.JWTAccessTokenSourceWithScope(key, scope)
	if err != nil { // the error may show the key
		return "", time.Time{}, &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: fmt.Errorf("private_key of the credentials is no key")}
	}
	return tokenOf(source)
}

func tokenOf(source oauth2.TokenSource) (string, time.Time, error) {
	t, err := source.Token()
	if err != nil {
		return "", time.Time{}, &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: fmt.Errorf("no token: %w", err)}
	}
	return t.AccessToken, t.Expiry, nil
}
