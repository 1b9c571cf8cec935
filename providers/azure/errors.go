package azure

import (
	"context"
	"encoding/xml"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Codes that this package tests for.
const (
	noContainer = "ContainerNotFound"
	noBlocks    = "InvalidBlockList"
	notThere    = "APINotImplemented"
)

// codes is the one table of the meanings of codes.
var codes = bucket.Codes{Kinds: map[error][]string{
	providers.ErrNotExist: {"BlobNotFound", "PathNotFound"},
	providers.ErrConflict: {
		"ConditionNotMet", "TargetConditionNotMet", "SourceConditionNotMet", "BlobAlreadyExists", "PathAlreadyExists", noBlocks,
	},
	// In a hierarchical namespace a name is a directory or a file.
	providers.ErrIsDir:    {"ResourceTypeMismatch"},
	providers.ErrNotEmpty: {"DirectoryIsNotEmpty"},

	providers.ErrUnauthenticated: {"AuthenticationFailed", "NoAuthenticationInformation", "InvalidAuthenticationInfo"},
	providers.ErrPermission: {
		"AuthorizationFailure", "AuthorizationPermissionMismatch", "AuthorizationProtocolMismatch", "AuthorizationResourceTypeMismatch",
		"AuthorizationServiceMismatch", "AuthorizationSourceIPMismatch", "InsufficientAccountPermissions", "AccountIsDisabled",
		"KeyBasedAuthenticationNotPermitted", "PublicAccessNotPermitted", "BlobImmutableDueToPolicy", "BlobArchived",
		"ResourceNotFound", // for anonymous requests
	},
	providers.ErrUnsupported: {
		"SnapshotsPresent", "InvalidBlobType", "FeatureNotSupported", notThere, "BlobTypeNotSupported", "OperationNotAllowedInRoot",
	},
	providers.ErrInvalid: {
		"InvalidResourceName", "InvalidUri", "OutOfRangeInput", "InvalidMetadata", "EmptyMetadataKey", "InvalidHeaderValue", "InvalidRange",
	},
	providers.ErrTooLarge: {"MetadataTooLarge", "RequestBodyTooLarge", "BlockCountExceedsLimit", "BlockListTooLong"},
	providers.ErrCorrupt:  {"Md5Mismatch", "Crc64Mismatch"},
	providers.ErrQuota:    {"AccountLimitExceeded"},
	providers.ErrUnavailable: {
		noContainer, "ContainerBeingDeleted", "ContainerDisabled", // it may come back, with its content; Open reports another kind
		"BlobBeingRehydrated", "LeaseIdMissing", "LeaseAlreadyPresent", "PendingCopyOperation", "ServerBusy", "InternalError",
		"OperationTimedOut", "IngressOverAccountLimit", "EgressOverAccountLimit", "InvalidBlobOrBlock", "AccountBeingCreated", "TooManyRequests",
	},
}, Doubts: map[string]bucket.Doubt{
	"InvalidResourceName": bucket.NameRefused, "InvalidUri": bucket.NameRefused, "OutOfRangeInput": bucket.NameRefused,
	"InvalidRange": bucket.RangeBeyond, unreadableSource: bucket.Sure,
}, Advice: map[string]string{
	"BlobArchived":       "the blob is in an archive and must be rehydrated first",
	"ResourceNotFound":   "the container is not there, or needs credentials",
	"LeaseIdMissing":     "another program holds a lease on the blob",
	"SnapshotsPresent":   "the blob has snapshots, which would be lost with it: delete them first",
	"InvalidBlobOrBlock": "blocks that another program left wait there with ids of another length, for a week at most",
	noBlocks:             uploadGone,
}, Wordless: true}

const uploadGone = "the upload is gone"

// unreadableSource is the code of a failed copy whose status is that of reading the source.
const unreadableSource = "CannotVerifyCopySource"

// translate finds the kind of a request's error.
func translate(ctx context.Context, err error) error {
	if told, ok := bucket.Told(ctx, err); ok {
		return told
	}
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return unanswered(err)
	}
	f := &bucket.Fault{Code: answer.ErrorCode, Status: answer.StatusCode, Err: errors.New(message(answer))}
	if f.Code == unreadableSource && f.Status == http.StatusNotFound {
		f.Kind = providers.ErrNotExist
	}
	codes.Judge(f)
	return f
}

// unanswered is the error of a request without an answer. The URL stays out of it: it may
// have a signature.
func unanswered(err error) error {
	f := &bucket.Fault{Kind: bucket.KindUnanswered(err), Err: err}
	var sent *url.Error
	if errors.As(err, &sent) {
		f.Err = sent.Err
	}
	return f
}

// message is the service's text and code, without the request's id and time.
func message(answer *azcore.ResponseError) string {
	var said struct{ Message string }
	if r := answer.RawResponse; r != nil && r.Body != nil {
		if body, err := runtime.Payload(r); err == nil {
			_ = xml.Unmarshal(body, &said) // without a document there is no text
		}
	}
	text, _, _ := strings.Cut(said.Message, "\n")
	if text == "" {
		text = http.StatusText(answer.StatusCode)
	}
	if answer.ErrorCode != "" {
		text = answer.ErrorCode + ": " + text
	}
	return text
}
