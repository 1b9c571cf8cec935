package slowlink

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
)

const latency = 40 * time.Millisecond

// joined calls use with both ends of two connections that are joined, where
// time is nobody's but the link's: it passes only while everything waits.
func joined(t *testing.T, use func(near, far net.Conn)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		near, in := net.Pipe()
		out, far := net.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() { join(in, out, latency/2) })
		use(near, far)
		for _, c := range []net.Conn{near, in, out, far} {
			c.Close()
		}
		wg.Wait() // here time passes
	})
}

// Each of many requests costs one latency.
func TestRequestTakesOneLatency(t *testing.T) {
	joined(t, func(near, far net.Conn) {
		go func() { _, _ = io.Copy(far, far) }()
		for range 10 {
			start := time.Now()
			assert.OK(t, assert.ErrOf(near.Write([]byte("x"))))
			assert.OK(t, assert.ErrOf(io.ReadFull(near, make([]byte, 1))))
			assert.Equal(t, time.Since(start), latency, "a request took")
		}
	})
}

// A body of as many bytes as may be under way takes half a latency once, not
// for each of its chunks, and arrives whole.
func TestThroughputIsNotLimited(t *testing.T) {
	want := make([]byte, queueBytes)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(want)
	joined(t, func(near, far net.Conn) {
		start := time.Now()
		go func() { _, _ = far.Write(want) }()
		got := make([]byte, len(want))
		n, err := io.ReadFull(near, got)
		assert.Must(t, err == nil && bytes.Equal(got, want), n, "bytes of", len(want), err)
		assert.Equal(t, time.Since(start), latency/2, "took")
	})
}

// What one side has closed for writing is still answered, over TCP.
func TestHalfClose(t *testing.T) {
	listener := assert.Of(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")).OK(t)
	defer listener.Close()
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		all, _ := io.ReadAll(c)
		_, _ = c.Write(all)
	}()
	l := assert.Of(Listen(t.Context(), listener.Addr().String(), latency)).OK(t)
	defer l.Close()
	c := assert.Of(new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr)).OK(t)
	defer c.Close()
	assert.OK(t, assert.ErrOf(c.Write([]byte("all"))))
	assert.OK(t, c.(*net.TCPConn).CloseWrite())
	assert.Of(io.ReadAll(c)).Equal(t, []byte("all"))
}
