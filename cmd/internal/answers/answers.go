// Package answers keeps how a store has answered: failed calls, whether it can be reached, when
// it last gave and took something, and the state of the credentials for it.
//
// It knows calls of a provider and their errors. It makes no calls itself, so that its
// summary is as old as the last call.
//
//	a := answers.New(time.Now, volume.Answered)
//	p = providers.Wrap(p, providers.WrapOptions{Around: a.Around(p)})
package answers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Answers are those of one store. Its methods may be called concurrently.
type Answers struct {
	now  func() time.Time
	told Told

	mu sync.Mutex // guards the fields below
	is Summary
}

// Summary is the state of a store as the calls show it.
type Summary struct {
	Failed             map[string]uint64 // calls, by kind
	Unreachable        time.Time         // since when it cannot be reached; zero: it can
	Away               string            // why it cannot, as the last call said
	Pulled, Pushed     time.Time         // when it last gave, and took, something; zero: not yet
	CredentialFailures uint64            // how often they could not be obtained, or were refused
	CredentialsExpire  time.Time         // zero: they do not
}

// Told is called with the outcome of each request that a program's look can cause (stat, list and
// read): nil says that the store answered, an error that it refuses. One that is away does neither.
type Told func(m providers.Method, at providers.Locator, err error)

// New is of a store to which no request has been made.
func New(now func() time.Time, told Told) *Answers {
	return &Answers{now: now, told: told, is: Summary{Failed: map[string]uint64{}}}
}

// Summary is the state so far.
func (a *Answers) Summary() Summary {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.is
	s.Failed = maps.Clone(s.Failed)
	return s
}

// Around is for a providers.WrapOptions of a store. One with a copy of its own, such as a
// clone, asks the remote only when it fetches and pushes.
func (a *Answers) Around(store providers.Provider) providers.Around {
	_, clone := providers.As[providers.Syncer](store)
	return func(ctx context.Context, c *providers.Call, next func(context.Context) error) error {
		err := next(ctx)
		a.failed(err)
		a.tell(c, err)
		switch c.Method {
		case providers.MethodClose, providers.MethodWatch:
		case providers.MethodFetch, providers.MethodPush:
			a.answered(ctx, c.Method, err)
		default:
			if !clone {
				a.answered(ctx, c.Method, err)
			}
		}
		return err
	}
}

// tell reports the outcome of a request that a program's look can cause. A change that is refused
// is held back, and reported with that.
func (a *Answers) tell(c *providers.Call, err error) {
	if c.Method != providers.MethodStat && c.Method != providers.MethodList && c.Method != providers.MethodRead {
		return
	}
	switch kind := providers.KindOf(err); {
	case err == nil, slices.Contains(ordinary, kind.Err):
		a.told(c.Method, c.Locator, nil)
	case kind.Retry == providers.RetryNever && !slices.Contains(unasked, kind.Err) && !IsAway(err):
		a.told(c.Method, c.Locator, err)
	}
}

// ordinary are answers that POSIX programs provoke in normal work, and unasked errors that say
// nothing of the store.
var (
	ordinary = []error{providers.ErrNotExist, providers.ErrExist, providers.ErrNotDir, providers.ErrIsDir, providers.ErrNotEmpty, providers.ErrNameTooLong, providers.ErrConflict}
	unasked  = []error{context.Canceled, providers.ErrClosed}
)

// failed counts an error.
func (a *Answers) failed(err error) {
	kind := Kind(err)
	if kind == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.is.Failed[kind]++
	if kind == "unauthenticated" {
		a.is.CredentialFailures++
	}
}

// answered notes the outcome of a request. That the caller gave up says nothing, unless it had
// waited for as long as it may.
func (a *Answers) answered(ctx context.Context, m providers.Method, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch now := a.now(); {
	case IsAway(err), err != nil && IsAway(context.Cause(ctx)):
		if a.is.Unreachable.IsZero() {
			a.is.Unreachable = now
		}
		if !IsAway(err) {
			err = context.Cause(ctx)
		}
		a.is.Away = err.Error()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case err != nil:
		a.is.reached()
	case m.Mutates():
		a.is.reached()
		a.is.Pushed = now
	default:
		a.is.reached()
		a.is.Pulled = now
	}
}

// reached notes that the store can be reached, whichever answer it gave.
func (s *Summary) reached() { s.Unreachable, s.Away = time.Time{}, "" }

// IsAway reports whether an error says that a store cannot be reached; one that refuses its
// caller can.
func IsAway(err error) bool {
	kind := Kind(err)
	return kind == "unavailable" || kind == Other && errors.Is(err, fs.ErrUnavailable)
}

// Credentials notes the outcome of an attempt to obtain them, and when they end.
func (a *Answers) Credentials(expire time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.is.CredentialsExpire = expire
	case !errors.Is(err, context.Canceled):
		a.is.CredentialFailures++
	}
}

// kinds are those of errors that tell of the store itself. That a name does not exist, or
// exists already, is an answer.
var kinds = []struct {
	err  error
	name string
}{
	{providers.ErrUnavailable, "unavailable"}, {providers.ErrUnauthenticated, "unauthenticated"},
	{providers.ErrPermission, "permission"}, {providers.ErrQuota, "quota"}, {providers.ErrConflict, "conflict"},
	{providers.ErrTooLarge, "too-large"}, {providers.ErrCorrupt, "corrupt"}, {providers.ErrReadOnly, "read-only"},
	{providers.ErrNotExist, ""}, {providers.ErrExist, ""}, {providers.ErrNotDir, ""}, {providers.ErrIsDir, ""},
	{providers.ErrNotEmpty, ""}, {context.Canceled, ""},
}

// Other is the Kind of any other error.
const Other = "other"

// Kind names why a call failed, in the few words that metrics use; "" if it has not.
func Kind(err error) string {
	if err == nil {
		return ""
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return Other
}
