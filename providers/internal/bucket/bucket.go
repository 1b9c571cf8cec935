package bucket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/wsmount/wsmount/providers"
)

// Provider is a bucket, or its part below a prefix. Open makes it.
type Provider struct {
	objects
	name   string
	writes bool
	closed atomic.Bool
	way    *Connection

	unordered atomic.Bool // the service does not list keys in their order
}

var _ interface {
	providers.Provider
	providers.Copier
	providers.AttrSetter
	providers.Multiparter
	providers.Meter
	providers.Examiner
} = (*Provider)(nil)

// Options say which bucket it is, and give the limits of its service. Logger and Now are
// required.
type Options struct {
	Service  Service
	Bucket   string // its name
	Prefix   string // of ParsePrefix
	ReadOnly bool
	Logger   *slog.Logger
	Now      func() time.Time
	Way      *Connection                  // to be closed with the provider, or if it is not opened; nil: none
	Ended    func(work string, err error) // as in providers.Settings
}

// Open checks that the bucket exists and, unless it is opened for reading, which conditions the
// service honours.
func Open(ctx context.Context, store Store, o Options) (*Provider, error) {
	p := &Provider{objects: objects{store: store, service: o.Service, prefix: o.Prefix, log: o.Logger, now: o.Now}, name: o.Bucket, way: o.Way}
	p.index = newIndex(&p.objects)
	p.index.ended = o.Ended
	own, err := p.list(ctx, Query{Prefix: p.prefix + Own + "/"})
	if err == nil {
		err = p.checkPrefix(ctx)
	}
	if err == nil && !o.ReadOnly {
		p.honours, err = store.Honours(ctx, own.Listing)
	}
	if err != nil {
		p.index.cancel()
		p.way.Close()
		if o.Service.Missing != "" && IsCode(err, o.Service.Missing) {
			err = &Fault{Kind: providers.ErrNotExist, Code: o.Service.Missing, Err: fmt.Errorf("bucket %q", o.Bucket)}
		}
		return nil, err
	}
	if p.writes = !o.ReadOnly; p.writes {
		p.sweep(ctx, own.Items)
	}
	p.index.start(own.Items, p.writes)
	return p, nil
}

// ScratchOld is the age at which a scratch key is no longer in use.
const ScratchOld = time.Hour

// sweep removes the scratch keys of processes that ended before they had.
func (p *Provider) sweep(ctx context.Context, own []Item) {
	var err error
	for _, it := range own {
		if strings.HasPrefix(it.Key, p.prefix+Scratch) && !it.Modified.IsZero() && it.Modified.Before(p.now().Add(-ScratchOld)) {
			err = errors.Join(err, p.store.Delete(ctx, it.Key, providers.Unconditional()))
		}
	}
	if err != nil {
		p.log.DebugContext(ctx, "scratch keys of others stay", "error", err)
	}
}

// Capabilities implements providers.Provider.
func (p *Provider) Capabilities() providers.Capabilities {
	c := Promises(p.service)
	c.Conditions = providers.Conditions{}
	c.Names.XML = !p.honours.Encodes
	c.Names.Path = p.service.Key - len(p.prefix) - len("/")
	if !p.writes {
		c.Writable, c.Abilities = false, 0
		return c
	}
	c.Conditions = p.honours.conditions()
	return c
}

// Promises is the best that a service can do.
func Promises(s Service) providers.Capabilities {
	return providers.Capabilities{
		Writable: true, Durable: true, EmptyDirs: true, ImpliedDirs: true, Symlinks: true, Metadata: true, RecursiveList: true, ListAfter: s.ListStart != Nowhere,
		ListComplete: s.Tells && s.TellsDirs, OperationIDs: true, ConcurrentWriters: true, DearCopy: true, Attributes: attributes,
		Conditions: Honours{Create: true, Replace: true, Complete: true, Copy: true, Delete: true}.conditions(),
		Parts:      s.Parts,
		MaxSize:    s.Size,
		Names:      providers.NameLimits{UTF8: true, Plain: true, Lines: s.Lines, Slashes: s.Slashes, Ending: beside, Own: Own},
		Abilities:  providers.AbilityCopy | providers.AbilityAttr | providers.AbilityParts,
	}
}

// guard is atomic when the service decides, else wsmount looks before it acts.
func guard(honoured bool) providers.Guard {
	if honoured {
		return providers.GuardAtomic
	}
	return providers.GuardChecked
}

// conditions are those of Capabilities.
func (h Honours) conditions() providers.Conditions {
	both := h.Create && h.Replace && (h.Copy || h.Complete)
	return providers.Conditions{
		Create: guard(h.Create), Replace: guard(h.Replace), Delete: guard(h.Delete), Copy: guard(both), SetAttr: guard(both),
	}
}

// holds reports whether the service decides on a condition of a Write.
func (h Honours) holds(c providers.Condition) bool {
	switch c.Kind {
	case providers.ConditionAbsent:
		return h.Create
	case providers.ConditionVersion:
		return h.Replace
	}
	return true // nothing to hold
}

// asked is the part of a condition that the service is asked to check.
func (h Honours) asked(c providers.Condition) providers.Condition {
	if !h.holds(c) {
		return providers.Unconditional()
	}
	return c
}

// Close implements providers.Provider.
func (p *Provider) Close() error {
	if !p.closed.Swap(true) {
		p.index.close() // the index still has changes to write
		p.way.Close()
	}
	return nil
}

// Requests implements providers.Meter.
func (p *Provider) Requests() map[string]providers.Count {
	if p.way == nil {
		return nil
	}
	return p.way.Requests()
}

// ready is called before each verb: it fails after Close.
func (p *Provider) ready(ctx context.Context) error {
	if p.closed.Load() {
		return providers.ErrClosed
	}
	return ctx.Err()
}

func (p *Provider) fail(ctx context.Context, op providers.Method, l providers.Locator, err error) error {
	return Fail(ctx, p.service.Name, op, l, err)
}

// do runs every verb: it finds the place of l, calls f, and wraps the error.
func do[R any](ctx context.Context, p *Provider, op providers.Method, l providers.Locator, f func(at place) (R, error)) (R, error) {
	var none R
	err := p.ready(ctx)
	if err == nil && op.Mutates() && !p.writes {
		err = fmt.Errorf("opened for reading: %w", providers.ErrReadOnly)
	}
	if err != nil {
		return none, p.fail(ctx, op, l, err)
	}
	at, err := p.find(l)
	if err == nil {
		err = p.checkPlace(ctx, op, at)
	}
	if err != nil {
		return none, p.fail(ctx, op, l, err)
	}
	result, err := f(at)
	if err != nil {
		return none, p.fail(ctx, op, l, err)
	}
	return result, nil
}

// checkPlace refuses places that cannot exist. Reading and deleting are generous: an entry of a
// listing stays reachable while its neighbours come and go.
func (p *Provider) checkPlace(ctx context.Context, op providers.Method, at place) error {
	makes := op.Mutates() && op != providers.MethodDelete
	missing := providers.ErrNotExist
	if makes {
		missing = providers.ErrInvalid
	}
	switch {
	case isOwn(at.l):
		return fmt.Errorf("names below %s are wsmount's own: %w", Own, missing)
	case !utf8.ValidString(at.dir):
		return fmt.Errorf("keys are UTF-8: %w", missing)
	case makes:
		return p.checkNew(ctx, at)
	}
	return nil
}

// checkNew refuses names that a listing could not give back. Only those of
// directories beside files cost requests.
func (p *Provider) checkNew(ctx context.Context, at place) error {
	switch {
	case !p.honours.Encodes && !providers.IsXML(at.dir):
		return Invalid("this service cannot list names with control characters")
	case p.service.Lines && providers.HasLines(at.dir):
		return Invalid("this service has no names with line breaks")
	case p.service.Slashes && !providers.KeepsInURL(at.l):
		return Invalid("this service makes other names of those with a backslash, or a dot at their end")
	case isOdd(at.dir):
		return Invalid("services disagree on such keys, so none is made")
	}
	for _, key := range at.files {
		if _, err := p.head(ctx, key); errors.Is(err, providers.ErrNotExist) {
			return Invalid("a name with %s is for a directory beside a file", beside)
		} else if err != nil {
			return err
		}
	}
	return nil
}
