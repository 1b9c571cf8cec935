package providers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// The kinds of errors. Test with errors.Is; each is explained, with whether to try again, in
// kinds below.
var (
	ErrNotExist        = fs.ErrNotExist
	ErrExist           = fs.ErrExist
	ErrPermission      = fs.ErrPermission
	ErrInvalid         = fs.ErrInvalid
	ErrClosed          = fs.ErrClosed
	ErrUnsupported     = errors.ErrUnsupported
	ErrReadOnly        = errors.New("storage is read-only")
	ErrConflict        = errors.New("changed by someone else")
	ErrUnavailable     = errors.New("storage is not available")
	ErrUnauthenticated = errors.New("credentials are missing, wrong or expired")
	ErrQuota           = errors.New("no room left in storage")
	ErrTooLarge        = errors.New("too large for storage")
	ErrBody            = errors.New("the content to store could not be read")
	ErrCorrupt         = errors.New("content is not what storage promised")
	ErrNotDir          = errors.New("not a directory")
	ErrIsDir           = errors.New("is a directory")
	ErrNotEmpty        = errors.New("directory not empty")
	ErrNameTooLong     = errors.New("name too long")
)

// Retry is the remedy against an error.
type Retry uint8

// The advice of an ErrorKind.
const (
	RetryNever   Retry = iota // the same call will fail again
	RetryLater                // wait with growing, jittered pauses, then the same call
	RetryRefresh              // look at the present entry, decide again
	RetryLogin                // renew the credentials, once
)

// ErrorKind is a row of the table that gives each kind of error its meaning.
type ErrorKind struct {
	Err     error
	Name    string // stable, for metrics and for the wire
	Code    string // the code of the AIP-35 adapter guide, if it has one
	Retry   Retry
	Meaning string
}

// kinds is the one table of the meanings of error kinds. More particular kinds come first: an
// error of several kinds gets the first.
var kinds = []ErrorKind{
	{ErrBody, "body", "", RetryNever, "the Reader that the caller gave failed; nothing happened"},
	{context.Canceled, "canceled", "", RetryNever, "the caller gave up; a change may have happened"},
	{context.DeadlineExceeded, "deadline", "", RetryLater, "the caller's time was up; a change may have happened"},
	{ErrReadOnly, "read-only", "storage_read_only", RetryNever, "the workspace or the store takes no change; nothing happened"},
	{ErrConflict, "conflict", "storage_conflict", RetryRefresh, "the version asked for is not the one there; nothing happened"},
	{ErrExist, "exist", "", RetryRefresh, "something is there already; nothing happened"},
	{ErrNotExist, "not-exist", "", RetryNever, "nothing is there"},
	{ErrNotDir, "not-dir", "", RetryNever, "a directory was needed, also as one of the parents"},
	{ErrIsDir, "is-dir", "", RetryNever, "a file or symbolic link was needed"},
	{ErrNotEmpty, "not-empty", "", RetryNever, "the directory has entries; nothing happened"},
	{ErrNameTooLong, "name-too-long", "", RetryNever, "a name is longer than the store or POSIX takes"},
	{ErrUnauthenticated, "unauthenticated", "storage_auth_unresolvable", RetryLogin, "the store does not know who asks; nothing happened"},
	{ErrPermission, "permission", "", RetryNever, "the store knows who asks and refuses; nothing happened"},
	{ErrQuota, "quota", "", RetryLater, "the store has no room; nothing happened"},
	{ErrTooLarge, "too-large", "", RetryNever, "more than the store takes in one entry; nothing happened"},
	{ErrCorrupt, "corrupt", "", RetryLater, "length or hash of the content is wrong"},
	{ErrUnsupported, "unsupported", "", RetryNever, "the store cannot do this; nothing happened"},
	{ErrClosed, "closed", "", RetryNever, "the provider was closed; nothing happened"},
	{ErrInvalid, "invalid", "storage_config_invalid", RetryNever, "the call or the configuration makes no sense; nothing happened"},
	{ErrUnavailable, "unavailable", "", RetryLater, "no answer, or one that says later; a change may have happened"},
}

// unknownKind is the KindOf of an error from outside the table.
var unknownKind = ErrorKind{Name: "unknown", Retry: RetryNever, Meaning: "not an error of this seam"}

// KindOf finds the row of err. A nil or foreign error has the row "unknown",
// whose Err is nil.
func KindOf(err error) ErrorKind {
	for _, k := range kinds {
		if errors.Is(err, k.Err) {
			return k
		}
	}
	return unknownKind
}

// MayHaveHappened reports whether a failed change may have happened all the same.
func MayHaveHappened(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// KindNamed finds a row by its Name.
func KindNamed(name string) (ErrorKind, bool) {
	for _, k := range kinds {
		if k.Name == name {
			return k, true
		}
	}
	return unknownKind, false
}

// Error is an error of a provider. A provider adds operation and name once,
// where it leaves the provider.
type Error struct {
	Provider string  // its source: "memory"; may be empty
	Op       Method  // the verb
	Locator  Locator // of the entry
	Kind     error   // one of the kinds above
	Code     string  // the service's own code, for support: "NoSuchKey", "ENOSPC"
	Err      error   // the cause; may be nil
}

// Error is `"a/b": file does not exist`, then the service's code and the cause where there are
// any. Provider and Op are for code, and left out of the text for people.
func (e *Error) Error() string {
	if e.Locator.IsRoot() || errors.Is(e.Kind, ErrUnavailable) || errors.Is(e.Kind, ErrUnauthenticated) {
		return e.Reason() // it concerns the whole store
	}
	return fmt.Sprintf("%q: %s", e.Locator, e.Reason())
}

// Reason is Error without the name.
func (e *Error) Reason() string {
	kind, cause := fmt.Sprint(e.Kind), causeText(e.Err)
	switch {
	case e.Err == e.Kind, cause == "":
		cause = ""
	case strings.Contains(cause, kind): // the cause names the kind itself
		return cause
	case e.Kind == ErrNotExist && e.Locator.IsRoot(): // the kind's text would call the root a file
		kind, cause = cause, ""
	default:
		cause = ": " + cause
	}
	if e.Code != "" {
		kind += " (" + e.Code + ")"
	}
	return kind + cause
}

// causeText is the text of a cause. For a request without an answer it is the reason without
// the request, which HTTP clients put before it.
func causeText(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	var request *url.Error
	if errors.As(err, &request) {
		text = request.Err.Error()
	}
	var dial *net.OpError
	if errors.As(err, &dial) {
		text = dial.Error()
	}
	if request != nil { // a person knows the host name, not the address
		if u, err := url.Parse(request.URL); err == nil && !strings.Contains(text, u.Hostname()) {
			text = u.Host + ": " + text
		}
	}
	return strings.TrimRight(strings.TrimSpace(text), ":")
}

// Nameless is err without the leading name in its text, for messages that have it already.
func Nameless(err error, name string) error {
	for _, form := range []string{strconv.Quote(name), name} {
		if rest, ok := strings.CutPrefix(err.Error(), form+": "); ok && name != "" {
			return Kinded(errors.New(rest), err)
		}
	}
	return err
}

// Kinded is err, which is also of a kind, with the text of err.
func Kinded(err, kind error) error { return &kinded{err, kind} }

type kinded struct{ err, kind error }

func (k *kinded) Error() string   { return k.err.Error() }
func (k *kinded) Unwrap() []error { return []error{k.kind, k.err} }

// Unwrap gives errors.Is both the kind and the cause.
func (e *Error) Unwrap() []error {
	errs := make([]error, 0, 2)
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Fail is the error with which a provider reports err: nil stays nil, an *Error stays as it is,
// any other becomes an *Error of the kind that it already is, or of fallback.
func Fail(provider string, op Method, l Locator, err, fallback error) error {
	var done *Error
	if err == nil || errors.As(err, &done) {
		return err
	}
	e := &Error{Provider: provider, Op: op, Locator: l, Kind: KindOf(err).Err, Err: err}
	if e.Kind == nil {
		e.Kind = fallback
	}
	if e.Kind == e.Err { // as above
		e.Err = nil
	}
	return e
}
