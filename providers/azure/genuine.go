package azure

import (
	"net/http"
	"strings"

	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// Operations, by the service's names.
const (
	opList     = "ListBlobs"
	opGet      = "GetBlob"
	opHead     = "GetBlobProperties"
	opPut      = "PutBlob"
	opPutURL   = "PutBlobFromURL"
	opBlock    = "PutBlock"
	opBlockURL = "PutBlockFromURL"
	opCommit   = "PutBlockList"
	opDelete   = "DeleteBlob"
	opMetadata = "SetBlobMetadata"
	opHeaders  = "SetBlobProperties"
	opTags     = "GetBlobTags"
	opAccount  = "GetAccountInformation"
)

// operation is the operation of a request.
func operation(r *http.Request) string {
	q := r.URL.Query()
	comp, restype := q.Get("comp"), q.Get("restype")
	isCopy := r.Method == http.MethodPut && copies(r.Header)
	switch {
	case restype == "account":
		return opAccount
	case comp == "list":
		return opList
	case comp == "block" && isCopy:
		return opBlockURL
	case comp == "block":
		return opBlock
	case comp == "blocklist":
		return opCommit
	case comp == "metadata":
		return opMetadata
	case comp == "properties":
		return opHeaders
	case comp == "tags":
		return opTags
	case isCopy:
		return opPutURL
	}
	return map[string]string{http.MethodGet: opGet, http.MethodHead: opHead, http.MethodPut: opPut, http.MethodDelete: opDelete}[r.Method]
}

// copies reports whether a request names a source, under a name that the SDK writes as
// it likes.
func copies(h http.Header) bool {
	for name := range h {
		if strings.EqualFold(name, "x-ms-copy-source") {
			return true
		}
	}
	return false
}

// genuine is a transport that accepts only answers of Azure.
func genuine(inner http.RoundTripper) *bucket.Genuine {
	g := &bucket.Genuine{Inner: inner, Service: "Azure", Header: "X-Ms-Request-Id"}
	g.Lacks = func(r *http.Request, answer *http.Response) error { return lacks(g, operation(r), answer) }
	return g
}

// statuses are those of a success that changes something.
var statuses = map[string]int{
	opPut: http.StatusCreated, opPutURL: http.StatusCreated, opBlock: http.StatusCreated, opBlockURL: http.StatusCreated,
	opCommit: http.StatusCreated, opDelete: http.StatusAccepted,
}

// lacks is nil, or an error naming the feature of a successful operation that an answer lacks.
func lacks(g *bucket.Genuine, op string, answer *http.Response) error {
	if root := map[string]string{opList: "EnumerationResults", opTags: "Tags"}[op]; root != "" {
		_, err := g.Root(answer, root)
		return err
	}
	if want := statuses[op]; want != 0 && answer.StatusCode != want {
		return g.Foreign(answer, "%s succeeds with %d", op, want)
	}
	switch op {
	case opGet:
		return g.Headers(answer, "ETag", "Last-Modified", "X-Ms-Blob-Type")
	case opHead:
		return g.Head(answer, "ETag", "Last-Modified", "X-Ms-Blob-Type")
	case opPut, opPutURL, opCommit, opMetadata, opHeaders:
		return g.Made(answer, "ETag", "Last-Modified")
	}
	return nil
}
