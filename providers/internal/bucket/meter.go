package bucket

import (
	"io"
	"maps"
	"net/http"
	"sync"

	"github.com/wsmount/wsmount/providers"
)

// Meter is a transport that counts the requests that really go out, so a request that was
// repeated after a new login counts twice.
type Meter struct {
	Inner http.RoundTripper
	Name  func(*http.Request) string // the service's own name of a request

	mu   sync.Mutex // guards seen
	seen map[string]providers.Count
}

// Requests returns the counts for providers.Meter.
func (m *Meter) Requests() map[string]providers.Count {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.seen)
}

func (m *Meter) add(op string, c providers.Count) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = map[string]providers.Count{}
	}
	sum := m.seen[op]
	sum.Requests += c.Requests
	sum.Sent += c.Sent
	sum.Received += c.Received
	m.seen[op] = sum
}

// RoundTrip implements http.RoundTripper. A body counts as sent when its
// request is, also if the service stops listening half way; one whose size its request
// does not say, as it is read.
func (m *Meter) RoundTrip(r *http.Request) (*http.Response, error) {
	op := m.Name(r)
	m.add(op, providers.Count{Requests: 1, Sent: max(0, r.ContentLength)})
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength <= 0 {
		r = r.WithContext(r.Context())
		r.Body = &metered{r.Body, func(n int) { m.add(op, providers.Count{Sent: int64(n)}) }}
	}
	answer, err := m.Inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &metered{answer.Body, func(n int) { m.add(op, providers.Count{Received: int64(n)}) }}
	return answer, nil
}

type metered struct {
	io.ReadCloser
	count func(int)
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.ReadCloser.Read(b)
	m.count(n)
	return n, err
}
