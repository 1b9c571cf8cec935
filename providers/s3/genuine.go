package s3

import (
	"fmt"
	"net/http"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// requestName is how S3 itself and most others name a request.
const requestName = "X-Amz-Request-Id"

// roots are the documents that operations are answered with.
var roots = map[string]string{
	"ListObjectsV2": "ListBucketResult", "ListMultipartUploads": "ListMultipartUploadsResult",
	"CopyObject": "CopyObjectResult", "UploadPartCopy": "CopyPartResult",
	"CreateMultipartUpload": "InitiateMultipartUploadResult", "CompleteMultipartUpload": "CompleteMultipartUploadResult",
	"GetBucketLocation": "LocationConstraint", "GetBucketVersioning": "VersioningConfiguration",
	"ListObjectVersions": "ListVersionsResult", "GetObjectTagging": "Tagging",
}

// genuine is a transport that accepts only answers of an S3 service.
func genuine(inner http.RoundTripper) *bucket.Genuine {
	g := &bucket.Genuine{Inner: inner, Service: "S3", Header: requestName}
	g.Lacks = func(r *http.Request, answer *http.Response) error {
		return lacks(g, awsmiddleware.GetOperationName(r.Context()), answer)
	}
	return g
}

// lacks is nil, or an error naming the feature of a successful operation that an answer lacks.
func lacks(g *bucket.Genuine, op string, answer *http.Response) error {
	if root := roots[op]; root != "" {
		return isDocument(g, answer, root)
	}
	switch op {
	case "PutObject", "UploadPart":
		return g.Made(answer, "ETag")
	case "GetObject":
		return g.Headers(answer, "ETag", "Last-Modified")
	case "HeadObject":
		return g.Head(answer, "ETag", "Last-Modified")
	case "DeleteObject", "AbortMultipartUpload":
		if answer.StatusCode != http.StatusNoContent && answer.ContentLength != 0 {
			return g.Foreign(answer, "a deletion is answered with content")
		}
	}
	return nil
}

// isDocument is nil, or why an answer is neither an XML document with that root nor S3's Error,
// which may come with a status of success. A service that does not know the parameter that asks
// for versions returns the listing of the bucket.
func isDocument(g *bucket.Genuine, answer *http.Response, root string) error {
	some := []string{root, "Error"}
	asksPast := root == roots["GetBucketVersioning"] || root == roots["ListObjectVersions"]
	if asksPast {
		some = append(some, roots["ListObjectsV2"])
	}
	got, err := g.Root(answer, some...)
	if err == nil && asksPast && got == roots["ListObjectsV2"] {
		return &bucket.Fault{Kind: providers.ErrUnsupported, Err: fmt.Errorf("the service answers with a listing instead of %s", root)}
	}
	return err
}
