package remote

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"

	"github.com/wsmount/wsmount/providers"
)

// genuine is a transport that believes a success only if it is of git's protocol over HTTP
// (gitprotocol-http): each answer has a content type of its own, and an advertisement begins with
// the name of the service. A login page, a maintenance page or a proxy answers each request with
// 200 and a text of its own: taken as it is, a repository is empty or missing. Such an answer
// becomes an error, as if there had been none.
type genuine struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (g genuine) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := g.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := check(asked(r), answer); err != nil {
		answer.Body.Close()
		return nil, err
	}
	return answer, nil
}

// asked is the first request of a chain of redirects.
func asked(r *http.Request) *http.Request {
	for r.Response != nil && r.Response.Request != nil {
		r = r.Response.Request
	}
	return r
}

// foreign is the error for an answer that is not git's.
func foreign(answer *http.Response, format string, args ...any) error {
	return &Error{Kind: providers.ErrUnavailable, Code: "foreign", Err: fmt.Errorf(
		"the answer is not git's, but that of a login page, a proxy or the like: status %d, type %q, %s",
		answer.StatusCode, answer.Header.Get("Content-Type"), fmt.Sprintf(format, args...))}
}

// check examines successes.
func check(r *http.Request, answer *http.Response) error {
	if answer.StatusCode/100 != 2 {
		return nil // the error table's
	}
	service := r.URL.Query().Get("service")
	want := "application/x-" + service + "-advertisement"
	if r.Method == http.MethodPost {
		want = "application/x-" + path.Base(r.URL.Path) + "-result"
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != want || answer.StatusCode != http.StatusOK {
		return foreign(answer, "and not %s", want)
	}
	if r.Method == http.MethodPost {
		return nil
	}
	first := fmt.Sprintf("%04x# service=%s", len("0000# service=\n")+len(service), service)
	body := bufio.NewReader(answer.Body)
	begin, _ := body.Peek(len(first)) // the bytes that came are enough, whatever the error
	second := r.Header.Get("Git-Protocol") == askV2 && bytes.HasPrefix(begin, []byte("000eversion 2\n"))
	if !bytes.Equal(begin, []byte(first)) && !second && !(len(begin) > 8 && string(begin[4:8]) == "ERR ") {
		return foreign(answer, "and does not begin with the name of the service")
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{body, answer.Body}
	return nil
}
