package gcs

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/bucket"
)

// nameKey is the context key of the service's name for a request: "objects.get".
type nameKey struct{}

func nameOf(r *http.Request) string {
	name, _ := r.Context().Value(nameKey{}).(string)
	return name
}

// download is the name of a request of the XML API.
const download = "GET Object"

// call sends a request, and once more after a new login. again, unless nil, prepares the
// request's body for that, or returns false if it cannot.
func call[O any](ctx context.Context, s *store, name string, again func() bool, send func(context.Context) (O, error)) (out O, err error) {
	err = s.login.Do(ctx, func() error {
		out, err = send(context.WithValue(ctx, nameKey{}, name))
		return translate(ctx, err)
	}, bucket.MayBeLogin, again)
	return out, err
}

// request is one of the client's.
type request[R, O any] interface {
	Context(ctx context.Context) R
	Do(options ...googleapi.CallOption) (O, error)
}

// ask sends a request whose body, if it has one, is a document.
func ask[R request[R, O], O any](ctx context.Context, s *store, name string, r R, options ...googleapi.CallOption) (O, error) {
	return call(ctx, s, name, nil, func(ctx context.Context) (O, error) { return r.Context(ctx).Do(options...) })
}

// describe sends a request that is answered with an object's resource.
func describe[R request[R, *storage.Object]](ctx context.Context, s *store, name string, r R, options ...googleapi.CallOption) (bucket.Object, error) {
	got, err := ask(ctx, s, name, r, append(options, fields(resourceFields))...)
	if err != nil {
		return bucket.Object{}, err
	}
	return objectOf(got)
}

func fields(wanted string) googleapi.CallOption { return googleapi.QueryParameter("fields", wanted) }

// isKind refuses a document of another kind than requested: it is not from the service.
func isKind(kind, want string) error {
	if kind == want {
		return nil
	}
	return &bucket.Fault{Kind: providers.ErrUnavailable, Err: fmt.Errorf("the answer is not from %s: the document is %q and not %s", people, kind, want)}
}

// people is the usual name of the service.
const people = "Google Cloud Storage"

// requestName is the header with the service's id of a request.
const requestName = "X-Guploader-Uploadid"

// genuine is a transport that accepts only answers of the service. The kinds of documents are
// checked where they are read.
func genuine(inner http.RoundTripper) *bucket.Genuine {
	g := &bucket.Genuine{Inner: inner, Service: people, Header: requestName}
	g.Lacks = func(r *http.Request, answer *http.Response) error {
		switch op := nameOf(r); {
		case r.URL.Query().Get("uploadType") == "resumable":
			return lacksOfSession(g, r, answer)
		case op == download && answer.Header.Get("X-Goog-Generation") == "":
			return g.Foreign(answer, "there is no X-Goog-Generation")
		case op == "objects.delete" && answer.StatusCode != http.StatusNoContent && answer.ContentLength != 0:
			return g.Foreign(answer, "a deletion is answered with content")
		case op != download && op != "objects.delete" && !isJSON(answer):
			return g.Foreign(answer, "it is not JSON")
		}
		return nil
	}
	return g
}

// lacksOfSession is Lacks for the requests of a resumable upload: the answer to the first has
// the URL for the chunks, which carry the login and so must go to no other host, and the answer
// to each but the last has the range that the service has received.
func lacksOfSession(g *bucket.Genuine, r *http.Request, answer *http.Response) error {
	switch place, err := url.Parse(answer.Header.Get("Location")); {
	case answer.Header.Get("X-Http-Status-Code-Override") == "308", isJSON(answer):
		return nil
	case r.URL.Query().Has("upload_id"):
		return g.Foreign(answer, "it is not JSON")
	case err != nil || place.Scheme != r.URL.Scheme || place.Host != r.URL.Host || !place.Query().Has("upload_id"):
		return g.Foreign(answer, "there is no Location of the service's")
	}
	return nil
}

func isJSON(answer *http.Response) bool {
	return strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json")
}

// sender is a transport that adds the login to requests.
type sender struct {
	login *bucket.Login[string] // nil: anonymous
	inner http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if s.login != nil {
		token, err := s.login.Get(r.Context())
		if err != nil {
			if r.Body != nil {
				r.Body.Close()
			}
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return s.inner.RoundTrip(r)
}

// preconditions are a condition on the object that a request changes, as options.
func preconditions(c providers.Condition) ([]googleapi.CallOption, error) {
	switch c.Kind {
	case providers.ConditionAbsent:
		return []googleapi.CallOption{googleapi.QueryParameter("ifGenerationMatch", "0")}, nil
	case providers.ConditionVersion:
		return pinned("if", c.Version.ETag)
	}
	return nil, nil
}

// pinned asks for one version.
func pinned(prefix, etag string) ([]googleapi.CallOption, error) {
	generation, metageneration, err := cutETag(etag)
	return []googleapi.CallOption{
		googleapi.QueryParameter(prefix+"GenerationMatch", text(generation)), googleapi.QueryParameter(prefix+"MetagenerationMatch", text(metageneration)),
	}, err
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

func etagOf(generation, metageneration int64) string {
	return text(generation) + "." + text(metageneration)
}

// cutETag is an ETag's generation and metageneration. An ETag of another form belongs to no
// object of this service, and a generation 0 would require absence.
func cutETag(etag string) (generation, metageneration int64, err error) {
	_, err = fmt.Sscanf(etag, "%d.%d", &generation, &metageneration)
	if err != nil || generation <= 0 || metageneration <= 0 || etagOf(generation, metageneration) != etag {
		return 0, 0, &bucket.Fault{Kind: providers.ErrConflict, Err: fmt.Errorf("version %q is none of this service", etag)}
	}
	return generation, metageneration, nil
}
