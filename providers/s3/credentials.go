package s3

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// login caches credentials. The SDK's own cache cannot be told that the service refused its
// credentials.
type login struct{ *bucket.Login[aws.Credentials] }

// Retrieve implements aws.CredentialsProvider.
func (l login) Retrieve(ctx context.Context) (aws.Credentials, error) { return l.Get(ctx) }

// newLogin chooses the source of credentials.
func newLogin(ctx context.Context, c config, s providers.Settings) (aws.CredentialsProvider, login, error) {
	var fetch func(context.Context) (aws.Credentials, time.Time, error)
	switch {
	case c.Credentials == "none":
		return aws.AnonymousCredentials{}, login{}, nil
	case c.Credentials == "sdk":
		// The chain asks services of the host's own (metadata, STS), which the transport of the
		// bucket's requests does not admit.
		chain, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(c.region))
		if err != nil {
			return nil, login{}, fmt.Errorf("the SDK's credentials: %w: %w", providers.ErrUnauthenticated, err)
		}
		fetch = func(ctx context.Context) (aws.Credentials, time.Time, error) { return chained(ctx, chain.Credentials) }
	case s.Credentials == nil:
		return nil, login{}, fmt.Errorf("no credentials given: %w", providers.ErrUnauthenticated)
	default:
		fetch = func(ctx context.Context) (aws.Credentials, time.Time, error) { return named(ctx, s) }
	}
	l := login{bucket.NewLogin(s.Now, same, fetch)}
	return l, l, nil
}

// chained asks the SDK's chain anew: its cache has only the credentials that login has.
func chained(ctx context.Context, chain aws.CredentialsProvider) (aws.Credentials, time.Time, error) {
	if kept, ok := chain.(*aws.CredentialsCache); ok {
		kept.Invalidate()
	}
	c, err := chain.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		err = &bucket.Fault{Kind: providers.ErrUnauthenticated, Err: err}
	}
	if !c.CanExpire {
		return c, time.Time{}, err
	}
	return c, c.Expires, err
}

// named reads the fields of S3 credentials.
func named(ctx context.Context, s providers.Settings) (aws.Credentials, time.Time, error) {
	fields, ends, err := bucket.Reveal(ctx, s, "access_key_id", "secret_access_key")
	return aws.Credentials{
		Source: "wsmount", AccessKeyID: fields["access_key_id"], SecretAccessKey: fields["secret_access_key"],
		SessionToken: fields["session_token"], CanExpire: !ends.IsZero(), Expires: ends,
	}, ends, err
}

func same(a, b aws.Credentials) bool {
	return a.AccessKeyID == b.AccessKeyID && a.SecretAccessKey == b.SecretAccessKey && a.SessionToken == b.SessionToken
}
