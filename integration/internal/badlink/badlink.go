// Package badlink puts a bad network, and a bad mood, before a service of this
// machine: what a network does to connections is toxiproxy's doing, and what a
// service answers instead of what it was asked for is a proxy's of this process.
//
// It knows toxiproxy's HTTP interface, and of what is sent no more than that it
// is HTTP. It promises that without a fault everything passes as it is.
//
//	l := badlink.Start(t, server.Endpoint)
//	// ask l.Addr
//	l.Break(badlink.Stall)
//	l.Mend()
//
// The program is bin/toxiproxy-server, which `make test` builds.
package badlink

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/integration/internal/gate"
	"github.com/wsmount/wsmount/integration/internal/harness"
	"github.com/wsmount/wsmount/integration/internal/port"
	"github.com/wsmount/wsmount/integration/internal/tied"
	"github.com/wsmount/wsmount/integration/tier"
)

// A Toxic is something that happens to each connection, in toxiproxy's words.
type Toxic struct {
	Type       string         `json:"type"`
	Stream     string         `json:"stream"` // "upstream": requests; "downstream": answers
	Attributes map[string]any `json:"attributes"`
}

// What networks do.
var (
	Reset       = []Toxic{{"reset_peer", "downstream", map[string]any{"timeout": 0}}}
	Stall       = []Toxic{{"timeout", "downstream", map[string]any{"timeout": 0}}, {"timeout", "upstream", map[string]any{"timeout": 0}}}
	HalfAnswer  = []Toxic{{"limit_data", "downstream", map[string]any{"bytes": 100}}}
	HalfRequest = []Toxic{{"limit_data", "upstream", map[string]any{"bytes": 300}}}
)

// An Answer is what a service says instead of doing what it was asked for.
type Answer struct {
	Status int
	Code   string // S3's
}

// A Link is the way to a service.
type Link struct {
	Addr string // host and port to ask

	t      testing.TB
	api    string
	answer atomic.Pointer[Answer]
}

// Start puts a link before the service at endpoint until the test ends.
func Start(t testing.TB, endpoint string) *Link {
	t.Helper()
	l := &Link{t: t}
	pass, err := gate.To(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	service := httptest.NewServer(l.through(pass))
	t.Cleanup(service.Close)
	l.Addr = l.hold() // also while it is Down
	l.launch()
	l.call("/proxies", map[string]any{"name": "link", "listen": l.Addr, "upstream": service.Listener.Addr().String(), "enabled": true}, nil)
	return l
}

// hold is an address that nobody else gets until the test ends.
func (l *Link) hold() string {
	l.t.Helper()
	held, err := port.Hold()
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(held.Close)
	return held.Addr
}

// through passes requests on, or answers them itself.
func (l *Link) through(pass http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := l.answer.Load()
		if a == nil {
			pass.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(a.Status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", a.Code)
	})
}

// launch runs toxiproxy until the test ends.
func (l *Link) launch() {
	l.t.Helper()
	binary := tier.RequireBuilt(l.t, "toxiproxy-server")
	api := l.hold()
	host, number, _ := net.SplitHostPort(api)
	cmd := exec.CommandContext(context.Background(), binary, "-host", host, "-port", number)
	ended, _, err := tied.Start(cmd, syscall.SIGKILL)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	l.api = "http://" + api
	harness.Eventually(l.t, "toxiproxy answers", func() bool { return l.ask("/version", nil, nil) == nil })
}

// Down refuses connections, and ends those that there are.
func (l *Link) Down() { l.call("/proxies/link", map[string]any{"enabled": false}, nil) }

// Break does something to all connections from now on.
func (l *Link) Break(toxics []Toxic) {
	for _, toxic := range toxics {
		l.call("/proxies/link/toxics", toxic, nil)
	}
}

// Say has every request answered so.
func (l *Link) Say(a Answer) { l.answer.Store(&a) }

// Mend ends all faults.
func (l *Link) Mend() {
	l.answer.Store(nil)
	l.call("/reset", map[string]any{}, nil)
}

func (l *Link) call(path string, in, out any) {
	l.t.Helper()
	if err := l.ask(path, in, out); err != nil {
		l.t.Fatal(err)
	}
}

// ask is a request to toxiproxy: a POST of in, or a GET without.
func (l *Link) ask(path string, in, out any) error {
	method, body := http.MethodGet, []byte(nil)
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(context.Background(), method, l.api+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("toxiproxy: %s: %s", answer.Status, text)
	case out != nil:
		return json.Unmarshal(text, out)
	}
	return nil
}
