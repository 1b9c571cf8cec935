package netguard

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

func guard(t *testing.T, o Options) *Guard {
	t.Helper()
	return assert.Of(New(o)).OK(t)
}

func TestPatterns(t *testing.T) {
	for _, pattern := range []string{"https://s3.example.com", "http://127.0.0.1:9000/", "https://*.s3.example.com", "https://minio.corp 10.0.0.0/8",
		"https://minio.corp 10.0.0.7", "http://[::1]:9000", "ssh://git.example.com", "git://git.example.com 10.0.0.0/8"} {
		assert.Is(t, ValidatePattern(pattern), nil, pattern)
	}
	for why, pattern := range map[string]string{
		"everything": "https://*", "a whole top level domain": "https://*.com", "star inside": "https://a*.example.com",
		"no scheme": "s3.example.com", "file": "file:///etc/passwd", "path": "https://example.com/bucket", "query": "https://example.com?x=1",
		"user info": "https://user:hunter2@example.com", "ssh user": "ssh://git@example.com", "git path": "git://example.com/acme",
		"decimal address": "http://2130706433", "hex address": "http://0x7f000001", "short address": "http://127.1", "octal address": "http://0177.0.0.1",
		"port zero": "http://example.com:0", "port out of range": "http://example.com:70000",
		"not a network": "https://a.example 10.0.0.0/33", "bits below the mask": "https://a.example 10.0.0.1/8",
		"zone": "http://[fe80::1%25eth0]", "unicode host": "https://exämple.com", "empty": "  ",
	} {
		err := ValidatePattern(pattern)
		assert.True(t, err != nil, why, "is refused:", pattern)
		assert.False(t, strings.Contains(fmt.Sprint(err), "hunter2"), "the error shows a password:", err)
	}
}

func TestNewRefusesUnverifiedTLS(t *testing.T) {
	assert.True(t, assert.ErrOf(New(Options{TLS: &tls.Config{InsecureSkipVerify: true}})) != nil, "a configuration that skips verification was accepted")
}

// Each row names the attack that the check stops.
func TestCheck(t *testing.T) {
	g := guard(t, Options{Allow: []string{
		"https://s3.example.com", "https://*.s3.example.com", "http://127.0.0.1:9000", "ssh://git.example.com", "git://git.example.org"}})
	for _, c := range []struct {
		name, url string
		ok        bool
	}{
		{"granted", "https://s3.example.com/bucket/key?x=1", true},
		{"granted, default port written", "https://s3.example.com:443/", true},
		{"granted, case and trailing dot", "https://S3.Example.com./", true},
		{"bucket in front", "https://bucket.s3.example.com/key", true},
		{"mapped form of a listed address", "http://[::ffff:127.0.0.1]:9000/", true},
		{"ssh with the usual user", "ssh://git@git.example.com/acme/repo", true},
		{"git, default port written", "git://git.example.org:9418/acme/repo", true},
		{"two labels in front: another service", "https://a.b.s3.example.com/", false},
		{"name that only ends alike", "https://evils3.example.com/", false},
		{"name that only begins alike", "https://s3.example.com.evil.test/", false},
		{"downgrade to http", "http://s3.example.com/", false},
		{"other port", "https://s3.example.com:8443/", false},
		{"metadata service of the cloud", "http://169.254.169.254/latest/meta-data/", false},
		{"same port, other scheme", "https://127.0.0.1:9000/", false},
		{"other port on loopback", "http://127.0.0.1:22/", false},
		{"name for loopback", "http://localhost:9000/", false},
		{"decimal loopback", "http://2130706433:9000/", false},
		{"octal loopback", "http://0177.0.0.1:9000/", false},
		{"unspecified address", "http://0.0.0.0:9000/", false},
		{"mapped metadata address", "http://[::ffff:169.254.169.254]/", false},
		{"host in the user info", "https://s3.example.com@evil.test/", false},
		{"credentials in the URL", "https://key:secret@s3.example.com/", false},
		{"git with a user", "git://git@git.example.org/", false},
		{"git at another port", "git://git.example.org:22/", false},
		{"git where ssh is listed", "git://git.example.com:22/", false},
		{"git where http is listed", "git://127.0.0.1:9000/", false},
		{"password in ssh", "ssh://git:secret@git.example.com/", false},
		{"unicode that folds to ASCII", "https://s3.example.c\u217dom/", false},
		{"file", "file:///etc/passwd", false},
		{"no host", "https:///x", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := g.Check(assert.Of(url.Parse(c.url)).OK(t))
			assert.Must(t, (err == nil) == c.ok, "Check", c.url, c.ok, err)
			assert.False(t, err != nil && !errors.Is(err, ErrDenied), err, "is not ErrDenied")
			assert.False(t, err != nil && strings.Contains(err.Error(), "secret"), "the error shows a credential", err)
		})
	}
	assert.Is(t, g.Check(nil), ErrDenied, "nil")
	assert.Is(t, guard(t, Options{}).Check(&url.URL{Scheme: "https", Host: "example.com"}), ErrDenied, "the zero Options reach something")
}

func TestIsPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "64:ff9b::808:808": true, "2002:808:808::1": true,
		"127.0.0.1": false, "127.8.8.8": false, "0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false,
		"100.64.0.1": false, "169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.168.1.1": false, "224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false,
		"::1": false, "::": false, "::ffff:127.0.0.1": false, "::127.0.0.1": false, "::ffff:0:127.0.0.1": false,
		"fd00:ec2::254": false, "fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "ff02::1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "2002:7f00:1::": false, "2001::1": false,
		"172.32.0.1": true, "100.128.0.1": true, "11.0.0.1": true,
	} {
		assert.Equal(t, isPublic(netip.MustParseAddr(addr)), want, "isPublic", addr)
	}
	assert.False(t, isPublic(netip.Addr{}), "the zero address is public")
}

func port(t *testing.T, rawURL string) string {
	t.Helper()
	return assert.Of(url.Parse(rawURL)).OK(t).Port()
}

func get(g *Guard, o TransportOptions, u string) (string, error) {
	tr := g.Transport(o)
	c := &http.Client{Transport: tr}
	defer c.CloseIdleConnections()
	resp, err := c.Get(u)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func secretServer(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "inside") }))
	t.Cleanup(s.Close)
	return s
}

func TestListedLoopbackIsReached(t *testing.T) {
	s := secretServer(t)
	assert.Of(get(guard(t, Options{Allow: []string{s.URL}}), TransportOptions{}, s.URL+"/x")).Equal(t, "inside", "want what the listed server says")
}

// The attack: a listed name of the outside answers with an address of the
// inside, at once or on the second question.
func TestDNSRebinding(t *testing.T) {
	s := secretServer(t)
	p := port(t, s.URL)
	for _, c := range []struct {
		name          string
		allow         string
		first, second bool
	}{
		{"a public name leads inside", "http://cdn.example.test:" + p, false, false},
		{"another literal is listed, not this name", "http://127.0.0.1:" + p, false, false},
		{"the name lists another network", "http://cdn.example.test:" + p + " 10.0.0.0/8", false, false},
		{"the name lists the network of the first address", "http://cdn.example.test:" + p + " 127.0.0.0/31", true, false},
	} {
		r := &rebinder{answers: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}}
		g := guard(t, Options{Allow: []string{c.allow}, Resolver: r.resolver(t)})
		for _, ok := range []bool{c.first, c.second} {
			got, err := get(g, TransportOptions{}, "http://cdn.example.test:"+p+"/")
			assert.True(t, (err == nil && got == "inside") == ok && errors.Is(err, ErrDenied) != ok, c.name, "got", got, err, "want it to be reached:", ok)
		}
	}
}

func redirector(t *testing.T, to string) *httptest.Server {
	s := httptest.NewServer(http.RedirectHandler(to, http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	return s
}

// The attack: a granted server sends its client to where only the host may go.
func TestRedirects(t *testing.T) {
	inside := secretServer(t)
	for _, c := range []struct {
		name, to   string
		allowInner bool
		noFollow   bool
		ok         bool
	}{
		{"to the metadata service", "http://169.254.169.254/latest/meta-data/", false, false, false},
		{"to an unlisted port of a listed address", inside.URL, false, false, false},
		{"to a listed origin", inside.URL, true, false, true},
		{"to a listed origin, of a push", inside.URL, true, true, false},
		{"to a file", "file:///etc/passwd", false, false, false},
	} {
		first := redirector(t, c.to)
		allow := []string{first.URL}
		if c.allowInner {
			allow = append(allow, inside.URL)
		}
		got, err := get(guard(t, Options{Allow: allow}), TransportOptions{NoRedirects: c.noFollow}, first.URL)
		assert.False(t, c.ok && (err != nil || got != "inside"), c.name, got, "want it followed", err)
		assert.False(t, !c.ok && !errors.Is(err, ErrDenied), c.name, got, err)
	}
}

// The attack: one listed address, another virtual host behind it.
func TestHostHeader(t *testing.T) {
	s := secretServer(t)
	g := guard(t, Options{Allow: []string{s.URL}})
	r, _ := http.NewRequest("GET", s.URL, nil)
	r.Host = "admin.internal"
	assert.Is(t, assert.ErrOf(g.Transport(TransportOptions{}).RoundTrip(r)), ErrDenied)
}

func TestRefusedRequestClosesItsBody(t *testing.T) {
	b := &closing{}
	r, _ := http.NewRequest("PUT", "http://evil.test/", b)
	_, err := guard(t, Options{}).Transport(TransportOptions{}).RoundTrip(r)
	assert.True(t, errors.Is(err, ErrDenied) && b.closed && !b.read, "err", "closed", b.closed, "read", b.read, err)
}

type closing struct{ closed, read bool }

func (c *closing) Read([]byte) (int, error) { c.read = true; return 0, io.EOF }
func (c *closing) Close() error             { c.closed = true; return nil }

func TestProxy(t *testing.T) {
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		io.WriteString(w, "by proxy")
	}))
	defer proxy.Close()
	pu, _ := url.Parse(proxy.URL)
	inside := secretServer(t)
	allow := []string{"http://outside.example.test", inside.URL}

	t.Setenv("HTTP_PROXY", proxy.URL)
	r := &rebinder{answers: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}
	none, granted := guard(t, Options{Allow: allow, Resolver: r.resolver(t)}), guard(t, Options{Allow: allow, Proxy: pu})
	for _, c := range []struct {
		name  string
		guard *Guard
		url   string
		want  string // empty: denied
		asked string // of the proxy
	}{
		{"the environment is ignored", none, "http://outside.example.test/", "", ""},
		{"a granted one is used", granted, "http://outside.example.test/k", "by proxy", "http://outside.example.test/k"},
		{"it widens nothing", granted, "http://169.254.169.254/", "", ""},
		{"listed addresses go direct", granted, inside.URL, "inside", ""},
	} {
		asked = ""
		got, err := get(c.guard, TransportOptions{}, c.url)
		assert.True(t, got == c.want && asked == c.asked && errors.Is(err, ErrDenied) == (c.want == ""), c.name, "got", got, err, "and the proxy was asked", asked)
	}
}

func TestDialContext(t *testing.T) {
	s := secretServer(t)
	g := guard(t, Options{Allow: []string{s.URL}})
	u, _ := url.Parse(s.URL)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel() // nothing of this is to reach the network, however it goes
	for _, c := range []struct{ name, network, addr string }{
		{"unix socket", "unix", "/var/run/docker.sock"},
		{"udp to a listed address", "udp", u.Host},
		{"unlisted public address", "tcp", "8.8.8.8:443"},
		{"udp", "udp", "127.0.0.1:53"},
		{"unlisted", "tcp", "127.0.0.1:1"},
		{"no port", "tcp", "127.0.0.1"},
		{"odd notation", "tcp", "127.1:80"},
	} {
		assert.Is(t, assert.ErrOf(g.DialContext(cancelled, c.network, c.addr)), ErrDenied, c.name)
	}
	conn, err := g.DialContext(context.Background(), "tcp", net.JoinHostPort("::ffff:127.0.0.1", u.Port()))
	assert.OK(t, err, "the mapped form of a listed address")
	conn.Close()
}

func TestDenialIsToldAndHoldsNoSecret(t *testing.T) {
	var told *DeniedError
	var log bytes.Buffer
	g := guard(t, Options{OnDenied: func(d *DeniedError) { told = d }, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	u, _ := url.Parse("https://evil.test/path?X-Amz-Signature=hunter2")
	err := g.Check(u)
	assert.True(t, told != nil && told.Origin == "https://evil.test" && told.Hint != "", "told", told)
	all := log.String() + err.Error()
	assert.True(t, strings.Contains(all, "evil.test") && !strings.Contains(all, "hunter2"), "log and error", all)
}
