package lfs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/providers"
)

// Error is the error of a request. Its text is a line for people, without the
// paths and queries of links, which may hold credentials.
type Error struct {
	Kind error  // of package providers
	Code string // the status
	Says string
	Err  error // the cause; may be nil
}

func (e *Error) Error() string { return e.Says }

// Unwrap gives errors.Is the kind and the cause. Missing content is an I/O error to a program
// that may read the file, whichever kind it is.
func (e *Error) Unwrap() []error {
	causes := []error{e.Kind, syscall.EIO}
	if e.Err != nil {
		causes = append(causes, e.Err)
	}
	return causes
}

// kinds are the kinds of statuses, of requests and of objects in an answer. A missing object does
// not make its file a missing file.
var kinds = map[int]error{
	http.StatusUnauthorized:          providers.ErrUnauthenticated,
	http.StatusForbidden:             providers.ErrPermission,
	http.StatusNotFound:              providers.ErrPermission,
	http.StatusGone:                  providers.ErrPermission,
	http.StatusRequestEntityTooLarge: providers.ErrTooLarge,
	http.StatusUnprocessableEntity:   providers.ErrInvalid,
	http.StatusNotImplemented:        providers.ErrUnsupported,
	http.StatusInsufficientStorage:   providers.ErrQuota,
	statusBandwidth:                  providers.ErrQuota,
}

const statusBandwidth = 509 // of the API, and of no standard

// answered is the error of a status that is no success, with the server's message.
func answered(what string, status int, says string) *Error {
	e := &Error{Kind: kinds[status], Code: strconv.Itoa(status), Says: line(fmt.Sprintf("%s: status %d %s", what, status, says))}
	switch {
	case e.Kind != nil:
	case status >= 300 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		e.Kind = providers.ErrPermission
	default:
		e.Kind = providers.ErrUnavailable
	}
	return e
}

// failed is the error of a request without an answer. Of the URL it shows only the server.
func failed(ctx context.Context, what string, to *url.URL, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var done *Error
	if errors.As(err, &done) {
		return done
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		if at, bad := url.Parse(inner.URL); bad == nil && at.Host != "" {
			to = at
		}
		err = inner.Err
	}
	e := &Error{Kind: providers.ErrUnavailable, Says: line(fmt.Sprintf("%s at %s: %v", what, origin(to), err)), Err: err}
	if errors.Is(err, providers.ErrPermission) { // the transport did not send it
		e.Kind = providers.ErrPermission
		e.Says = line(fmt.Sprintf("%s is at %s, which is not granted: list it in allow_endpoints of the host configuration", what, origin(to)))
	}
	return e
}

// damaged is the error of an answer that the API does not document, or of content that does not
// match the pointer.
func damaged(format string, args ...any) error {
	return &Error{Kind: providers.ErrCorrupt, Says: line(fmt.Sprintf(format, args...))}
}

// foreign is the error of a success that the API does not document: a login page, a maintenance
// page or a proxy answers everything so. It says nothing of the server, which was not reached.
func foreign(format string, args ...any) error {
	return &Error{Kind: providers.ErrUnavailable, Says: line(fmt.Sprintf(format, args...))}
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// line is a server's text as one line, short enough for a person.
func line(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, ""), func(r rune) bool { return r < ' ' || r == 0x7f }), "; ")
	return strings.TrimSpace(strings.ToValidUTF8(s[:min(len(s), 300)], ""))
}
