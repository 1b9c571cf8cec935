package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/wsmount/wsmount/providers"
)

// codes is the one place that says what a service's code means. What is not
// here goes by its HTTP status.
var codes = map[string]error{
	"NoSuchKey": providers.ErrNotExist, "NotFound": providers.ErrNotExist, "NoSuchUpload": providers.ErrNotExist,
	"NoSuchVersion": providers.ErrNotExist,
	// A bucket may come back, and what it held with it. Open says otherwise.
	"NoSuchBucket": providers.ErrUnavailable,

	"PreconditionFailed": providers.ErrConflict, "ConditionalRequestConflict": providers.ErrConflict,
	"ObjectAlreadyInActiveTierError": providers.ErrConflict, "NotModified": providers.ErrConflict,

	// Services whose store is a file system keep the rules of one.
	"XMinioObjectExistsAsDirectory": providers.ErrIsDir, "ExistingObjectIsDirectory": providers.ErrIsDir,
	"XMinioParentIsObject": providers.ErrNotDir, "ObjectParentIsFile": providers.ErrNotDir,

	"AccessDenied": providers.ErrPermission, "AllAccessDisabled": providers.ErrPermission,
	"AccountProblem": providers.ErrPermission, "InvalidObjectState": providers.ErrPermission, // in an archive
	"InvalidAccessKeyId": providers.ErrUnauthenticated, "SignatureDoesNotMatch": providers.ErrUnauthenticated,
	"ExpiredToken": providers.ErrUnauthenticated, "InvalidToken": providers.ErrUnauthenticated,
	"TokenRefreshRequired": providers.ErrUnauthenticated, "RequestTimeTooSkewed": providers.ErrUnauthenticated,
	"RequestExpired": providers.ErrUnauthenticated, "AuthFailure": providers.ErrUnauthenticated,
	"XAdminUserNotFound": providers.ErrUnauthenticated, "InvalidClientTokenId": providers.ErrUnauthenticated, "UnrecognizedClientException": providers.ErrUnauthenticated,

	"EntityTooLarge": providers.ErrTooLarge, "MetadataTooLarge": providers.ErrTooLarge,
	"KeyTooLongError": providers.ErrNameTooLong, "XMinioInvalidObjectName": providers.ErrInvalid,
	"QuotaExceeded": providers.ErrQuota, "XMinioStorageFull": providers.ErrQuota, "XMinioAdminBucketQuotaExceeded": providers.ErrQuota,
	"XAmzContentSHA256Mismatch": providers.ErrCorrupt, "BadDigest": providers.ErrCorrupt,

	"SlowDown": providers.ErrUnavailable, "SlowDownRead": providers.ErrUnavailable, "SlowDownWrite": providers.ErrUnavailable,
	"InternalError": providers.ErrUnavailable, "ServiceUnavailable": providers.ErrUnavailable, "RequestTimeout": providers.ErrUnavailable,
	"Throttling": providers.ErrUnavailable, "ThrottlingException": providers.ErrUnavailable, "TooManyRequests": providers.ErrUnavailable,
	"OperationAborted": providers.ErrUnavailable, "IncompleteBody": providers.ErrUnavailable, "TemporaryRedirect": providers.ErrUnavailable,
	"XMinioServerNotInitialized": providers.ErrUnavailable,

	"PermanentRedirect": providers.ErrInvalid, "AuthorizationHeaderMalformed": providers.ErrInvalid,
	"IllegalLocationConstraintException": providers.ErrInvalid, "InvalidBucketName": providers.ErrInvalid,
	"NotImplemented": providers.ErrUnsupported, "VersioningNotConfigured": providers.ErrUnsupported,
}

// statuses are for answers without a code that is known; those to HEAD never
// have one.
var statuses = map[int]error{
	http.StatusMovedPermanently: providers.ErrInvalid, http.StatusTemporaryRedirect: providers.ErrUnavailable,
	http.StatusBadRequest: providers.ErrInvalid, http.StatusUnauthorized: providers.ErrUnauthenticated,
	http.StatusForbidden: providers.ErrPermission,
	// A proxy or another service says so too, and nobody must take that for a
	// deletion: only S3's own codes mean that nothing is there.
	http.StatusNotFound:         providers.ErrUnavailable,
	http.StatusMethodNotAllowed: providers.ErrUnsupported, http.StatusRequestTimeout: providers.ErrUnavailable,
	http.StatusConflict: providers.ErrConflict, http.StatusPreconditionFailed: providers.ErrConflict,
	http.StatusRequestEntityTooLarge: providers.ErrTooLarge, http.StatusTooManyRequests: providers.ErrUnavailable,
	http.StatusNotImplemented: providers.ErrUnsupported, http.StatusInsufficientStorage: providers.ErrQuota,
}

// advice is what a code does not say by itself.
var advice = map[string]string{
	"RequestTimeTooSkewed": "the clock of this machine and the service's differ",
	"InvalidObjectState":   "the object is in an archive and must be restored first",
}

// fault is an error on its way out: its kind, and the service's code.
type fault struct {
	kind   error
	code   string
	status int // 0: there was no answer
	err    error
}

func (f *fault) Error() string {
	if f.err == nil {
		return f.kind.Error()
	}
	return f.err.Error()
}

func (f *fault) Unwrap() []error { return []error{f.kind, f.err} }

// translate finds the kind of what a request ended with.
func translate(ctx context.Context, err error) error {
	var done *fault
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &fault{kind: ctx.Err()}
	case errors.As(err, &done):
		return done
	}
	f := &fault{err: err}
	var other *foreignError
	if errors.As(err, &other) {
		return &fault{kind: providers.ErrUnavailable, err: other}
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		f.code = api.ErrorCode()
		f.err = errors.New(api.ErrorMessage())
	}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		f.status = response.HTTPStatusCode()
	}
	f.kind = f.find()
	f.explain(response)
	return f
}

// find is the lookup in the tables.
func (f *fault) find() error {
	if kind, ok := codes[f.code]; ok {
		return kind
	}
	if kind, ok := statuses[f.status]; ok {
		return kind
	}
	var params smithy.InvalidParamsError
	switch {
	case f.status >= 500, f.status == 0 && f.code != "":
		return providers.ErrUnavailable
	case f.status >= 400, errors.As(f.err, &params):
		return providers.ErrInvalid
	case errors.Is(f.err, providers.ErrPermission) && !isErrno(f.err):
		return providers.ErrPermission // the transport refused to send it
	}
	return providers.ErrUnavailable // no answer: a reset, a timeout, no such host
}

func isErrno(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno)
}

// explain adds what helps: the clock, the region that would be right.
func (f *fault) explain(response *smithyhttp.ResponseError) {
	if hint := advice[f.code]; hint != "" {
		f.err = fmt.Errorf("%s: %w", hint, f.err)
	}
	if response == nil || response.Response == nil || !errors.Is(f.kind, providers.ErrInvalid) {
		return
	}
	if region := response.Response.Header.Get("X-Amz-Bucket-Region"); region != "" {
		f.err = fmt.Errorf("the bucket is in region %q: %w", region, f.err)
	}
}

// isCode reports whether err is the service's answer with one of the codes.
func isCode(err error, wanted ...string) bool {
	var f *fault
	if !errors.As(err, &f) {
		return false
	}
	for _, code := range wanted {
		if f.code == code {
			return true
		}
	}
	return false
}

// isBare reports whether err is a refusal of which nothing but the status is
// known.
func isBare(err error) bool {
	var f *fault
	return errors.As(err, &f) && !hasCode(err) &&
		(f.status == http.StatusBadRequest || f.status == http.StatusUnauthorized || f.status == http.StatusForbidden)
}

// hasCode reports whether err is an answer with a code that is known.
func hasCode(err error) bool {
	var f *fault
	if !errors.As(err, &f) {
		return false
	}
	_, known := codes[f.code]
	return known
}

// isRefusedName reports whether the service cannot have such a key at all.
func isRefusedName(err error) bool {
	return isCode(err, "XMinioInvalidObjectName", "XMinioInvalidResourceName", "KeyTooLongError")
}

// mayBeLogin reports whether err can mean that the credentials do not hold.
// The answer to a HEAD has only a status to say so with.
func mayBeLogin(err error) bool {
	var f *fault
	if !errors.As(err, &f) {
		return false
	}
	if errors.Is(f.kind, providers.ErrUnauthenticated) {
		return f.status != 0 && f.code != "RequestTimeTooSkewed"
	}
	return !hasCode(err) && (f.status == http.StatusBadRequest || f.status == http.StatusForbidden)
}

// fail is how a verb reports err: nil stays nil.
func fail(ctx context.Context, op providers.Method, l providers.Locator, err error) error {
	if err == nil {
		return nil
	}
	var f *fault
	if errors.As(err, &f) {
		return &providers.Error{Provider: name, Op: op, Locator: l, Kind: f.kind, Code: f.code, Err: f.err}
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return providers.Fail(name, op, l, err, providers.ErrUnavailable)
}
