package bucket

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/wsmount/wsmount/providers"
)

// Genuine is a transport that believes a success only if it has the marks that the service always
// sends. A login page, a maintenance page or a proxy answers each request with 200 and a text of
// its own: taken as it is, a PUT has stored nothing, a listing is empty, and an object has the
// page as its content. Such an answer becomes an error, as if there had been none, so that the
// request is tried again and nothing counts as stored.
//
// A page may be a file with an ETag and a date. Therefore a service that has named a
// request names all of them. Of one that names none, only such a page in the place of an
// object's head or content passes.
type Genuine struct {
	Inner   http.RoundTripper
	Service string // as people call it
	Header  string // in which it names a request
	// Lacks returns a Foreign if a success is not the service's, else nil.
	Lacks func(*http.Request, *http.Response) error

	names atomic.Bool // the service gives each answer the name of its request
}

// RoundTrip implements http.RoundTripper.
func (g *Genuine) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := g.Inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := g.check(r, answer); err != nil {
		answer.Body.Close()
		return nil, err
	}
	return answer, nil
}

// check examines successes. Other answers are left to the error table, but for a HEAD's 404,
// which tells by its status alone that nothing is there.
func (g *Genuine) check(r *http.Request, answer *http.Response) error {
	success := answer.StatusCode/100 == 2
	missing := answer.StatusCode == http.StatusNotFound && r.Method == http.MethodHead
	if !success && !missing {
		return nil
	}
	named := answer.Header.Get(g.Header) != ""
	if g.names.Load() && !named {
		return g.Foreign(answer, "there is no %s", g.Header)
	}
	if missing {
		return nil
	}
	if err := g.Lacks(r, answer); err != nil {
		return err
	}
	if named {
		g.names.Store(true)
	}
	return nil
}

// Foreign is the error for an answer that is not the service's.
func (g *Genuine) Foreign(answer *http.Response, format string, args ...any) error {
	return &Fault{Kind: providers.ErrUnavailable, Err: fmt.Errorf("the answer is not from %s, but from a login page, a proxy or the like: status %d, type %q, and %s",
		g.Service, answer.StatusCode, answer.Header.Get("Content-Type"), fmt.Sprintf(format, args...))}
}

// Headers is the error for an answer that lacks one of the headers; nil: it has them.
func (g *Genuine) Headers(answer *http.Response, needed ...string) error {
	for _, header := range needed {
		if answer.Header.Get(header) == "" {
			return g.Foreign(answer, "there is no %s", header)
		}
	}
	return nil
}

// Made is Headers for the answer to a change, which may be a page.
func (g *Genuine) Made(answer *http.Response, needed ...string) error {
	if answer.ContentLength != 0 && strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
		return g.Foreign(answer, "a change is answered with a page")
	}
	return g.Headers(answer, needed...)
}

// Head is Headers for the answer to a HEAD, which has a length.
func (g *Genuine) Head(answer *http.Response, needed ...string) error {
	if answer.ContentLength < 0 {
		return g.Foreign(answer, "there is no Content-Length")
	}
	return g.Headers(answer, needed...)
}

// Root is the root element of an answer's XML document, which must be one of some. The answer can
// still be read.
func (g *Genuine) Root(answer *http.Response, some ...string) (string, error) {
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err // it has broken off
	}
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	for d := xml.NewDecoder(bytes.NewReader(body)); ; {
		token, err := d.Token()
		if err != nil {
			return "", g.Foreign(answer, "there is no %s: %v", some[0], err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		root := start.Name.Local
		for _, one := range some {
			switch {
			case root != one:
			case !isWhole(body, root):
				return "", g.Foreign(answer, "the document %s has no end", root)
			default:
				return root, nil
			}
		}
		return "", g.Foreign(answer, "the document is %s and not %s", root, some[0])
	}
}

// isWhole reports whether a document with that root has its end.
func isWhole(body []byte, root string) bool {
	end := strings.TrimSpace(string(body[max(0, len(body)-200):]))
	if strings.HasSuffix(end, "/>") && bytes.Count(body, []byte("<")) <= 2 { // it is empty, with a header or without
		return true
	}
	end, ok := strings.CutSuffix(end, ">")
	end = strings.TrimSpace(end)
	return ok && (strings.HasSuffix(end, "</"+root) || strings.HasSuffix(end, ":"+root))
}
