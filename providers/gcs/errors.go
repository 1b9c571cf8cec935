package gcs

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// codes is the one place that says what a reason of the JSON API, or a code of the XML
// API, means. What is not here goes by its HTTP status.
var codes = map[string]error{
	noObject: providers.ErrNotExist,
	// A bucket may come back, and what it held with it. Open says otherwise.
	noBucket: providers.ErrUnavailable,

	"conditionNotMet": providers.ErrConflict, "conflict": providers.ErrConflict, "PreconditionFailed": providers.ErrConflict,

	"forbidden": providers.ErrPermission, "insufficientPermissions": providers.ErrPermission, "AccessDenied": providers.ErrPermission,
	"accountDisabled": providers.ErrPermission, "UserProjectMissing": providers.ErrPermission, "userProjectMissing": providers.ErrPermission,
	"retentionPolicyNotMet": providers.ErrPermission, "objectUnderActiveHold": providers.ErrPermission, "domainPolicy": providers.ErrPermission,
	"authError": providers.ErrUnauthenticated, "AuthenticationRequired": providers.ErrUnauthenticated, "ExpiredToken": providers.ErrUnauthenticated,

	"quotaExceeded": providers.ErrQuota, "dailyLimitExceeded": providers.ErrQuota,
	"rateLimitExceeded": providers.ErrUnavailable, "userRateLimitExceeded": providers.ErrUnavailable, "SlowDown": providers.ErrUnavailable,
	"backendError": providers.ErrUnavailable, "internalError": providers.ErrUnavailable, "InternalError": providers.ErrUnavailable,
	"ServiceUnavailable": providers.ErrUnavailable,

	wrongDigest: providers.ErrCorrupt, "BadDigest": providers.ErrCorrupt,
	"uploadTooLarge": providers.ErrTooLarge, "EntityTooLarge": providers.ErrTooLarge,
	"MethodNotAllowed": providers.ErrUnsupported, "NotImplemented": providers.ErrUnsupported,
}

// The codes of the XML API for what the JSON API has no reason of its own for.
const (
	noObject    = "NoSuchKey"
	noBucket    = "NoSuchBucket"
	wrongDigest = "InvalidDigest"
)

// texts tell apart what has one reason: a status with it, what the message has in it, and
// the XML API's code for that. A 404 that says neither is no proof that nothing is there.
// Nor is one that misses an object, as the service may say the same when the bucket is
// gone: package bucket asks for a listing before it believes that.
var texts = []struct {
	status       int
	reason, text string
	code         string
}{
	{http.StatusNotFound, "notFound", "No such object", noObject},
	{http.StatusNotFound, "notFound", "(generation: ", noObject}, // a source of compose
	{http.StatusNotFound, "notFound", "bucket does not exist", noBucket},
	{http.StatusBadRequest, "invalid", "MD5 hash", wrongDigest},
}

// refusal is what an answer that is no success says.
type refusal struct{ code, message string }

// Error is the service's words.
func (r *refusal) Error() string { return strings.TrimSpace(r.code + ": " + r.message) }

// refusalMax bounds what is read of it.
const refusalMax = 64 << 10

// refused is the error for an answer that is no success. The answer is read then.
func refused(answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, refusalMax))
	if err != nil {
		text = nil // the status says enough
	}
	r := said(answer.StatusCode, text)
	f := &bucket.Fault{Code: r.code, Status: answer.StatusCode, Err: r, Kind: codes[r.code]}
	if f.Kind == nil {
		f.Kind = bucket.KindOfStatus(answer.StatusCode)
	}
	if f.Kind == nil { // a redirection, which would send the login where nobody granted it to go
		f.Kind = providers.ErrUnavailable
	}
	if r.message == "" {
		f.Err = fmt.Errorf("status %d", answer.StatusCode)
	}
	if answer.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		f.Doubt = bucket.RangeBeyond
	}
	return f
}

// said reads the document of a refusal, which is JSON or XML.
func said(status int, text []byte) *refusal {
	var j struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
		}
	}
	var x struct{ Code, Message string }
	switch {
	case json.Unmarshal(text, &j) == nil:
		r := &refusal{message: j.Error.Message}
		if len(j.Error.Errors) > 0 {
			r.code = j.Error.Errors[0].Reason
		}
		for _, one := range texts {
			if status == one.status && r.code == one.reason && strings.Contains(r.message, one.text) {
				r.code = one.code
			}
		}
		return r
	case xml.Unmarshal(text, &x) == nil:
		return &refusal{x.Code, x.Message}
	}
	return &refusal{}
}

// translate finds the kind of what a request ended with.
func translate(ctx context.Context, err error) error {
	var done *bucket.Fault
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &bucket.Fault{Kind: ctx.Err()}
	case errors.As(err, &done):
		return done
	}
	return &bucket.Fault{Kind: bucket.KindUnanswered(err), Err: err}
}

// isCode reports whether err is the service's answer with a code.
func isCode(err error, code string) bool {
	var f *bucket.Fault
	return errors.As(err, &f) && f.Code == code
}

// mayBeLogin reports whether err can mean that the token does not hold.
func mayBeLogin(err error) bool {
	var f *bucket.Fault
	return errors.As(err, &f) && f.Status != 0 && errors.Is(f.Kind, providers.ErrUnauthenticated)
}
