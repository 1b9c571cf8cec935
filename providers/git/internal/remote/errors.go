package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/dialogue"
)

// statuses are for answers that go-git has no error for.
var statuses = map[int]error{
	http.StatusRequestEntityTooLarge: providers.ErrTooLarge,
	http.StatusInsufficientStorage:   providers.ErrQuota,
	http.StatusNotImplemented:        providers.ErrUnsupported,
	http.StatusBadRequest:            providers.ErrInvalid,
}

// Error is the error of a request.
type Error struct {
	Kind error // of package providers
	Code string
	Err  error
}

// Error is the cause, with at most a line of a server's text.
func (e *Error) Error() string {
	var own *dialogue.Error
	if errors.As(e.Err, &own) { // our own words, which are longer
		return own.Error()
	}
	text := strings.TrimSpace(e.Err.Error())
	text, _, _ = strings.Cut(text, "\n")
	for _, begin := range []string{"<html", "<!doctype"} { // a page is for browsers
		if at := strings.Index(strings.ToLower(text), begin); at >= 0 {
			text = text[:at]
		}
	}
	return strings.TrimRight(strings.ToValidUTF8(text[:min(len(text), 300)], ""), ": ")
}

// Unwrap gives errors.Is the kind and the cause.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }

// translate finds the kind of a request's error.
func translate(ctx context.Context, err error) error {
	// go-git hides the cause in two types of its own.
	var unexpected *plumbing.UnexpectedError
	var permanent *plumbing.PermanentError
	for errors.As(err, &unexpected) || errors.As(err, &permanent) {
		if unexpected != nil {
			err = unexpected.Err
		} else {
			err = permanent.Err
		}
		unexpected, permanent = nil, nil
	}
	e := &Error{Kind: providers.ErrUnavailable, Err: err}
	var answer *githttp.Err
	var own *dialogue.Error
	var known *Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &known):
		return known
	case errors.As(err, &own):
		e.Kind, e.Code, e.Err = own.Kind, own.Code, own
	case errors.As(err, &answer):
		e.Code = strconv.Itoa(answer.StatusCode())
		e.Err = providers.Kinded(fmt.Errorf("%s answers %q", answer.Response.Request.URL.Host, http.StatusText(answer.StatusCode())), err)
		if kind, ok := statuses[answer.StatusCode()]; ok {
			e.Kind = kind
		}
		if answer.StatusCode() >= 300 && answer.StatusCode() < 400 {
			e.Kind = providers.ErrPermission
		}
	case errors.Is(err, transport.ErrAuthenticationRequired):
		e.Kind, e.Code = providers.ErrUnauthenticated, "401"
	case errors.Is(err, transport.ErrAuthorizationFailed):
		e.Kind, e.Code = providers.ErrPermission, "403"
	case errors.Is(err, transport.ErrRepositoryNotFound):
		e.Kind, e.Code = providers.ErrNotExist, "404"
	case errors.Is(err, providers.ErrUnauthenticated): // there are no credentials to send
		e.Kind = providers.ErrUnauthenticated
	case errors.Is(err, providers.ErrPermission): // the transport did not send it
		e.Kind = providers.ErrPermission
	case strings.Contains(err.Error(), "http redirect:"): // go-git has no type for it
		e.Kind, e.Err = providers.ErrPermission, fmt.Errorf("not followed: %w", err)
	case errors.Is(err, io.EOF):
		e.Err = io.ErrUnexpectedEOF
	}
	return e
}
