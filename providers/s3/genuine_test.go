package s3

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// notS3 are answers with a status of success that S3 never gives to the verbs below.
var notS3 = map[string]func(r *http.Request) *http.Response{
	"login page": func(r *http.Request) *http.Response {
		return answer(r, 200, []byte("<html><body>Log in</body></html>"), http.Header{"Content-Type": {"text/html"}})
	},
	"page that is a file": func(r *http.Request) *http.Response {
		return answer(r, 200, []byte("<!DOCTYPE html>\n<p>We are back soon<br>"), http.Header{"Content-Type": {"text/html"},
			"Etag": {`"65a1-2f"`}, "Last-Modified": {"Mon, 02 Jan 2006 15:04:05 GMT"}})
	},
	"nothing": func(r *http.Request) *http.Response { return answer(r, 200, nil, nil) },
	"another verb's": func(r *http.Request) *http.Response {
		return answer(r, 200, []byte("<ListAllMyBucketsResult></ListAllMyBucketsResult>"), http.Header{"Content-Type": {"application/xml"}})
	},
}

// verbs are all that a provider asks of its service. Each is given an object "a" and
// the upload of another.
var verbs = map[string]func(t *testing.T, p *Provider, u providers.Upload) error{
	"write": func(t *testing.T, p *Provider, _ providers.Upload) error {
		return assert.ErrOf(p.Write(t.Context(), providers.MustLocator("new"), providers.String("x"), providers.WriteOptions{If: providers.IfAbsent()}))
	},
	"overwrite": func(t *testing.T, p *Provider, _ providers.Upload) error {
		return assert.ErrOf(p.Write(t.Context(), providers.MustLocator("a"), providers.String("x"), providers.WriteOptions{If: providers.Unconditional()}))
	},
	"stat": func(t *testing.T, p *Provider, _ providers.Upload) error {
		return assert.ErrOf(p.Stat(t.Context(), providers.MustLocator("a")))
	},
	"list": func(t *testing.T, p *Provider, _ providers.Upload) error {
		return assert.ErrOf(p.List(t.Context(), providers.Locator{}, providers.ListOptions{}))
	},
	"read": func(t *testing.T, p *Provider, _ providers.Upload) error {
		c, err := p.Read(t.Context(), providers.MustLocator("a"), providers.ReadOptions{})
		if err == nil {
			c.Body.Close()
		}
		return err
	},
	"delete": func(t *testing.T, p *Provider, _ providers.Upload) error {
		return p.Delete(t.Context(), providers.MustLocator("a"), providers.DeleteOptions{If: providers.Unconditional()})
	},
	"copy": func(t *testing.T, p *Provider, _ providers.Upload) error {
		return assert.ErrOf(p.Copy(t.Context(), providers.MustLocator("a"), providers.MustLocator("b"), providers.CopyOptions{If: providers.IfAbsent()}))
	},
	"mkdir": func(t *testing.T, p *Provider, _ providers.Upload) error {
		return assert.ErrOf(p.Mkdir(t.Context(), providers.MustLocator("d"), providers.MkdirOptions{}))
	},
	"start an upload": func(t *testing.T, p *Provider, _ providers.Upload) error {
		return assert.ErrOf(p.StartParts(t.Context(), providers.MustLocator("large"), providers.WriteOptions{If: providers.IfAbsent()}))
	},
	"part": func(t *testing.T, _ *Provider, u providers.Upload) error {
		return u.Part(t.Context(), 2, providers.String("y"))
	},
	"complete": func(t *testing.T, _ *Provider, u providers.Upload) error {
		return assert.ErrOf(u.Complete(t.Context()))
	},
	"abort uploads": func(t *testing.T, p *Provider, _ providers.Upload) error {
		return assert.ErrOf(p.AbortParts(t.Context(), p.Store.now()))
	},
}

// A success that the service never gives is no success: of each verb, for each such
// answer, at the first request as at later ones.
func TestAnswersThatAreNotS3s(t *testing.T) {
	for what, page := range notS3 {
		for name, verb := range verbs {
			t.Run(what+"/"+name, func(t *testing.T) {
				f := newFake()
				f.put("pre/a", "A", nil)
				p := opened(t, f)
				u := assert.Of(p.StartParts(t.Context(), providers.MustLocator("u"), providers.WriteOptions{If: providers.IfAbsent()})).OK(t)
				assert.OK(t, u.Part(t.Context(), 1, providers.String("x")))
				before := f.keys()
				p.Store.way.Inner = answering(func(r *http.Request) (*http.Response, error) { return page(r), nil })
				err := verb(t, p, u)
				assert.True(t, errors.Is(err, providers.ErrUnavailable) && strings.Contains(err.Error(), "not from S3"), "got", err, "want that the answer is not from S3")
				after := f.keys()
				assert.True(t, slices.Equal(before, after), "the bucket has", after, "and had", before)
			})
		}
	}
}

// A service that names no requests is believed, and pages in its place are not, but for
// one that looks like an object.
func TestServiceWithoutNames(t *testing.T) {
	for name, verb := range verbs {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("pre/a", "A", nil)
			p := openFake(t, f, nil)
			u := assert.Of(p.StartParts(t.Context(), providers.MustLocator("u"), providers.WriteOptions{If: providers.IfAbsent()})).OK(t)
			assert.OK(t, u.Part(t.Context(), 1, providers.String("x")))
			before := f.keys()
			for what, page := range notS3 {
				if what == "page that is a file" && slices.Contains([]string{"stat", "read", "mkdir"}, name) { // which look first
					continue
				}
				p.Store.way.Inner = answering(func(r *http.Request) (*http.Response, error) { return page(r), nil })
				if err := verb(t, p, u); !errors.Is(err, providers.ErrUnavailable) || !strings.Contains(err.Error(), "not from S3") {
					t.Errorf("%s: got %v, want that the answer is not from S3", what, err)
				}
			}
			after := f.keys()
			assert.True(t, slices.Equal(before, after), "the bucket has", after, "and had", before)
			p.Store.way.Inner = f
			assert.Is(t, verb(t, p, u), nil, "the service itself")
		})
	}
}

// opened is a provider of a service, which names its requests.
func opened(t *testing.T, service http.RoundTripper) *Provider {
	t.Helper()
	return assert.Of(openFakeErr(t, naming{service}, nil)).OK(t)
}

// naming is a service that names each request, as S3 does.
type naming struct{ inner http.RoundTripper }

func (n naming) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := n.inner.RoundTrip(r)
	if err == nil {
		a.Header.Set(requestName, "1")
	}
	return a, err
}

// A page at the first request keeps a mount from beginning, whatever it looks like.
func TestOpenOnAnotherService(t *testing.T) {
	for what, page := range notS3 {
		t.Run(what, func(t *testing.T) {
			_, err := openFakeErr(t, answering(func(r *http.Request) (*http.Response, error) { return page(r), nil }), nil)
			assert.Is(t, err, providers.ErrUnavailable, "want that it is not available")
		})
	}
}

// Documents are S3's when they have the root that belongs to the operation, and an end.
func TestDocuments(t *testing.T) {
	for _, c := range []struct {
		body string
		ok   bool
	}{
		{"<ListBucketResult></ListBucketResult>", true},
		{"<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"><Name>b</Name></ListBucketResult>\n", true},
		{"<s3:ListBucketResult xmlns:s3=\"x\"><s3:Name>b</s3:Name></s3:ListBucketResult >", true},
		{"<?xml version=\"1.0\"?><ListBucketResult/>", true},
		{"<Error><Code>InternalError</Code></Error>", true},
		{"", false}, {"{}", false}, {"<html/>", false},
		{"<ListBucketResult><Name>b</Name>", false},
		{"<ListBucketResult><Contents><Key>a</Key></Contents><Contents/>", false},
	} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://fake.invalid", nil)
		err := isDocument(genuine(nil), answer(r, 200, []byte(c.body), nil), "ListBucketResult")
		assert.True(t, (err == nil) == c.ok, c.body, "want that it is one", c.ok, err)
	}
}

// What is answered to a HEAD with 404 has no text: it must be the service's at least.
func TestMissingByAnother(t *testing.T) {
	p := opened(t, newFake())
	for _, named := range []bool{true, false} {
		p.Store.way.Inner = answering(func(r *http.Request) (*http.Response, error) {
			a := answer(r, 404, nil, nil)
			if named {
				a.Header.Set(requestName, "1")
			}
			return a, nil
		})
		_, err := p.Store.Head(t.Context(), "pre/a")
		want := map[bool]error{true: providers.ErrNotExist, false: providers.ErrUnavailable}[named]
		assert.Is(t, err, want, "named", named)
	}
}
