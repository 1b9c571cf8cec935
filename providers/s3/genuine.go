package s3

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// genuine is a transport that believes a success only if it has what S3 always sends
// with it. A login page, a maintenance page or a proxy answers each request with 200
// and a text of its own: taken as it is, a PUT has stored nothing, a listing is empty,
// and an object has the page as its content. Such an answer is an error here, as if
// there had been none, so that the request is tried again and nothing counts as stored.
//
// A page may be a file with an ETag and a date. Therefore a service that has named a
// request (X-Amz-Request-Id, as S3 itself and most others do) names all of them. Of one
// that names none, only such a page in the place of an object's head or content passes.
type genuine struct {
	inner http.RoundTripper
	names atomic.Bool // the service gives each answer the name of its request
}

const requestName = "X-Amz-Request-Id"

// roots are the documents that operations are answered with.
var roots = map[string]string{
	"ListObjectsV2": "ListBucketResult", "ListMultipartUploads": "ListMultipartUploadsResult",
	"CopyObject": "CopyObjectResult", "UploadPartCopy": "CopyPartResult",
	"CreateMultipartUpload": "InitiateMultipartUploadResult", "CompleteMultipartUpload": "CompleteMultipartUploadResult",
	"GetBucketLocation": "LocationConstraint", "GetBucketVersioning": "VersioningConfiguration",
	"ListObjectVersions": "ListVersionsResult",
}

// RoundTrip implements http.RoundTripper.
func (g *genuine) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := g.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	op := awsmiddleware.GetOperationName(r.Context())
	if err := g.check(op, answer); err != nil {
		answer.Body.Close()
		return nil, err
	}
	return answer, nil
}

// foreignError is an answer that is not S3's.
type foreignError struct {
	status int
	kind   string // its Content-Type
	lacks  string
}

func (e *foreignError) Error() string {
	return fmt.Sprintf("the answer is not from S3, but from a login page, a proxy or the like: status %d, type %q, and %s", e.status, e.kind, e.lacks)
}

func foreign(answer *http.Response, format string, args ...any) error {
	return &foreignError{answer.StatusCode, answer.Header.Get("Content-Type"), fmt.Sprintf(format, args...)}
}

// check looks at what success needs. Other answers are the error table's, but for the
// one to a HEAD that says in its status alone that nothing is there.
func (g *genuine) check(op string, answer *http.Response) error {
	success := answer.StatusCode/100 == 2
	missing := answer.StatusCode == http.StatusNotFound && op == "HeadObject"
	if !success && !missing {
		return nil
	}
	if g.names.Load() && answer.Header.Get(requestName) == "" {
		return foreign(answer, "there is no %s", requestName)
	}
	if missing {
		return nil
	}
	if err := looksLike(op, answer); err != nil {
		return err
	}
	if answer.Header.Get(requestName) != "" {
		g.names.Store(true)
	}
	return nil
}

// looksLike says what an answer lacks to be a success of an operation.
func looksLike(op string, answer *http.Response) error {
	if root := roots[op]; root != "" {
		return isDocument(answer, root)
	}
	var needs []string
	switch op {
	case "PutObject", "UploadPart":
		needs = []string{"ETag"}
		if answer.ContentLength != 0 && strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			return foreign(answer, "a PUT is answered with a page")
		}
	case "GetObject", "HeadObject":
		needs = []string{"ETag", "Last-Modified"}
		if op == "HeadObject" && answer.ContentLength < 0 {
			return foreign(answer, "there is no Content-Length")
		}
	case "DeleteObject", "AbortMultipartUpload":
		if answer.StatusCode != http.StatusNoContent && answer.ContentLength != 0 {
			return foreign(answer, "a deletion is answered with content")
		}
	}
	for _, header := range needs {
		if answer.Header.Get(header) == "" {
			return foreign(answer, "there is no %s", header)
		}
	}
	return nil
}

// isDocument reads an answer and says why it is not an XML document with that root, or
// S3's Error, which may come with a success that it takes back. A service that does not
// know the parameter by which versions are asked for gives the listing of the bucket.
func isDocument(answer *http.Response, root string) error {
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err // it has broken off
	}
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	for d := xml.NewDecoder(bytes.NewReader(body)); ; {
		token, err := d.Token()
		if err != nil {
			return foreign(answer, "there is no %s: %v", root, err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "ListBucketResult" && (root == roots["GetBucketVersioning"] || root == roots["ListObjectVersions"]) {
			return &bucket.Fault{Kind: providers.ErrUnsupported, Err: fmt.Errorf("the service answers with a listing instead of %s", root)}
		}
		if start.Name.Local != root && start.Name.Local != "Error" {
			return foreign(answer, "the document is %s and not %s", start.Name.Local, root)
		}
		if !isWhole(body, start.Name.Local) {
			return foreign(answer, "the document %s has no end", root)
		}
		return nil
	}
}

// isWhole says whether a document with that root has its end.
func isWhole(body []byte, root string) bool {
	end := strings.TrimSpace(string(body[max(0, len(body)-200):]))
	if strings.HasSuffix(end, "/>") && bytes.Count(body, []byte("<")) <= 2 { // it is empty, with a header or without
		return true
	}
	end, ok := strings.CutSuffix(end, ">")
	end = strings.TrimSpace(end)
	return ok && (strings.HasSuffix(end, "</"+root) || strings.HasSuffix(end, ":"+root))
}
