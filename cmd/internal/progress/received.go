package progress

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/wsmount/wsmount/cmd/internal/bytesize"
	"github.com/wsmount/wsmount/cmd/internal/screen"
	"github.com/wsmount/wsmount/cmd/internal/waiting"
	"github.com/wsmount/wsmount/cmd/internal/wrap"
)

// Counted adds to n what the answers to requests bring.
func Counted(t http.RoundTripper, n *atomic.Int64) http.RoundTripper { return counted{t, n} }

type counted struct {
	http.RoundTripper
	n *atomic.Int64
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
	n *atomic.Int64
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}

// Receiving is waiting.For something that brings bytes here, of which nobody knows how many
// there are: it says how many came, and how fast, until done is called.
func Receiving(what string, received *atomic.Int64) (done func()) {
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
				rewrite("wsmount: " + wrap.OneLine(what) + receivedText(received.Load(), now.Sub(began)))
				shown = true
			}
		}
	}()
	return func() { close(stop); <-ended }
}

func receivedText(n int64, took time.Duration) string {
	if n == 0 {
		return " ..."
	}
	return ": " + bytesize.Text(n) + " received" + rate(n, 0, took)
}

// rewrite writes the line of the terminal anew, as far as there is room.
func rewrite(line string) {
	text := []rune(line)
	fmt.Fprintf(os.Stderr, "\r\x1b[K%s", string(text[:min(len(text), screen.Of(os.Stderr).Width-1)]))
}
