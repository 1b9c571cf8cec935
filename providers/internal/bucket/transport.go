package bucket

import (
	"net/http"
	"time"
)

// PlainTransport is what a driver sends its requests through when it was given nothing. It
// speaks HTTP/1.1: one stream per connection is what object stores are built for.
// Connections are kept for a burst of small requests, of which each is read in one piece.
func PlainTransport() *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConns: 256, MaxIdleConnsPerHost: 128, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second, ResponseHeaderTimeout: time.Minute,
		DisableCompression: true, ReadBufferSize: 16 << 10, Protocols: protocols,
	}
}
