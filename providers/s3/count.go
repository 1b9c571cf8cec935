package s3

import (
	"io"
	"maps"
	"net/http"
	"sync"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"

	"github.com/wsmount/wsmount/providers"
)

var _ providers.Meter = (*Provider)(nil)

// Requests implements providers.Meter. It counts what really went out, so a
// request that was repeated after a new login counts twice.
func (p *Provider) Requests() map[string]providers.Count { return p.meter.counts() }

// meter is a transport that counts.
type meter struct {
	inner http.RoundTripper

	mu   sync.Mutex // guards seen
	seen map[string]providers.Count
}

func (m *meter) counts() map[string]providers.Count {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.seen)
}

func (m *meter) add(op string, c providers.Count) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := m.seen[op]
	sum.Requests += c.Requests
	sum.Sent += c.Sent
	sum.Received += c.Received
	m.seen[op] = sum
}

// RoundTrip implements http.RoundTripper. A body counts as sent when its
// request is, also if the service stops listening half way.
func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	op := awsmiddleware.GetOperationName(r.Context())
	m.add(op, providers.Count{Requests: 1, Sent: max(0, r.ContentLength)})
	answer, err := m.inner.RoundTrip(r)
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
