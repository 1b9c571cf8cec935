package gcs

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/api/googleapi"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// codes is the one table of the meanings of reasons of the JSON API and codes of the XML API.
var codes = bucket.Codes{Kinds: map[error][]string{
	providers.ErrNotExist: {noObject},
	providers.ErrConflict: {"conditionNotMet", "conflict", "PreconditionFailed"},
	providers.ErrPermission: {
		"forbidden", "insufficientPermissions", "AccessDenied", "accountDisabled", "UserProjectMissing", "userProjectMissing",
		"retentionPolicyNotMet", "objectUnderActiveHold", "domainPolicy",
	},
	providers.ErrUnauthenticated: {"authError", "AuthenticationRequired", "ExpiredToken"},
	providers.ErrQuota:           {"quotaExceeded", "dailyLimitExceeded"},
	providers.ErrUnavailable: {
		noBucket, // it may come back, with its content; Open reports another kind
		"rateLimitExceeded", "userRateLimitExceeded", "SlowDown", "backendError", "internalError", "InternalError", "ServiceUnavailable",
	},
	providers.ErrCorrupt:     {wrongDigest, "BadDigest"},
	providers.ErrTooLarge:    {"uploadTooLarge", "EntityTooLarge"},
	providers.ErrUnsupported: {"MethodNotAllowed", "NotImplemented"},
}}

// The codes of the XML API for errors without a reason of their own in the JSON API.
const (
	noObject    = "NoSuchKey"
	noBucket    = "NoSuchBucket"
	wrongDigest = "InvalidDigest"
)

// texts tell apart errors of one reason: its status, a fragment of the message, and the XML
// API's code for that. A 404 with neither text is no proof that an object does not exist. Nor
// is one about a missing object, as the service may say the same when the bucket is gone:
// package bucket asks for a listing before it believes that.
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

// said is the service's code and message, from JSON or XML.
func said(answer *googleapi.Error) (code, message string) {
	var x struct{ Code, Message string }
	if xml.Unmarshal([]byte(answer.Body), &x) == nil {
		return x.Code, x.Message
	}
	if len(answer.Errors) > 0 {
		code = answer.Errors[0].Reason
	}
	for _, one := range texts {
		if answer.Code == one.status && code == one.reason && strings.Contains(answer.Message, one.text) {
			code = one.code
		}
	}
	return code, answer.Message
}

// translate finds the kind of a request's error.
func translate(ctx context.Context, err error) error {
	if told, ok := bucket.Told(ctx, err); ok {
		return told
	}
	var answer *googleapi.Error
	if !errors.As(err, &answer) {
		return &bucket.Fault{Kind: bucket.KindUnanswered(err), Err: err}
	}
	code, message := said(answer)
	f := &bucket.Fault{Code: code, Status: answer.Code, Cut: isCut(answer), Err: errors.New(strings.TrimSpace(code + ": " + message))}
	codes.Judge(f) // a redirection would send the login to a host that was not granted
	if message == "" {
		f.Err = fmt.Errorf("status %d", f.Status)
	}
	return f
}

// isCut reports whether an answer ended before its length.
func isCut(answer *googleapi.Error) bool {
	length, err := strconv.Atoi(answer.Header.Get("Content-Length"))
	return err == nil && len(answer.Body) < length
}
