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

// codes is the one table of the meanings of services' codes.
var codes = bucket.Codes{Kinds: map[error][]string{
	providers.ErrNotExist: {"NoSuchKey", "NotFound", "NoSuchUpload", "NoSuchVersion"},
	providers.ErrConflict: {"PreconditionFailed", "ConditionalRequestConflict", "ObjectAlreadyInActiveTierError", "NotModified"},

	// Services whose store is a file system have its rules.
	providers.ErrIsDir:  {"XMinioObjectExistsAsDirectory", "ExistingObjectIsDirectory"},
	providers.ErrNotDir: {"XMinioParentIsObject", "ObjectParentIsFile"},

	providers.ErrPermission: {"AccessDenied", "AllAccessDisabled", "AccountProblem", "InvalidObjectState"}, // the last is in an archive
	providers.ErrUnauthenticated: {
		"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "RequestTimeTooSkewed",
		"RequestExpired", "AuthFailure", "XAdminUserNotFound", "InvalidClientTokenId", "UnrecognizedClientException",
	},
	providers.ErrTooLarge:    {"EntityTooLarge", "MetadataTooLarge"},
	providers.ErrNameTooLong: {"KeyTooLongError"},
	providers.ErrQuota:       {"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"},
	providers.ErrCorrupt:     {"XAmzContentSHA256Mismatch", "BadDigest"},
	providers.ErrUnavailable: {
		"NoSuchBucket", // it may come back, with its content; Open reports another kind
		"SlowDown", "SlowDownRead", "SlowDownWrite", "InternalError", "ServiceUnavailable", "RequestTimeout", "Throttling",
		"ThrottlingException", "TooManyRequests", "OperationAborted", "IncompleteBody", "TemporaryRedirect", "XMinioServerNotInitialized",
	},
	providers.ErrInvalid: {
		"XMinioInvalidObjectName", "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "InvalidBucketName",
	},
	providers.ErrUnsupported: {"NotImplemented", "VersioningNotConfigured"},
}, Doubts: map[string]bucket.Doubt{
	"XMinioInvalidObjectName": bucket.NameRefused, "XMinioInvalidResourceName": bucket.NameRefused, "KeyTooLongError": bucket.NameRefused,
	"InternalError": bucket.DirInTheWay, // Versitygw has no better code for it
}, Advice: map[string]string{
	"RequestTimeTooSkewed": "the clock of this machine and the service's differ",
	"InvalidObjectState":   "the object is in an archive and must be restored first",
}, Wordless: true}

// translate finds the kind of a request's error.
func translate(ctx context.Context, err error) error {
	if told, ok := bucket.Told(ctx, err); ok {
		return told
	}
	f := &bucket.Fault{Err: cause(err)}
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

// cause is err without the text that the SDK puts around it: the operation, the attempt, and
// the headers of an answer, also where none came.
func cause(err error) error {
	for {
		var operation *smithy.OperationError
		var response *smithyhttp.ResponseError
		var sending *smithyhttp.RequestSendError
		switch {
		case errors.As(err, &operation):
			err = operation.Err
		case errors.As(err, &response):
			err = response.Err
		case errors.As(err, &sending):
			err = sending.Err
		default:
			return err
		}
	}
}

// mayBeLogin reports whether err can mean that the credentials are not valid.
func mayBeLogin(err error) bool {
	return bucket.MayBeLogin(err) && !bucket.IsCode(err, "RequestTimeTooSkewed")
}

func isStatus(err error, status int) bool {
	var f *bucket.Fault
	return errors.As(err, &f) && f.Status == status
}
