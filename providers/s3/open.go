package s3

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/wsmount/wsmount/providers"
)

// Provider is a bucket, or what in it lies below a prefix. A Driver makes it.
type Provider struct {
	config config
	client *s3.Client
	login  *login // nil: anonymous
	meter  *meter
	own    *http.Transport // to be closed with the provider; nil: the caller's
	log    *slog.Logger
	now    func() time.Time
	probe  Probe
	hints  *hints
	past   versions
	grown  *grown
	closed atomic.Bool

	unordered atomic.Bool // the service does not list keys in their order
}

var _ interface {
	providers.Provider
	providers.Copier
	providers.AttrSetter
	providers.Multiparter
} = (*Provider)(nil)

// openSettings makes a provider and lets it look at its bucket.
func openSettings(ctx context.Context, s providers.Settings, known []string) (*Provider, error) {
	c, err := parseConfig(s, known)
	if err != nil {
		return nil, err
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := connect(ctx, c, s)
	if err != nil {
		return nil, err
	}
	if err := p.look(ctx, s.ReadOnly || s.Config["readOnly"] == "true"); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// connect makes the client; nothing is sent yet.
func connect(ctx context.Context, c config, s providers.Settings) (*Provider, error) {
	credentials, login, err := newLogin(ctx, c, s)
	if err != nil {
		return nil, err
	}
	p := &Provider{config: c, login: login, log: s.Logger, now: s.Now, grown: newGrown()}
	p.past.p = p
	p.hints = newHints(p)
	p.hints.ended = s.Ended
	p.meter = &meter{inner: s.Transport, seen: map[string]providers.Count{}}
	if s.Transport == nil {
		p.own = plainTransport()
		p.meter.inner = p.own
	}
	o := s3.Options{
		Region: c.region, UsePathStyle: c.pathStyle, Credentials: credentials, HTTPSignerV4: &signer{},
		// A redirect would send credentials where nobody granted them to go.
		HTTPClient: &http.Client{Transport: &genuine{inner: p.meter}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		Retryer:    aws.NopRetryer{},
		// Newer checksums are refused by too many services.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,

		DisableLogOutputChecksumValidationSkipped: true,
	}
	if c.endpoint != "" {
		o.BaseEndpoint = &c.endpoint
	}
	p.client = s3.New(o)
	return p, nil
}

// plainTransport speaks HTTP/1.1: one stream per connection is what object
// stores are built for. Connections are kept for a burst of small requests, of
// which each is read in one piece.
func plainTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConns: 256, MaxIdleConnsPerHost: 128, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second, ResponseHeaderTimeout: time.Minute,
		DisableCompression: true, ReadBufferSize: 16 << 10,
	}
}

// look checks that the bucket is there, and what it can do unless nothing will
// be changed.
func (p *Provider) look(ctx context.Context, readOnly bool) error {
	own, err := p.reach(ctx)
	if err == nil {
		err = p.checkPrefix(ctx)
	}
	if err == nil && !readOnly {
		err = p.tryAll(ctx, own)
	}
	if isCode(err, "NoSuchBucket") {
		return &fault{kind: providers.ErrNotExist, code: "NoSuchBucket", err: fmt.Errorf("bucket %q", p.config.bucket)}
	}
	if err == nil {
		p.hints.start(own.items, p.probe.Done)
	}
	return err
}

// reach is a LIST of what is wsmount's own, and no HEAD, whose errors have no
// text.
func (p *Provider) reach(ctx context.Context) (listing, error) {
	return p.list(ctx, &s3.ListObjectsV2Input{Prefix: aws.String(p.config.prefix + reserved + "/")})
}

// Capabilities implements providers.Provider.
func (p *Provider) Capabilities() providers.Capabilities {
	c := promises()
	c.Conditions = p.probe.conditions()
	c.Names.XML = !p.probe.Encodes
	c.Names.Path = keyMax - len(p.config.prefix) - len("/")
	if !p.probe.Done {
		c.Writable, c.Abilities = false, 0
	}
	return c
}

// keyMax is the longest key that S3 has, in bytes.
const keyMax = 1 << 10

// promises is the best that a service can do.
func promises() providers.Capabilities {
	all := providers.GuardAtomic
	return providers.Capabilities{
		Writable: true, Durable: true, EmptyDirs: true, ImpliedDirs: true, Symlinks: true, Metadata: true, RecursiveList: true, ListAfter: true,
		OperationIDs: true, ConcurrentWriters: true, DearCopy: true, Attributes: attributes,
		Conditions: providers.Conditions{Create: all, Replace: all, Delete: all, Copy: all, SetAttr: all},
		Parts:      providers.PartLimits{Min: partMin, Max: partMax, Count: partCount},
		MaxSize:    5 << 40,
		Names:      providers.NameLimits{UTF8: true, Plain: true, Ending: beside, Own: reserved},
		Abilities:  providers.AbilityCopy | providers.AbilityAttr | providers.AbilityParts,
	}
}

// Close implements providers.Provider.
func (p *Provider) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	p.hints.close()
	close(p.grown.end)
	if p.own != nil {
		p.own.CloseIdleConnections()
	}
	return nil
}

// ready is asked before each verb.
func (p *Provider) ready(ctx context.Context) error {
	if p.closed.Load() {
		return providers.ErrClosed
	}
	return ctx.Err()
}

// do is the way of every verb: it finds the place of l, runs f, and reports.
func do[R any](ctx context.Context, p *Provider, op providers.Method, l providers.Locator, f func(at place) (R, error)) (R, error) {
	var none R
	err := p.ready(ctx)
	if err == nil && op.Mutates() && !p.probe.Done {
		err = fmt.Errorf("opened for reading: %w", providers.ErrReadOnly)
	}
	if err != nil {
		return none, fail(ctx, op, l, err)
	}
	at, err := p.find(l)
	if err == nil {
		err = p.checkPlace(ctx, op, at)
	}
	if err != nil {
		return none, fail(ctx, op, l, err)
	}
	result, err := f(at)
	if err != nil {
		return none, fail(ctx, op, l, err)
	}
	return result, nil
}

// checkPlace refuses places that are none. Reading and deleting are generous:
// what a listing named stays reachable while its neighbours come and go.
func (p *Provider) checkPlace(ctx context.Context, op providers.Method, at place) error {
	makes := op.Mutates() && op != providers.MethodDelete
	missing := providers.ErrNotExist
	if makes {
		missing = providers.ErrInvalid
	}
	switch {
	case isReserved(at.l):
		return fmt.Errorf("names below %s are wsmount's own: %w", reserved, missing)
	case !utf8.ValidString(at.dir):
		return fmt.Errorf("S3's keys are UTF-8: %w", missing)
	case makes:
		return p.checkNew(ctx, at)
	}
	return nil
}

// checkNew refuses names that a listing could not give back. Only those of
// directories beside files cost requests.
func (p *Provider) checkNew(ctx context.Context, at place) error {
	switch {
	case !p.probe.Encodes && !providers.IsXML(at.dir):
		return invalid("this service cannot list names with control characters")
	case isOdd(at.dir):
		return invalid("services disagree on such keys, so none is made")
	}
	for _, key := range at.files {
		if _, err := p.head(ctx, key); errors.Is(err, providers.ErrNotExist) {
			return invalid("a name with %s is for a directory beside a file", beside)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// call sends one request, and once more where the service did not take the
// credentials and there are new ones. again, unless nil, makes the request's
// body ready for that, or says that it cannot.
func call[I, O any](ctx context.Context, p *Provider, send func(context.Context, *I, ...func(*s3.Options)) (*O, error), in *I, again func() bool, opts ...func(*s3.Options)) (*O, error) {
	used := p.login.using()
	once := func() (out *O, err error) {
		p.grown.run(func() { out, err = send(ctx, in, opts...) })
		return out, translate(ctx, err)
	}
	out, err := once()
	if err == nil {
		return out, nil
	}
	if !mayBeLogin(err) || !p.login.refused(ctx, used) || again != nil && !again() {
		return nil, err
	}
	return once()
}
