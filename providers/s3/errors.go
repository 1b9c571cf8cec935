package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
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

// advice is what a code does not say by itself.
var advice = map[string]string{
	"RequestTimeTooSkewed": "the clock of this machine and the service's differ",
	"InvalidObjectState":   "the object is in an archive and must be restored first",
}

// translate finds the kind of what a request ended with.
func translate(ctx context.Context, err error) error {
	if told, ok := bucket.Told(ctx, err); ok {
		return told
	}
	f := &bucket.Fault{Err: err}
	var api smithy.APIError
	if errors.As(err, &api) {
		f.Code = api.ErrorCode()
		f.Err = errors.New(api.ErrorMessage())
	}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		f.Status = response.HTTPStatusCode()
	}
	f.Kind, f.Doubt = kindOf(f), doubtOf(f)
	explain(f, response)
	return f
}

// kindOf is the lookup in the tables.
func kindOf(f *bucket.Fault) error {
	if kind, ok := codes[f.Code]; ok {
		return kind
	}
	if kind := bucket.KindOfStatus(f.Status); kind != nil {
		return kind
	}
	var params smithy.InvalidParamsError
	switch {
	case f.Status == 0 && f.Code != "":
		return providers.ErrUnavailable
	case errors.As(f.Err, &params):
		return providers.ErrInvalid
	}
	return bucket.KindUnanswered(f.Err)
}

// doubtOf is what an answer leaves open.
func doubtOf(f *bucket.Fault) bucket.Doubt {
	_, known := codes[f.Code]
	switch {
	case f.Code == "XMinioInvalidObjectName", f.Code == "XMinioInvalidResourceName", f.Code == "KeyTooLongError":
		return bucket.NameRefused
	case f.Code == "InternalError":
		return bucket.DirInTheWay // Versitygw has no better word for it
	case f.Status == http.StatusRequestedRangeNotSatisfiable:
		return bucket.RangeBeyond
	case !known && (f.Status == http.StatusBadRequest || f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden):
		return bucket.NoReason
	}
	return bucket.Sure
}

// explain adds what helps: the clock, the region that would be right.
func explain(f *bucket.Fault, response *smithyhttp.ResponseError) {
	if hint := advice[f.Code]; hint != "" {
		f.Err = fmt.Errorf("%s: %w", hint, f.Err)
	}
	if response == nil || response.Response == nil || !errors.Is(f.Kind, providers.ErrInvalid) {
		return
	}
	if region := response.Response.Header.Get("X-Amz-Bucket-Region"); region != "" {
		f.Err = fmt.Errorf("the bucket is in region %q: %w", region, f.Err)
	}
}

// hasCode reports whether err is an answer with a code that is known.
func hasCode(err error) bool {
	var f *bucket.Fault
	if !errors.As(err, &f) {
		return false
	}
	_, known := codes[f.Code]
	return known
}

// mayBeLogin reports whether err can mean that the credentials do not hold.
// The answer to a HEAD has only a status to say so with.
func mayBeLogin(err error) bool {
	var f *bucket.Fault
	if !errors.As(err, &f) {
		return false
	}
	if errors.Is(f.Kind, providers.ErrUnauthenticated) {
		return f.Status != 0 && f.Code != "RequestTimeTooSkewed"
	}
	return !hasCode(err) && (f.Status == http.StatusBadRequest || f.Status == http.StatusForbidden)
}

func isStatus(err error, status int) bool {
	var f *bucket.Fault
	return errors.As(err, &f) && f.Status == status
}
