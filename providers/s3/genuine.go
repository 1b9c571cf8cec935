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

// genuine is a transport that believes what is S3's.
func genuine(inner http.RoundTripper) *bucket.Genuine {
	g := &bucket.Genuine{Inner: inner, Service: "S3", Header: requestName}
	g.Lacks = func(r *http.Request, answer *http.Response) error {
		return lacks(g, awsmiddleware.GetOperationName(r.Context()), answer)
	}
	return g
}

// lacks says what an answer lacks to be a success of an operation.
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

// isDocument says why an answer is not an XML document with that root, or
// S3's Error, which may come with a success that it takes back. A service that does not
// know the parameter by which versions are asked for gives the listing of the bucket.
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
