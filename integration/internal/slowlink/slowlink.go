// Package slowlink makes a service of this machine as far away as one of a
// network: a TCP proxy that lets every byte arrive later.
//
// It knows nothing of what is sent. It promises that a request and its answer
// together take one latency longer, half each way, and that nothing else gets
// slower: bytes wait in a queue, so as many of them as fit are under way at
// once, and none is reordered or lost. Opening a connection costs nothing.
//
//	l, err := slowlink.Listen(ctx, "127.0.0.1:9000", 10*time.Millisecond)
//	defer l.Close()
//	// dial l.Addr
package slowlink

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	chunkSize  = 64 << 10
	queueBytes = 32 << 20 // under way in one direction: at 5 ms each, 6 GiB/s
)

// A Link is a running proxy.
type Link struct {
	Addr string // host and port to dial

	target   string
	half     time.Duration
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex // guards what follows
	closed bool
	open   map[net.Conn]bool
}

// Listen starts a proxy before target on a free port.
func Listen(ctx context.Context, target string, latency time.Duration) (*Link, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{Addr: listener.Addr().String(), target: target, half: latency / 2, listener: listener, open: map[net.Conn]bool{}}
	l.wg.Go(l.accept)
	return l, nil
}

// Close ends the proxy and every connection through it.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.mu.Lock()
	l.closed = true
	for c := range l.open {
		c.Close()
	}
	l.mu.Unlock()
	l.wg.Wait()
	return err
}

func (l *Link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.serve(near) })
	}
}

func (l *Link) serve(near net.Conn) {
	defer near.Close()
	far, err := new(net.Dialer).DialContext(context.Background(), "tcp", l.target)
	if err != nil {
		return
	}
	defer far.Close()
	if !l.keep(near, far) {
		return
	}
	defer l.drop(near, far)
	join(near, far, l.half)
}

// join carries both ways between two connections until both ways have ended.
// Every byte arrives late after it was sent.
func join(near, far net.Conn, late time.Duration) {
	var wg sync.WaitGroup
	wg.Go(func() { carry(far, near, late) })
	wg.Go(func() { carry(near, far, late) })
	wg.Wait()
}

// keep lets Close end the connections, unless it was called already.
func (l *Link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.open[c] = true
	}
	return !l.closed
}

func (l *Link) drop(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		delete(l.open, c)
	}
}

// A chunk is what was read at once, and when it shall arrive.
type chunk struct {
	data []byte
	due  time.Time
}

var buffers = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// carry moves bytes one way until either end is closed. An end of what is sent
// arrives late as well, behind the last byte.
func carry(to, from net.Conn, late time.Duration) {
	queue := make(chan chunk, queueBytes/chunkSize)
	var wg sync.WaitGroup
	wg.Go(func() { deliver(to, queue) })
	for {
		buf := buffers.Get().(*[chunkSize]byte)
		n, err := from.Read(buf[:])
		queue <- chunk{buf[:n], time.Now().Add(late)}
		if err != nil {
			break
		}
	}
	close(queue)
	wg.Wait()
}

// deliver writes each chunk when it is due. Of what cannot be written any more
// the rest is thrown away, and the sender is told by a closed connection.
func deliver(to net.Conn, queue <-chan chunk) {
	broken := false
	for c := range queue {
		if broken {
			continue
		}
		time.Sleep(time.Until(c.due))
		if _, err := to.Write(c.data); err != nil {
			to.Close()
			broken = true
		}
		buffers.Put((*[chunkSize]byte)(c.data[:chunkSize]))
	}
	if end, ok := to.(interface{ CloseWrite() error }); ok {
		_ = end.CloseWrite()
	}
}
