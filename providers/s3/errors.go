package s3

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// codes is the one place that says what a service's code means.
var codes = bucket.Codes{Kinds: map[string]error{
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
}, Doubts: map[string]bucket.Doubt{
	"XMinioInvalidObjectName": bucket.NameRefused, "XMinioInvalidResourceName": bucket.NameRefused, "KeyTooLongError": bucket.NameRefused,
	"InternalError": bucket.DirInTheWay, // Versitygw has no better word for it
}, Advice: map[string]string{
	"RequestTimeTooSkewed": "the clock of this machine and the service's differ",
	"InvalidObjectState":   "the object is in an archive and must be restored first",
}, Wordless: true}

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
	var params smithy.InvalidParamsError
	var unread *smithy.DeserializationError
	switch {
	case f.Status == 0 && f.Code == "" && errors.As(f.Err, &params):
		f.Kind = providers.ErrInvalid
	case f.Status == 0 && f.Code == "":
		f.Kind = bucket.KindUnanswered(f.Err)
	case f.Code == "" && errors.As(err, &unread):
		f.Cut = true
	}
	codes.Judge(f)
	if response != nil && response.Response != nil && errors.Is(f.Kind, providers.ErrInvalid) {
		if region := response.Response.Header.Get("X-Amz-Bucket-Region"); region != "" {
			f.Err = fmt.Errorf("the bucket is in region %q: %w", region, f.Err)
		}
	}
	return f
}

// mayBeLogin reports whether err can mean that the credentials do not hold.
func mayBeLogin(err error) bool {
	return bucket.MayBeLogin(err) && !bucket.IsCode(err, "RequestTimeTooSkewed")
}

func isStatus(err error, status int) bool {
	var f *bucket.Fault
	return errors.As(err, &f) && f.Status == status
}
