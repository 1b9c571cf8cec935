package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/exactjson"
	"github.com/wsmount/wsmount/cmd/internal/exit"
	"github.com/wsmount/wsmount/cmd/internal/lifecycle"
)

// Client calls the control API of one mount. Its methods may be called concurrently. A
// daemon that does not answer is an *exit.Error with the code Unreachable. Calls do not
// wait for a daemon that is gone, or whose process is stopped. For one that runs,
// Status, Work, Debug and Metrics, which it answers without waiting for anything, wait
// up to AnswerLimit, and all other calls as long as ctx.
type Client struct {
	path string
	http http.Client
}

// NewClient returns a client for the socket of a mount. It does not connect yet.
func NewClient(socket string) *Client {
	return &Client{path: socket, http: http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, socket) },
	}}}
}

// Status asks for the status as it is now.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, AnswerLimit)
	defer cancel()
	return s, c.call(ctx, http.MethodGet, "/v1/status", nil, &s)
}

// Event emits an event and waits for the work that it starts.
func (c *Client) Event(ctx context.Context, r EventRequest) (out EventResult, err error) {
	return out, c.call(ctx, http.MethodPost, "/v1/event", r, &out)
}

// Unmount asks the daemon to take its mount away.
func (c *Client) Unmount(ctx context.Context, r UnmountRequest) (out UnmountResult, err error) {
	return out, c.call(ctx, http.MethodPost, "/v1/unmount", r, &out)
}

// Hold keeps a mount that ends with the last of its users, until release or the
// end of this process. An error means that it ends already.
func (c *Client) Hold(ctx context.Context) (release func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := c.do(ctx, http.MethodGet, "/v1/hold", nil)
	if err != nil {
		cancel()
		return nil, err
	}
	release = func() { cancel(); resp.Body.Close() }
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != heldLine+"\n" {
		release()
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return release, nil
}

// Debug asks for the data that only the daemon has.
func (c *Client) Debug(ctx context.Context) (out Debug, err error) {
	ctx, cancel := context.WithTimeout(ctx, AnswerLimit)
	defer cancel()
	return out, c.call(ctx, http.MethodGet, "/v1/debug", nil, &out)
}

// Metrics returns the metrics in Prometheus' text format.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, AnswerLimit)
	defer cancel()
	resp, err := c.do(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// Follow calls handler for each event of a name ("*": all) until the mount
// ends (nil), ctx ends, or handler returns an error, which it returns. A stream
// that was cut off, as by the death of the daemon, is io.ErrUnexpectedEOF.
func (c *Client) Follow(ctx context.Context, name string, handler func(lifecycle.Event) error) error {
	resp, err := c.do(ctx, http.MethodGet, "/v1/events?name="+url.QueryEscape(name), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxBody)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e lifecycle.Event
		if err := exactjson.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("control: event: %w", err)
		}
		if err := handler(e); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := lines.Err(); HungUp(err) {
		return io.ErrUnexpectedEOF
	} else if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	return nil
}

// HungUp reports whether a call failed because the socket has no listener any more,
// or the daemon ended the connection: it is ending, or has been killed.
func HungUp(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, unix.ECONNRESET, unix.ECONNREFUSED, unix.EPIPE, fs.ErrNotExist} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := exactjson.Marshal(in)
		if err != nil {
			return fmt.Errorf("control: %w", err)
		}
		body = bytes.NewReader(b)
	}
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return understood(resp.Body, out)
}

// understood reads an answer.
func understood(answer io.Reader, out any) error {
	if err := exactjson.Read(json.NewDecoder(answer), out); err != nil {
		return exit.New(exit.Failed, "the answer of the mount is not understood: %w", err).Hint("%s", otherVersion)
	}
	return nil
}

// otherVersion is the advice if a command and a mount do not understand each other.
const otherVersion = "`wsmount version` and the version in `wsmount status` may differ: unmount, and mount it again"

// do sends a request; an answer other than 200 comes back as the daemon's error.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	w := &stopWatch{done: make(chan struct{})}
	req, err := http.NewRequestWithContext(w.over(ctx), method, "http://wsmount"+path, body)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	resp, err := c.http.Do(req)
	if pid := w.end(); pid != 0 {
		if err == nil {
			resp.Body.Close()
		}
		err = fmt.Errorf("%s: its process (pid %d) is stopped", path, pid)
	} else if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%s: %w", path, ctx.Err())
	}
	if err != nil {
		return nil, exit.New(exit.Unreachable, "the daemon of this mount does not answer: %w", err).
			Hint("see `wsmount status`; `wsmount umount --force` ends it")
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	var e errorBody
	if err := exactjson.Read(json.NewDecoder(resp.Body), &e); err != nil || e.Exit == 0 {
		return nil, exit.New(exit.Failed, "the answer of the mount to %s is not understood: %s", path, resp.Status).Hint("%s", otherVersion)
	}
	return nil, &exit.Error{Code: exit.Code(e.Exit), What: e.Error, Advice: e.Hint}
}
