package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// answering is a service with one answer.
type answering func(r *http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	return a(r)
}

// replaced is a provider whose service has another transport from now on.
func replaced(t *testing.T, transport http.RoundTripper) *Provider {
	t.Helper()
	p := openFake(t, newFake(), nil)
	p.Store.way.Inner = transport
	return p
}

// Each row by the answer that leads to it.
func TestErrorTable(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{404, "NoSuchKey", providers.ErrNotExist}, {404, "SomethingNew", providers.ErrUnavailable}, {404, "", providers.ErrUnavailable},
		{403, "XAdminUserNotFound", providers.ErrUnauthenticated}, {404, "NoSuchBucket", providers.ErrUnavailable}, {403, "AccessDenied", providers.ErrPermission},
		{403, "AllAccessDisabled", providers.ErrPermission}, {403, "SomethingNew", providers.ErrPermission},
		{403, "InvalidAccessKeyId", providers.ErrUnauthenticated}, {403, "SignatureDoesNotMatch", providers.ErrUnauthenticated},
		{400, "ExpiredToken", providers.ErrUnauthenticated}, {403, "RequestTimeTooSkewed", providers.ErrUnauthenticated},
		{401, "SomethingNew", providers.ErrUnauthenticated}, {412, "PreconditionFailed", providers.ErrConflict},
		{503, "SlowDown", providers.ErrUnavailable}, {500, "InternalError", providers.ErrUnavailable}, {502, "", providers.ErrUnavailable},
		{429, "TooManyRequests", providers.ErrUnavailable}, {400, "RequestTimeout", providers.ErrUnavailable},
		{307, "TemporaryRedirect", providers.ErrUnavailable}, {301, "PermanentRedirect", providers.ErrInvalid},
		{400, "EntityTooLarge", providers.ErrTooLarge}, {400, "MetadataTooLarge", providers.ErrTooLarge},
		{400, "KeyTooLongError", providers.ErrNameTooLong}, {403, "QuotaExceeded", providers.ErrQuota},
		{507, "XMinioStorageFull", providers.ErrQuota}, {507, "", providers.ErrQuota}, {501, "NotImplemented", providers.ErrUnsupported},
		{400, "SomethingNew", providers.ErrInvalid}, {400, "BadDigest", providers.ErrCorrupt},
	} {
		p := replaced(t, answering(func(r *http.Request) (*http.Response, error) { return refuse(r, c.status, c.code), nil }))
		_, err := p.Write(t.Context(), providers.MustLocator("a"), providers.String("x"), providers.WriteOptions{If: providers.Unconditional()})
		var e *providers.Error
		kind := providers.KindOf(err).Err
		assert.True(t, errors.Is(kind, c.want) && errors.As(err, &e) && (c.code == "" || e.Code == c.code), c.status, c.code, "got", err, "of kind", kind, "want", c.want)
	}
}

// The status of a refusal whose reason is cut off means nothing: what it refuses is sent again.
func TestCutRefusal(t *testing.T) {
	for _, status := range []int{400, 403, 404, 405, 409, 412, 501} {
		p := replaced(t, answering(func(r *http.Request) (*http.Response, error) {
			a := refuse(r, status, "AccessDenied")
			a.Body = io.NopCloser(io.MultiReader(strings.NewReader("<Error><Code>Signat"), iotest.ErrReader(io.ErrUnexpectedEOF)))
			return a, nil
		}))
		_, err := p.Write(t.Context(), providers.MustLocator("a"), providers.String("x"), providers.WriteOptions{If: providers.Unconditional()})
		kind := providers.KindOf(err).Err
		assert.Is(t, kind, providers.ErrUnavailable, status, "of kind", kind, err)
	}
}

// Without an answer the service is not available, and it was tried once.
func TestNetworkErrors(t *testing.T) {
	for _, c := range []struct{ cause, want error }{
		{syscall.ECONNRESET, providers.ErrUnavailable}, {syscall.ECONNREFUSED, providers.ErrUnavailable}, {io.EOF, providers.ErrUnavailable},
		{&net.DNSError{Err: "no such host", IsNotFound: true}, providers.ErrUnavailable}, {context.DeadlineExceeded, providers.ErrUnavailable},
		{syscall.EACCES, providers.ErrUnavailable},                                        // a firewall
		{fmt.Errorf("not granted: %w", providers.ErrPermission), providers.ErrPermission}, // the transport's own refusal
	} {
		tries := 0
		p := replaced(t, answering(func(*http.Request) (*http.Response, error) {
			tries++
			return nil, &net.OpError{Op: "dial", Err: c.cause}
		}))
		_, err := p.List(t.Context(), providers.Locator{}, providers.ListOptions{})
		var e *providers.Error
		assert.True(t, errors.As(err, &e) && errors.Is(e.Kind, c.want) && tries == 1, c.cause, "got", err, "in", tries, "tries, want", c.want)
		if c.cause != context.DeadlineExceeded { // which the SDK says
			assert.Message(t, err.Error(), c.cause)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(r *http.Request) *http.Response
		want   error
		text   string
	}{
		"no bucket": {func(r *http.Request) *http.Response { return refuse(r, 404, "NoSuchBucket") }, providers.ErrNotExist, `bucket "b"`},
		"another region": {func(r *http.Request) *http.Response {
			a := refuse(r, 301, "PermanentRedirect")
			a.Header.Set("X-Amz-Bucket-Region", "eu-west-1")
			return a
		}, providers.ErrInvalid, "eu-west-1"},
		"a clock that is wrong": {func(r *http.Request) *http.Response { return refuse(r, 403, "RequestTimeTooSkewed") }, providers.ErrUnauthenticated, "clock"},
		"no access":             {func(r *http.Request) *http.Response { return refuse(r, 403, "AccessDenied") }, providers.ErrPermission, "AccessDenied"},
	} {
		_, err := openFakeErr(t, answering(func(r *http.Request) (*http.Response, error) { return c.answer(r), nil }), nil)
		assert.True(t, errors.Is(err, c.want) && strings.Contains(err.Error(), c.text), name, err)
	}
}

// A HEAD is refused without a word why, and a clock that is wrong or a key that was changed must
// not pass for a lack of permission, which nobody tries again.
func TestRefusedHead(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{403, "RequestTimeTooSkewed", providers.ErrUnauthenticated}, {403, "SignatureDoesNotMatch", providers.ErrUnauthenticated},
		{400, "ExpiredToken", providers.ErrUnauthenticated}, {403, "AccessDenied", providers.ErrPermission}, {503, "SlowDown", providers.ErrUnavailable},
	} {
		p := replaced(t, answering(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodHead {
				return refuse(r, c.status, ""), nil
			}
			return refuse(r, c.status, c.code), nil
		}))
		assert.Is(t, assert.ErrOf(p.Stat(t.Context(), providers.MustLocator("a"))), c.want, c.status, c.code)
	}
	f := newFake()
	f.put("pre/a", "x", nil)
	p := openFake(t, f, nil)
	refused := func(r *http.Request) *http.Response { return refuse(r, 403, "") }
	busy := func(r *http.Request) *http.Response { return refuse(r, 503, "SlowDown") }
	for name, c := range map[string]struct {
		answers []func(r *http.Request) *http.Response // nil: the service's own
		want    error
	}{
		"where a LIST is allowed":       {[]func(r *http.Request) *http.Response{refused, nil, refused}, providers.ErrPermission},
		"what was over before the LIST": {[]func(r *http.Request) *http.Response{refused, nil, nil}, nil},
		"what nothing is known of":      {[]func(r *http.Request) *http.Response{refused, busy, busy, busy, busy}, providers.ErrUnavailable},
	} {
		f.queue = c.answers
		assert.Is(t, assert.ErrOf(p.Stat(t.Context(), loc("a"))), c.want, name)
		f.queue = nil
	}
}

// Content that ends early never ends well, whether the service said its length or not.
func TestHalfBody(t *testing.T) {
	for _, length := range []int64{10, -1} {
		p := replaced(t, answering(func(r *http.Request) (*http.Response, error) {
			a := answer(r, 200, []byte("half"), http.Header{"Etag": {`"e"`}, "Last-Modified": {"Mon, 02 Jan 2006 15:04:05 GMT"}, "Content-Length": {"10"}})
			a.ContentLength = length
			return a, nil
		}))
		c := assert.Of(p.Read(t.Context(), providers.MustLocator("a"), providers.ReadOptions{})).OK(t)
		got, err := io.ReadAll(c.Body)
		assert.Is(t, err, providers.ErrUnavailable, "read", got, err)
		c.Body.Close()
	}
}
