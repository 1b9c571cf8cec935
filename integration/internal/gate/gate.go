// Package gate stands before an object store, where each request can be
// seen, held up, answered by somebody else, or lose its answer.
//
// It knows HTTP and what the requests of S3, Azure and Google are for. It promises that without a
// [Guard] everything passes as it was signed, and that the service gets no
// request while [Gate.Alone] runs.
//
//	g := gate.Open(t, server.Endpoint)
//	// ask g.Endpoint
//	g.Set(func(w http.ResponseWriter, r *http.Request, pass http.Handler) { ... })
package gate

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A Gate is the way to a service.
type Gate struct {
	Endpoint string // to ask instead of the service's

	service, pass http.Handler // pass holds way
	guard         atomic.Pointer[Guard]
	way           *sync.RWMutex // of all gates of a service; held for reading by each request there
}

// A Guard decides what becomes of a request.
type Guard func(w http.ResponseWriter, r *http.Request, pass http.Handler)

// Open makes a gate before the service at endpoint until the test ends.
func Open(t testing.TB, endpoint string) *Gate {
	t.Helper()
	pass, err := To(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, pass, &sync.RWMutex{})
}

// Beside is another gate before the same service.
func (g *Gate) Beside(t testing.TB) *Gate { return open(t, g.service, g.way) }

func open(t testing.TB, pass http.Handler, way *sync.RWMutex) *Gate {
	g := &Gate{service: pass, way: way}
	g.pass = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.way.RLock()
		defer g.way.RUnlock()
		pass.ServeHTTP(w, r)
	})
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.Endpoint = server.URL
	return g
}

// To passes requests on to a service, as they were signed.
func To(endpoint string) (http.Handler, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host },
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}, nil
}

// Set puts a guard there; nil: everything passes.
func (g *Gate) Set(guard Guard) {
	if guard == nil {
		g.guard.Store(nil)
		return
	}
	g.guard.Store(&guard)
}

// Alone runs f while no request is at the service, and none gets there through
// any gate. f may pass requests on itself, by Now.
func (g *Gate) Alone(f func()) {
	g.way.Lock()
	defer g.way.Unlock()
	f()
}

// Now passes a request on while Alone runs.
func (g *Gate) Now(w http.ResponseWriter, r *http.Request) { g.service.ServeHTTP(w, r) }

// ServeHTTP implements http.Handler.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if guard := g.guard.Load(); guard != nil {
		(*guard)(w, r, g.pass)
		return
	}
	g.pass.ServeHTTP(w, r)
}

// Break ends a connection in place of an answer.
func Break() { panic(http.ErrAbortHandler) }

// Lose lets a request happen, and whoever asked hears nothing of it.
func Lose(r *http.Request, pass http.Handler) {
	pass.ServeHTTP(httptest.NewRecorder(), r)
	Break()
}

// Verb is what a request asks for: its method, LIST, COPY, or UPLOAD for all that
// is about an upload in parts. What makes an object is a PUT.
func Verb(r *http.Request) string {
	q := r.URL.Query()
	comp := q.Get("comp") // Azure's
	last := path.Base(r.URL.Path)
	switch {
	case q.Has("list-type"), comp == "list", r.Method == http.MethodGet && last == "o" && strings.HasPrefix(r.URL.Path, "/storage/"):
		return "LIST"
	case q.Has("uploads"), q.Has("uploadId"), comp == "block", comp == "blocklist", r.Method == http.MethodPost && last == "compose":
		return "UPLOAD"
	case r.Header.Get("X-Amz-Copy-Source") != "", r.Header.Get("X-Ms-Copy-Source") != "", strings.Contains(r.URL.Path, "/rewriteTo/"):
		return "COPY"
	case r.Method == http.MethodPost:
		return http.MethodPut
	}
	return r.Method
}
