package s3

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
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
	vain    time.Time // when there were no others than those that were refused
}

// vainPause is how long nobody asks again for credentials that were not there:
// it may run a program, and each time is in the audit log.
const vainPause = time.Second

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
		l := &login{fetch: func(ctx context.Context) (aws.Credentials, error) { return chained(ctx, chain.Credentials) }, now: s.Now}
		return l, l, nil
	case s.Credentials == nil:
		return nil, nil, fmt.Errorf("no credentials given: %w", providers.ErrUnauthenticated)
	}
	l := &login{fetch: func(ctx context.Context) (aws.Credentials, error) { return named(ctx, s.Credentials) }, now: s.Now}
	return l, l, nil
}

// chained asks the SDK's chain anew: what it has kept is what we have already.
func chained(ctx context.Context, chain aws.CredentialsProvider) (aws.Credentials, error) {
	if kept, ok := chain.(*aws.CredentialsCache); ok {
		kept.Invalidate()
	}
	c, err := chain.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		err = &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: err}
	}
	return c, err
}

// named asks for the fields that make credentials of S3.
func named(ctx context.Context, reveal func(context.Context) (map[string]string, error)) (aws.Credentials, error) {
	fields, err := reveal(ctx)
	if err != nil {
		return aws.Credentials{}, &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: err}
	}
	for _, name := range []string{"access_key_id", "secret_access_key"} {
		if fields[name] == "" {
			return aws.Credentials{}, &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: fmt.Errorf("the credentials have no %s", name)}
		}
	}
	c := aws.Credentials{Source: "wsmount", AccessKeyID: fields["access_key_id"], SecretAccessKey: fields["secret_access_key"],
		SessionToken: fields["session_token"]}
	if fields["expiration"] == "" {
		return c, nil
	}
	if c.Expires, err = time.Parse(time.RFC3339, fields["expiration"]); err != nil {
		return aws.Credentials{}, &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: errors.New("expiration of the credentials is not a time of RFC 3339")}
	}
	c.CanExpire = true
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
	now := l.now()
	if !l.vain.IsZero() && now.Sub(l.vain) >= 0 && now.Sub(l.vain) < vainPause {
		return false
	}
	if l.renew(ctx, now) == nil && !same(l.current, used) {
		return true
	}
	l.vain = now
	return false
}

// using is what requests are signed with at this time.
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
