package ui

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/control"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/integration/assert"
)

// A recorder is the connection of a page that listens.
type recorder struct {
	mu sync.Mutex // guards text
	bytes.Buffer
}

func (r *recorder) Header() http.Header { return http.Header{} }
func (r *recorder) WriteHeader(int)     {}
func (r *recorder) Flush()              {}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Buffer.Write(b)
}

// heard is what came since it was asked last.
func (r *recorder) heard() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.Next(r.Len()))
}

// A page that is open hears of each change within a second, and of nothing else; the mount is
// looked at once for all pages, and not at all for none.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := f.serve(t).s
		ctx, cancel := context.WithCancel(t.Context())
		go s.live.watch(ctx, lookEvery, s.look)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, f.looked(), 0, "looks for no page")

		open := func(seen string) *recorder {
			w := &recorder{}
			go s.stream(w, httptest.NewRequestWithContext(ctx, "GET", "/live?seen="+seen, nil))
			synctest.Wait()
			return w
		}
		word := seen(f.status, nil)
		change := func() string { return fmt.Sprintf("event: change\ndata: %s\n\n", s.look(ctx)) }
		one, two := open(word), open("older")
		assert.Equal(t, one.heard(), ": listening\n\n", "a page that is new")
		assert.Equal(t, two.heard(), ": listening\n\n"+change(), "a page that is not")

		before := f.looked()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, one.heard()+two.heard(), "", "where nothing changes")
		assert.Equal(t, f.looked()-before, 5, "looks in five seconds, for two pages")

		copied := *f.status.Parts[0].Copy
		copied.Requests = map[string]control.Requests{"PUT": {Count: 1}}
		f.becomes(func() {
			f.status.Taken, f.status.Operations, f.status.Parts[0].Inodes, f.status.Parts[0].Copy = began, 99, 5, &copied
		})
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, one.heard()+two.heard(), "", "what changes all the time")
		for _, does := range []func(){
			func() { f.status.Parts[0].Unsaved.Files++ },
			func() { f.status.Parts[1].Copy = &control.Copy{HistoryVersions: 1} },
			func() { f.reach = exit.New(exit.Unresolvable, "no workspace is mounted") },
			func() { f.reach = exit.New(exit.Denied, "another workspace is mounted") },
			func() { f.reach = nil },
		} {
			f.becomes(does)
			time.Sleep(lookEvery)
			synctest.Wait()
			assert.Equal(t, one.heard(), change(), "a change")
			assert.Equal(t, two.heard(), change(), "a change, at the other page")
		}
		time.Sleep(heartbeat)
		synctest.Wait()
		assert.Contains(t, one.heard(), ":\n\n", "a sign of life")

		for range mostListeners {
			open(word)
		}
		w := httptest.NewRecorder()
		s.stream(w, httptest.NewRequestWithContext(ctx, "GET", "/live", nil))
		assert.Equal(t, w.Code, 503, "too many pages")
		cancel()
		synctest.Wait()
		assert.False(t, s.live.listening(), "at the end")
	})
}

// What is served is so at this machine's own address until it is ended, streams too.
func TestServe(t *testing.T) {
	f := newFake()
	ctx, cancel := context.WithCancel(t.Context())
	urls, ended := make(chan string, 1), make(chan error, 1)
	m := Mount{"@acme/a", "/mnt/ws", f.reached}
	go func() {
		ended <- Serve(ctx, m, Options{Version: "v1", Ready: func(url string) error { urls <- url; return nil }})
	}()
	address := <-urls
	jar := assert.Of(cookiejar.New(nil)).OK(t)
	c := http.Client{Jar: jar}
	get := func(path string) *http.Response {
		t.Helper()
		resp := assert.Of(c.Get(path)).OK(t)
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	assert.Equal(t, get(address).StatusCode, 200, "the address")
	root, _, _ := strings.Cut(address, "open")
	assert.True(t, strings.HasPrefix(root, "http://127.0.0.1:"), root)
	assert.Equal(t, get(root).StatusCode, 200, "the page")
	var port int
	assert.OK(t, assert.ErrOf(fmt.Sscanf(root, "http://127.0.0.1:%d/", &port)))
	err := Serve(ctx, m, Options{Port: port})
	assert.True(t, err != nil && strings.Contains(err.Error(), "the page cannot be served: "), err)
	assert.Is(t, Serve(ctx, m, Options{Ready: func(string) error { return io.ErrClosedPipe }}), io.ErrClosedPipe, "what Ready says")

	stream := get(root + "live")
	cancel()
	assert.Is(t, <-ended, nil, "its end")
	_, err = io.ReadAll(stream.Body)
	assert.True(t, err != nil || stream.Body.Close() == nil, "the stream's end")
	assert.True(t, assert.ErrOf(c.Get(root)) != nil, "it is served on")
}
