package s3

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// signer signs requests. The SDK's signer keeps the key that it derives from a secret for a
// day, under the access key's id alone: at a service where an id can get another secret, it
// would keep using the old one. So each secret has a signer of its own.
type signer struct {
	mu     sync.Mutex // guards the fields below
	secret string
	inner  *v4.Signer
}

var _ s3.HTTPSignerV4 = (*signer)(nil)

// SignHTTP implements s3.HTTPSignerV4.
func (s *signer) SignHTTP(ctx context.Context, c aws.Credentials, r *http.Request, hash, service, region string, at time.Time, opts ...func(*v4.SignerOptions)) error {
	return s.with(c.SecretAccessKey).SignHTTP(ctx, c, r, hash, service, region, at, opts...)
}

// with is the signer for a secret.
func (s *signer) with(secret string) *v4.Signer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inner == nil || s.secret != secret {
		s.secret = secret
		s.inner = v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }) // S3's own rule
	}
	return s.inner
}
