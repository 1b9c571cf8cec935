package gcs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// request is one of the service's.
type request struct {
	name   string // as the service calls it: "objects.get"
	method string
	path   string // percent-encoded
	query  url.Values
	header http.Header

	body  func() io.Reader // for each attempt; nil: none
	size  int64
	again func() bool // makes the body ready for another attempt, or says that it cannot; nil: it always is
}

// nameKey is where a request's context has its name.
type nameKey struct{}

func nameOf(r *http.Request) string {
	name, _ := r.Context().Value(nameKey{}).(string)
	return name
}

// objectPath is where the JSON API has an object.
func (s *store) objectPath(key string) string {
	return s.objectsPath() + "/" + url.PathEscape(key)
}

func (s *store) objectsPath() string { return s.bucketPath() + "/o" }

func (s *store) bucketPath() string { return "/storage/v1/b/" + url.PathEscape(s.config.bucket) }

// do sends a request, and once more after a new login. The answer is a success.
func (s *store) do(ctx context.Context, r request) (answer *http.Response, err error) {
	err = s.login.Do(ctx, func() error {
		answer, err = s.once(ctx, r)
		return translate(ctx, err)
	}, mayBeLogin, r.again)
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (s *store) once(ctx context.Context, r request) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		body = r.body()
	}
	target := s.config.endpoint + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	out, err := http.NewRequestWithContext(context.WithValue(ctx, nameKey{}, r.name), r.method, target, body)
	if err != nil {
		return nil, bucket.Invalid("%s", r.name) // the error would show all of it
	}
	for name, values := range r.header {
		out.Header[name] = values
	}
	if body != nil {
		out.ContentLength = r.size
	}
	if s.login != nil {
		token, err := s.login.Get(ctx)
		if err != nil {
			return nil, err
		}
		out.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := s.client.Do(out)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, refused(answer)
}

// document is an answer of the JSON API.
type document interface{ kind() string }

// ask sends a request whose answer is a document, of which nothing else than the kind that
// is expected is believed.
func ask[D document](ctx context.Context, s *store, r request) (d D, answer *http.Response, err error) {
	answer, err = s.do(ctx, r)
	if err != nil {
		return d, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return d, nil, translate(ctx, err)
	}
	var is struct{ Kind string }
	err = json.Unmarshal(text, &is)
	if err == nil && is.Kind != d.kind() {
		err = fmt.Errorf("the document is %q and not %s", is.Kind, d.kind())
	}
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return d, nil, genuine(nil).Foreign(answer, "%v", err)
	}
	return d, answer, nil
}

// withDocument is r with a body of JSON.
func withDocument(r request, document any) (request, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return r, err
	}
	r.body, r.size = func() io.Reader { return bytes.NewReader(text) }, int64(len(text))
	r.header = http.Header{"Content-Type": {"application/json"}}
	return r, nil
}

// requestName is how the service names a request.
const requestName = "X-Guploader-Uploadid"

// genuine is a transport that believes what is the service's. Documents are looked at
// where they are read.
func genuine(inner http.RoundTripper) *bucket.Genuine {
	g := &bucket.Genuine{Inner: inner, Service: "Google Cloud Storage", Header: requestName}
	g.Lacks = func(r *http.Request, answer *http.Response) error {
		content := answer.Header.Get("Content-Type")
		switch op := nameOf(r); {
		case op == download && answer.Header.Get("X-Goog-Generation") == "":
			return g.Foreign(answer, "there is no X-Goog-Generation")
		case op == "objects.delete" && answer.StatusCode != http.StatusNoContent && answer.ContentLength != 0:
			return g.Foreign(answer, "a deletion is answered with content")
		case op != download && op != "objects.delete" && !strings.HasPrefix(content, "application/json"):
			return g.Foreign(answer, "it is not JSON")
		}
		return nil
	}
	return g
}

// preconditions are what a condition asks of the object that a request changes.
func preconditions(q url.Values, c providers.Condition) error {
	switch c.Kind {
	case providers.ConditionAbsent:
		q.Set("ifGenerationMatch", "0")
	case providers.ConditionVersion:
		return pinned(q, "if", c.Version.ETag)
	}
	return nil
}

// pinned asks for one version.
func pinned(q url.Values, prefix, etag string) error {
	generation, metageneration, err := cutETag(etag)
	if err != nil {
		return err
	}
	q.Set(prefix+"GenerationMatch", generation)
	q.Set(prefix+"MetagenerationMatch", metageneration)
	return nil
}

// cutETag is an ETag's generation and metageneration. One that is not of this service is
// of no object in it.
func cutETag(etag string) (generation, metageneration string, err error) {
	generation, metageneration, ok := strings.Cut(etag, ".")
	if !ok || !isNumber(generation) || !isNumber(metageneration) {
		return "", "", &bucket.Fault{Kind: providers.ErrConflict, Err: fmt.Errorf("version %q is none of this service", etag)}
	}
	return generation, metageneration, nil
}

// isNumber also knows that a generation 0 would ask for absence.
func isNumber(s string) bool {
	return s != "" && s[0] != '0' && len(s) < 20 && strings.Trim(s, "0123456789") == ""
}
