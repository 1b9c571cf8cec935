package progress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/screen"
	"github.com/wsmount/wsmount/cmd/internal/waiting"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

// Received counts data from services: bytes, of which they do not say how many there are, and
// the objects of clones, of which they do. The zero value has none; its methods may be called
// concurrently.
type Received struct{ bytes, objects, of atomic.Int64 }

// HTTP counts the bytes of the answers to requests.
func (r *Received) HTTP(t http.RoundTripper) http.RoundTripper { return counted{t, r} }

type counted struct {
	http.RoundTripper
	n *Received
}

func (t counted) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil && resp.Body != http.NoBody {
		resp.Body = countedBody{resp.Body, t.n}
	}
	return resp, err
}

type countedBody struct {
	io.ReadCloser
	n *Received
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.bytes.Add(int64(n))
	return n, err
}

// Dial counts the bytes from connections.
func (r *Received) Dial(dial func(context.Context, string) (net.Conn, error)) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, origin string) (net.Conn, error) {
		c, err := dial(ctx, origin)
		if err != nil {
			return nil, err
		}
		return countedConn{c, r}, nil
	}
}

type countedConn struct {
	net.Conn
	n *Received
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.bytes.Add(int64(n))
	return n, err
}

// Objects says how many of the objects of a clone came.
func (r *Received) Objects(done, total int) {
	r.of.Store(int64(total))
	r.objects.Store(int64(done))
}

// text is like ": 45% of 1200 objects, 8s left, 3.0 MiB received, 2.0 MiB/s": a narrow
// terminal cuts the least important part off.
func (r *Received) text(took time.Duration) string {
	bytes, done, total := r.bytes.Load(), r.objects.Load(), r.of.Load()
	if bytes == 0 && total == 0 {
		return " ..."
	}
	text := ": "
	if total > 0 {
		text += fmt.Sprintf("%d%% of %s%s, ", 100*min(done, total)/total, many(int(total), "object"), timeLeft(done, total-done, took))
	}
	return text + bytesize.Text(bytes) + " received" + speed(bytes, took)
}

// Receiving is waiting.For a download: it shows how many bytes came, how fast,
// and of clones how much of all that is, until done is called.
func Receiving(what string, received *Received) (done func()) {
	if s := screen.Of(os.Stderr); s.Width == 0 || screen.Dumb() {
		return waiting.For(what)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		began, shown := time.Now(), false
		for {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(os.Stderr, "\r\x1b[K")
				}
				return
			case now := <-tick.C:
				rewrite(wrap.OneLine(what) + received.text(now.Sub(began)))
				shown = true
			}
		}
	}()
	return func() { close(stop); <-ended }
}

// rewrite writes the line of the terminal anew, as far as there is room.
func rewrite(line string) {
	text := []rune(line)
	fmt.Fprintf(os.Stderr, "\r\x1b[K%s", string(text[:min(len(text), screen.Of(os.Stderr).Width-1)]))
}
