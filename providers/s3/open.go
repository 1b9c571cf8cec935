package s3

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

var (
	_ bucket.Store    = (*store)(nil)
	_ bucket.Examined = (*store)(nil)
)

// store is the bucket at the service.
type store struct {
	config config
	client *s3.Client
	login  login // zero: anonymous
	way    *bucket.Connection
	log    *slog.Logger
	now    func() time.Time
	probe  Probe
	past   versions
	grown  *grown
	tags   *bucket.Tags

	encodes atomic.Bool // the last listing had keys encoded
}

// connect makes the client; nothing is sent yet.
func connect(ctx context.Context, settings providers.Settings, at bucket.Place) (*store, *bucket.Connection, error) {
	c, err := parseConfig(settings.Config, at)
	if err != nil {
		return nil, nil, err
	}
	credentials, login, err := newLogin(ctx, c, settings)
	if err != nil {
		return nil, nil, err
	}
	s := &store{config: c, login: login, log: settings.Logger, now: settings.Now, grown: newGrown()}
	s.past.s = s
	s.tags = bucket.NewTags(settings.Logger, "s3:GetObjectTagging", "s3:PutObjectTagging", s.tagsOf)
	s.way = bucket.Connect(settings.Transport, func(r *http.Request) string { return awsmiddleware.GetOperationName(r.Context()) }, genuine)
	s.way.Ended = s.grown.close
	o := s3.Options{
		Region: c.region, UsePathStyle: c.pathStyle, Credentials: credentials, HTTPSignerV4: &signer{},
		HTTPClient: s.way.Client, Retryer: aws.NopRetryer{},
		// Newer checksums are refused by too many services.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,

		DisableLogOutputChecksumValidationSkipped: true,
	}
	if c.Endpoint != "" {
		o.BaseEndpoint = &c.Endpoint
	}
	s.client = s3.New(o)
	return s, s.way, nil
}

// call sends one request, and once more after a new login. again, unless nil, prepares the
// request's body for that, or returns false if it cannot.
func call[I, O any](ctx context.Context, s *store, send func(context.Context, *I, ...func(*s3.Options)) (*O, error), in *I, again func() bool, opts ...func(*s3.Options)) (out *O, err error) {
	err = s.login.Do(ctx, func() error {
		s.grown.run(func() { out, err = send(ctx, in, opts...) })
		return translate(ctx, err)
	}, mayBeLogin, again)
	if err != nil {
		return nil, err
	}
	return out, nil
}
