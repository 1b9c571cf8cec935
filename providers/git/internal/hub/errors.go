package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v88/github"

	"github.com/wsmount/wsmount/providers"
)

// kinds are the kinds of statuses. GitHub answers "not found" for a repository that a token may
// not see.
var kinds = map[int]error{
	http.StatusUnauthorized:        providers.ErrUnauthenticated,
	http.StatusForbidden:           providers.ErrPermission,
	http.StatusNotFound:            providers.ErrPermission,
	http.StatusGone:                providers.ErrPermission,
	http.StatusMovedPermanently:    providers.ErrPermission,
	http.StatusTemporaryRedirect:   providers.ErrPermission,
	http.StatusPermanentRedirect:   providers.ErrPermission,
	http.StatusUnprocessableEntity: providers.ErrInvalid,
	http.StatusBadRequest:          providers.ErrInvalid,
	http.StatusConflict:            providers.ErrConflict,
}

// Error is the error of a request.
type Error struct {
	Kind  error // of package providers
	Code  string
	Says  string
	After time.Duration // the time until a retry is worth it, if the server gives one
	Err   error
}

// Error is the server's message, in a line.
func (e *Error) Error() string { return e.Says }

// Unwrap gives errors.Is the kind and the cause.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }

// RetryAfter implements providers.RetryAfter.
func (e *Error) RetryAfter() time.Duration { return e.After }

// foreign is the error for a success that does not come from the API.
func foreign(says string) error {
	return &Error{Kind: providers.ErrUnavailable, Code: "foreign",
		Says: "the answer is not the API's, but that of a login page, a proxy or the like: " + line(says), Err: errForeign}
}

var errForeign = errors.New("not the API's answer")

// translate finds the kind of a request's error.
func translate(ctx context.Context, err error) error {
	var limit *github.RateLimitError
	var abuse *github.AbuseRateLimitError
	var answer *github.ErrorResponse
	var own *Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &own):
		return own
	case errors.As(err, &limit):
		return later("the API's rate limit is used up: "+limit.Message, limit.Response, time.Until(limit.Rate.Reset.Time), err)
	case errors.As(err, &abuse):
		after := time.Duration(0)
		if abuse.RetryAfter != nil {
			after = *abuse.RetryAfter
		}
		return later("the API asks to wait: "+abuse.Message, abuse.Response, after, err)
	case errors.As(err, &answer) && answer.Response != nil:
		return refused(answer)
	case errors.Is(err, providers.ErrUnauthenticated):
		return err
	case errors.Is(err, providers.ErrPermission): // it was not sent, or a redirect was not followed
		return &Error{Kind: providers.ErrPermission, Says: line(err.Error()), Err: err}
	}
	return &Error{Kind: providers.ErrUnavailable, Says: line("the API does not answer: " + err.Error()), Err: err}
}

func later(says string, resp *http.Response, after time.Duration, err error) error {
	e := &Error{Kind: providers.ErrUnavailable, Says: line(says), After: max(after, 0), Err: err}
	if resp != nil {
		e.Code = strconv.Itoa(resp.StatusCode)
	}
	return e
}

func refused(answer *github.ErrorResponse) error {
	status := answer.Response.StatusCode
	says := answer.Message
	for _, one := range answer.Errors {
		if one.Message != "" {
			says += ": " + one.Message
		}
	}
	e := &Error{Kind: kinds[status], Code: strconv.Itoa(status), Err: answer,
		Says: line(fmt.Sprintf("%s %s: %s", answer.Response.Request.Method, answer.Response.Request.URL.Path, says))}
	if e.Kind == nil {
		e.Kind = providers.ErrUnavailable
	}
	if seconds, err := strconv.Atoi(answer.Response.Header.Get("Retry-After")); err == nil {
		e.After = time.Duration(seconds) * time.Second
		e.Kind = providers.ErrUnavailable
	}
	return e
}

// line is a server's text as one line, short enough for a person.
func line(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, ""), func(r rune) bool { return r < ' ' || r == 0x7f }), "; ")
	return strings.ToValidUTF8(s[:min(len(s), 300)], "")
}
