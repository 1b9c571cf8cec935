package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/wsmount/wsmount/providers"
)

// login keeps credentials until shortly before they expire. The SDK's own
// cache cannot be told that the service refused what it holds.
type login struct {
	fetch func(ctx context.Context) (aws.Credentials, error)
	now   func() time.Time

	mu      sync.Mutex // guards all below; held while fetching, so that one fetches for all
	current aws.Credentials
	renewAt time.Time // zero: when the service refuses them
	fetched time.Time // zero: never
}

// newLogin chooses where credentials come from.
func newLogin(ctx context.Context, c config, s providers.Settings) (aws.CredentialsProvider, *login, error) {
	switch {
	case c.credentials == "none":
		return aws.AnonymousCredentials{}, nil, nil
	case c.credentials == "sdk":
		// The chain asks services of the host's own (metadata, STS), which the
		// transport of the bucket's requests does not know.
		chain, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(c.region))
		if err != nil {
			return nil, nil, fmt.Errorf("the SDK's credentials: %w: %w", providers.ErrUnauthenticated, err)
		}
		l := &login{fetch: chain.Credentials.Retrieve, now: s.Now}
		return l, l, nil
	case s.Secret == nil:
		return nil, nil, fmt.Errorf("no credentials given: %w", providers.ErrUnauthenticated)
	}
	l := &login{fetch: func(ctx context.Context) (aws.Credentials, error) { return named(ctx, s.Secret) }, now: s.Now}
	return l, l, nil
}

// named asks for the named secrets. Those that may be missing are so with
// ErrNotExist. expiration (RFC 3339) is when the others end.
func named(ctx context.Context, secret func(context.Context, string) (string, error)) (aws.Credentials, error) {
	c := aws.Credentials{Source: "wsmount"}
	var expiration string
	for _, field := range []struct {
		name     string
		to       *string
		optional bool
	}{
		{"access_key_id", &c.AccessKeyID, false}, {"secret_access_key", &c.SecretAccessKey, false},
		{"session_token", &c.SessionToken, true}, {"expiration", &expiration, true},
	} {
		value, err := secret(ctx, field.name)
		switch {
		case field.optional && errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return aws.Credentials{}, &fault{kind: providers.ErrUnauthenticated, err: fmt.Errorf("secret %s: %w", field.name, err)}
		default:
			*field.to = value
		}
	}
	if expiration == "" {
		return c, nil
	}
	t, err := time.Parse(time.RFC3339, expiration)
	if err != nil {
		return aws.Credentials{}, &fault{kind: providers.ErrUnauthenticated, err: errors.New("secret expiration is not a time of RFC 3339")}
	}
	c.CanExpire, c.Expires = true, t
	return c, nil
}

// Retrieve implements aws.CredentialsProvider.
func (l *login) Retrieve(ctx context.Context) (aws.Credentials, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if !l.fetched.IsZero() && (l.renewAt.IsZero() || now.Before(l.renewAt)) {
		return l.current, nil
	}
	if err := l.renew(ctx, now); err != nil && (l.fetched.IsZero() || !now.Before(l.current.Expires)) {
		return aws.Credentials{}, err
	}
	return l.current, nil // perhaps the old ones, which still hold
}

// renew asks again. The caller holds mu. Credentials are renewed when a
// quarter of their time is left, at most five minutes ahead.
func (l *login) renew(ctx context.Context, now time.Time) error {
	c, err := l.fetch(ctx)
	if err != nil {
		return err
	}
	l.current, l.fetched, l.renewAt = c, now, time.Time{}
	if c.CanExpire {
		l.renewAt = c.Expires.Add(-min(c.Expires.Sub(now)/4, 5*time.Minute))
	}
	return nil
}

// refused tells that the service did not take the credentials that a request
// was signed with, and reports whether there are others now.
func (l *login) refused(ctx context.Context, used aws.Credentials) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !same(l.current, used) {
		return true // another request has renewed them already
	}
	return l.renew(ctx, l.now()) == nil && !same(l.current, used)
}

// now is what requests are signed with at this time.
func (l *login) using() aws.Credentials {
	if l == nil {
		return aws.Credentials{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

func same(a, b aws.Credentials) bool {
	return a.AccessKeyID == b.AccessKeyID && a.SecretAccessKey == b.SecretAccessKey && a.SessionToken == b.SessionToken
}
