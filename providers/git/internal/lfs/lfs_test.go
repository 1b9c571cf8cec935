package lfs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/space"
)

func writes(content string) func(io.Writer) error {
	return func(w io.Writer) error { return assert.ErrOf(io.WriteString(w, content)) }
}

// What is put is there under its hash until nobody wants it and nobody holds it; what
// could not be put leaves nothing.
func TestStore(t *testing.T) {
	dir, tmp := t.TempDir()+"/lfs", t.TempDir()
	s := lfs.OpenStore(dir, tmp, space.Disk{})
	none := assert.Of(s.Empty()).OK(t)
	assert.True(t, none, "new", none)
	broken := errors.New("broken")
	if _, _, err := s.Put(func(w io.Writer) error { _, _ = io.WriteString(w, "half"); return broken }); !errors.Is(err, broken) {
		t.Errorf("a body that fails: %v", err)
	}
	p, release, err := s.Put(writes("content"))
	assert.Must(t, err == nil && p.Size == 7 && s.Has(p), "put", p, err)
	tier.OnDisk(t, dir+"/"+p.OID)
	again, releaseAgain, err := s.Put(writes("content"))
	assert.True(t, err == nil && again == p, "put again", again, err)
	for i, end := range []func(){release, release, releaseAgain} {
		err := errors.Join(s.Sync(), s.Sweep(nil))
		assert.True(t, err == nil && s.Has(p), i, "held, and swept:", err)
		end()
	}
	f := assert.Of(lfs.OpenStore(dir, tmp, space.Disk{}).Open(p)).OK(t)
	defer f.Close()
	assert.Of(io.ReadAll(f)).Equal(t, []byte("content"))
	err = s.Sweep(map[string]bool{p.OID: true})
	assert.True(t, err == nil && s.Has(p), "wanted, and swept:", err)
	err = s.Sweep(nil)
	assert.True(t, err == nil && !s.Has(p), "not swept:", err)
	assert.Equal(t, len(assert.Of(os.ReadDir(tmp)).OK(t)), 0, "left")
}

// A redirect to another server takes nothing along that was meant for the first, and
// none leads away from TLS.
func TestRedirects(t *testing.T) {
	var seen http.Header
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		fmt.Fprint(w, "content")
	}))
	defer storage.Close()
	const sum = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
	var api *httptest.Server
	api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/batch") {
			w.Header().Set("Content-Type", "application/vnd.git-lfs+json; charset=utf-8")
			fmt.Fprintf(w, `{"objects":[{"oid":%q,"size":7,"actions":{"download":{"href":%q,"header":{"Authorization":"RemoteAuth x","X-Secret":"y"},"expires_at":"2100-01-01T00:00:00Z"}}}]}`,
				sum, api.URL+"/object")
			return
		}
		http.Redirect(w, r, storage.URL+"/there?signature=hush", http.StatusFound)
	}))
	defer api.Close()
	open := func(transport http.RoundTripper) (string, error) {
		c := lfs.New(lfs.Options{Transport: transport, Find: func(context.Context, string) (lfs.Endpoint, error) { return lfs.Endpoint{URL: api.URL}, nil }})
		body, err := c.Open(t.Context(), lfs.Pointer{OID: sum, Size: 7}, 0, 7)
		if err != nil {
			return "", err
		}
		defer body.Close()
		got, err := io.ReadAll(body)
		return string(got), err
	}
	assert.Of(open(nil)).Equal(t, "content")
	assert.True(t, seen.Get("Authorization") == "" && seen.Get("X-Secret") == "" && seen.Get("User-Agent") != "", "the other server saw", seen)
	_, err := open(refusing{storage.URL})
	if !errors.Is(err, providers.ErrPermission) || !strings.Contains(err.Error(), storage.URL) || strings.Contains(err.Error(), "hush") {
		t.Errorf("a server that is not granted: %v", err)
	}
}

// refusing is a transport that does not go to a server.
type refusing struct{ origin string }

func (t refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.String(), t.origin) {
		return nil, fmt.Errorf("not listed: %w", providers.ErrPermission)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func TestParseEndpoint(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]string{
		`{"href":"https://lfs.acme.test/r","header":{"Authorization":"RemoteAuth x"},"expires_in":60}`: "https://lfs.acme.test/r RemoteAuth x 1m0s",
		`{"href":"https://lfs.acme.test/r","expires_at":"2026-01-02T03:05:05Z"}`:                       "https://lfs.acme.test/r  1m0s",
		`{"href":"https://lfs.acme.test/r","expires_in":60,"expires_at":"2030-01-02T03:05:05Z"}`:       "https://lfs.acme.test/r  1m0s",
		`{"href":"/r"}`: "", `{"href":"file:///etc/passwd"}`: "", `{}`: "", `no`: "", `{"href":"https://x","expires_in":"1"}`: "",
	} {
		e, err := lfs.ParseEndpoint([]byte(text), now)
		got := fmt.Sprintf("%s %s %v", e.URL, e.Header["Authorization"], e.Until.Sub(now))
		if text == "no" && !errors.Is(err, providers.ErrUnavailable) { // no git server has said it
			t.Errorf("%s: %v", text, err)
		}
		assert.True(t, (err == nil) == (want != "") && (err != nil || got == want), text, got, err, "want", want)
	}
}
