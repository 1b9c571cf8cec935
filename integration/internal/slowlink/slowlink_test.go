package slowlink

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

const latency = 40 * time.Millisecond

// linked is a connection through a link to what serve does.
func linked(t *testing.T, serve func(net.Conn)) net.Conn {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		serve(c)
	}()
	l, err := Listen(t.Context(), listener.Addr().String(), latency)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func echo(c net.Conn) { _, _ = io.Copy(c, c) }

// Each of many requests costs one latency, and not much more.
func TestRequestTakesOneLatency(t *testing.T) {
	c := linked(t, echo)
	const requests = 10
	start := time.Now()
	for range requests {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start) / requests; took < latency || took > 2*latency {
		t.Errorf("a request took %v, want about %v", took, latency)
	}
}

// A large body takes the latency once, and arrives whole with its end.
func TestThroughputIsNotLimited(t *testing.T) {
	want := make([]byte, 64<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(want)
	start := time.Now()
	c := linked(t, func(c net.Conn) { _, _ = c.Write(want) })
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(want), err)
	}
	// A proxy that sleeps for each chunk takes 20 s.
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// What one side has closed for writing is still answered.
func TestHalfClose(t *testing.T) {
	c := linked(t, func(c net.Conn) {
		all, _ := io.ReadAll(c)
		_, _ = c.Write(all)
	})
	if _, err := c.Write([]byte("all")); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || string(got) != "all" {
		t.Errorf("got %q, %v", got, err)
	}
}
