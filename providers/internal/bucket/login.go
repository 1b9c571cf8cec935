package bucket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// Login keeps the credentials of a service until shortly before they end. A nil Login belongs to
// a Store without credentials.
type Login[C any] struct {
	same func(a, b C) bool
	now  func() time.Time
	held lockedLogin[C] // see lock
}

// lockedLogin has the fields that the mutex of a Login guards.
type lockedLogin[C any] struct {
	mu      sync.Mutex
	fetch   func(ctx context.Context) (C, time.Time, error) // under the mutex, so that one fetches for all
	current C
	ends    time.Time // zero: when the service refuses them
	renewAt time.Time
	fetched time.Time // zero: never
	vain    time.Time // when a fetch gave the refused ones again
}

// NewLogin keeps the credentials that fetch gives with the time of their end, zero if not
// known. same tells whether a service would take two for the same.
func NewLogin[C any](now func() time.Time, same func(a, b C) bool, fetch func(context.Context) (C, time.Time, error)) *Login[C] {
	return &Login[C]{same: same, now: now, held: lockedLogin[C]{fetch: fetch}}
}

func (l *Login[C]) lock() *lockedLogin[C] {
	l.held.mu.Lock()
	return &l.held
}

func (l *lockedLogin[C]) unlock() { l.mu.Unlock() }

// vainPause is the time before the next fetch of credentials after one in vain: it may run a
// program, and each time is in the audit log.
const vainPause = time.Second

// Get gives credentials that hold.
func (l *Login[C]) Get(ctx context.Context) (C, error) {
	h := l.lock()
	defer h.unlock()
	now := l.now()
	if !h.fetched.IsZero() && (h.renewAt.IsZero() || now.Before(h.renewAt)) {
		return h.current, nil
	}
	if err := h.renew(ctx, now); err != nil && (h.fetched.IsZero() || !now.Before(h.ends)) {
		var none C
		return none, err
	}
	return h.current, nil // perhaps the old ones, which still hold
}

// renew fetches again. Credentials are renewed when a quarter of their time is left, at most
// five minutes ahead.
func (l *lockedLogin[C]) renew(ctx context.Context, now time.Time) error {
	c, ends, err := l.fetch(ctx)
	if err != nil {
		return err
	}
	l.current, l.ends, l.fetched, l.renewAt = c, ends, now, time.Time{}
	if !ends.IsZero() {
		l.renewAt = ends.Add(-min(ends.Sub(now)/4, 5*time.Minute))
	}
	return nil
}

// Do sends a request, and once more where it may be that the service did not take the credentials
// and there are new ones. again, unless nil, makes the request's body ready for that, and reports
// whether it could.
func (l *Login[C]) Do(ctx context.Context, send func() error, mayBe func(error) bool, again func() bool) error {
	if l == nil {
		return send()
	}
	h := l.lock()
	used := h.current
	h.unlock()
	err := send()
	if err == nil || !mayBe(err) || !l.refused(ctx, used) || again != nil && !again() {
		return err
	}
	return send()
}

// refused notes that the service did not take the credentials that a request
// was signed with, and reports whether there are others now.
func (l *Login[C]) refused(ctx context.Context, used C) bool {
	h := l.lock()
	defer h.unlock()
	if !l.same(h.current, used) {
		return true // another request has renewed them already
	}
	now := l.now()
	if !h.vain.IsZero() && now.Sub(h.vain) >= 0 && now.Sub(h.vain) < vainPause {
		return false
	}
	if h.renew(ctx, now) == nil && !l.same(h.current, used) {
		return true
	}
	h.vain = now
	return false
}

// Reveal asks for the fields of credentials, of which some are needed, and when they end.
func Reveal(ctx context.Context, s providers.Settings, needed ...string) (fields map[string]string, ends time.Time, err error) {
	fields, err = s.Credentials(ctx)
	for _, name := range needed {
		if err == nil && fields[name] == "" {
			err = fmt.Errorf("the credentials have no %s", name)
		}
	}
	if told := fields["expiration"]; err == nil && told != "" {
		if ends, err = time.Parse(time.RFC3339, told); err != nil {
			err = errors.New("expiration of the credentials is not a time of RFC 3339")
		}
	}
	if err != nil {
		return nil, time.Time{}, &Fault{Kind: providers.ErrUnauthenticated, Err: err}
	}
	return fields, ends, nil
}
