package secrets

import (
	"context"
	"sync"
	"time"
)

// LiveOptions of a Live. The zero value works.
type LiveOptions struct {
	// Early is how long before its end a secret is fetched anew. Zero: 5
	// minutes, or a fifth of its remaining life when that is less.
	Early time.Duration
	// Retry is how long a failed early fetch is not tried again. Zero: 10 s.
	Retry time.Duration
	Now   func() time.Time // nil: time.Now
}

// A Live keeps one secret that ends and fetches it anew in time. It is safe
// for concurrent use; there is at most one fetch at a time.
type Live struct {
	fetch func(context.Context) (Secret, error)
	o     LiveOptions

	fetching chan struct{} // holds one token while no caller fetches

	mu     sync.Mutex // guards the fields below; never held during a fetch
	have   bool
	s      Secret
	due    time.Time // fetch from then on; zero: never
	notYet time.Time // an early fetch failed: not again before
}

// NewLive makes a Live. fetch is called on the first Get.
func NewLive(fetch func(context.Context) (Secret, error), o LiveOptions) *Live {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Early == 0 {
		o.Early = 5 * time.Minute
	}
	if o.Retry == 0 {
		o.Retry = 10 * time.Second
	}
	l := &Live{fetch: fetch, o: o, fetching: make(chan struct{}, 1)}
	l.fetching <- struct{}{}
	return l
}

// Get returns the secret, fetching it when there is none or its end is
// near. A failed fetch is an error only when no kept secret is still valid.
func (l *Live) Get(ctx context.Context) (Secret, error) {
	if s, ok := l.fresh(); ok {
		return s, nil
	}
	select {
	case <-l.fetching:
	case <-ctx.Done():
		return Secret{}, ctx.Err()
	}
	defer func() { l.fetching <- struct{}{} }()
	if s, ok := l.fresh(); ok { // another caller fetched in the meantime
		return s, nil
	}
	s, err := l.fetch(ctx)
	return l.settle(s, err)
}

// Renew forgets the secret, for a backend that refuses it: the next Get
// fetches.
func (l *Live) Renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.have = false
}

// Expires is the end of the secret that is kept, or zero.
func (l *Live) Expires() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.s.Expires
}

func (l *Live) fresh() (Secret, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Now()
	ok := l.have && (l.due.IsZero() || now.Before(l.due) || now.Before(l.notYet) && now.Before(l.s.Expires))
	return l.s, ok
}

func (l *Live) settle(s Secret, err error) (Secret, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Now()
	if err != nil {
		if l.have && now.Before(l.s.Expires) {
			l.notYet = now.Add(l.o.Retry)
			return l.s, nil
		}
		return Secret{}, err
	}
	l.have, l.s, l.due, l.notYet = true, s, time.Time{}, time.Time{}
	if !s.Expires.IsZero() {
		early := min(l.o.Early, s.Expires.Sub(now)/5)
		l.due = s.Expires.Add(-max(early, 0))
	}
	return s, nil
}
