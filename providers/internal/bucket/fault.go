package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"syscall"

	"github.com/wsmount/wsmount/providers"
)

// Fault is an error of a Store: its kind, and the service's own words.
type Fault struct {
	Kind   error // one of providers'
	Code   string
	Status int // of HTTP; 0: there was no answer
	Doubt  Doubt
	Cut    bool  // the answer ended before its reason could be read
	Err    error // may be nil
}

// Doubt is a question that a service's answer leaves open and another request can answer.
type Doubt uint8

// The doubts.
const (
	Sure        Doubt = iota
	NoReason          // a refusal without words, as of a HEAD
	NameRefused       // the service can have no such key
	DirInTheWay       // perhaps a directory has the name
	RangeBeyond       // there is no such range; perhaps the object has changed
)

// Error implements error.
func (f *Fault) Error() string {
	if f.Err == nil {
		return f.Kind.Error()
	}
	return f.Err.Error()
}

// Unwrap gives errors.Is both the kind and the cause.
func (f *Fault) Unwrap() []error { return []error{f.Kind, f.Err} }

// Codes map a service's codes to kinds. An unlisted code goes by its HTTP status.
type Codes struct {
	Kinds  map[error][]string
	Doubts map[string]Doubt
	Advice map[string]string // explains a code that does not say enough by itself
	// Wordless: a refusal may have a status alone, as that of a HEAD.
	Wordless bool
}

// Judge sets the kind of an answer, by its code, else the kind that f has, else by its status,
// and its doubt.
func (c Codes) Judge(f *Fault) {
	kind := c.kind(f.Code)
	known := kind != nil
	doubt, doubted := c.Doubts[f.Code]
	if f.Cut && !known {
		// The status of a refusal is not the reason: a refusal whose reason is lost may be of any
		// kind, and a repeated request may be answered in full.
		f.Kind = providers.ErrUnavailable
		return
	}
	if !known {
		kind = cmp.Or(f.Kind, kindOfStatus(f.Status), providers.ErrUnavailable)
	}
	refused := f.Status == http.StatusBadRequest || f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden
	switch {
	case doubted:
	case f.Status == http.StatusRequestedRangeNotSatisfiable:
		doubt = RangeBeyond
	case c.Wordless && !known && refused:
		doubt = NoReason
	}
	f.Kind, f.Doubt = kind, doubt
	if hint := c.Advice[f.Code]; hint != "" {
		f.Err = fmt.Errorf("%s: %w", hint, f.Err)
	}
}

// kind is the kind of a code; nil: the code is not known.
func (c Codes) kind(code string) error {
	for kind, codes := range c.Kinds {
		if slices.Contains(codes, code) {
			return kind
		}
	}
	return nil
}

// MayBeLogin reports whether err can mean that the credentials do not hold.
func MayBeLogin(err error) bool {
	var f *Fault
	return errors.As(err, &f) && f.Status != 0 && (errors.Is(f.Kind, providers.ErrUnauthenticated) || f.Doubt == NoReason)
}

// kindOfStatus is the kind of an answer without a code that is known, or nil.
func kindOfStatus(status int) error {
	if kind, ok := statuses[status]; ok {
		return kind
	}
	switch {
	case status >= 500:
		return providers.ErrUnavailable
	case status >= 400:
		return providers.ErrInvalid
	}
	return nil
}

var statuses = map[int]error{
	http.StatusMovedPermanently: providers.ErrInvalid, http.StatusTemporaryRedirect: providers.ErrUnavailable,
	http.StatusBadRequest: providers.ErrInvalid, http.StatusUnauthorized: providers.ErrUnauthenticated,
	http.StatusForbidden: providers.ErrPermission,
	// A proxy or another service gives this status too, and that must not pass for a deletion:
	// only a service's own codes mean that nothing is there.
	http.StatusNotFound:         providers.ErrUnavailable,
	http.StatusMethodNotAllowed: providers.ErrUnsupported, http.StatusRequestTimeout: providers.ErrUnavailable,
	http.StatusConflict: providers.ErrConflict, http.StatusPreconditionFailed: providers.ErrConflict,
	http.StatusRequestEntityTooLarge: providers.ErrTooLarge, http.StatusTooManyRequests: providers.ErrUnavailable,
	http.StatusNotImplemented: providers.ErrUnsupported, http.StatusInsufficientStorage: providers.ErrQuota,
}

// KindUnanswered is the kind of an error that ended a request without an answer: a reset, a
// timeout, no such host, or a refusal of the transport, which did not send it.
func KindUnanswered(err error) error {
	var errno syscall.Errno
	if errors.Is(err, providers.ErrPermission) && !errors.As(err, &errno) {
		return providers.ErrPermission
	}
	return providers.ErrUnavailable
}

// Told makes err a Fault where that needs no table of the service: it is one already, or ctx has
// ended. Without an error, told is nil and ok true; ok is false when the table is needed.
func Told(ctx context.Context, err error) (told error, ok bool) {
	var f *Fault
	switch {
	case err == nil:
		return nil, true
	case ctx.Err() != nil:
		return &Fault{Kind: ctx.Err()}, true
	case errors.As(err, &f):
		return f, true
	}
	return nil, false
}

// IsCode reports whether err is a service's answer with one of the codes.
func IsCode(err error, codes ...string) bool {
	var f *Fault
	return errors.As(err, &f) && slices.Contains(codes, f.Code)
}

// doubtOf is the doubt of an error.
func doubtOf(err error) Doubt {
	var f *Fault
	if !errors.As(err, &f) {
		return Sure
	}
	return f.Doubt
}

// Fail wraps err as a verb of a service's provider reports it: nil stays nil.
func Fail(ctx context.Context, service string, op providers.Method, l providers.Locator, err error) error {
	if err == nil {
		return nil
	}
	var f *Fault
	if errors.As(err, &f) {
		return &providers.Error{Provider: service, Op: op, Locator: l, Kind: f.Kind, Code: f.Code, Err: f.Err}
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return providers.Fail(service, op, l, err, providers.ErrUnavailable)
}
