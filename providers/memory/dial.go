package memory

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/wsmount/wsmount/providers"
)

// served are the abilities that have a place in a request.
const served = providers.AbilityCopy | providers.AbilityMove | providers.AbilityAttr | providers.AbilityCommit

// Client is a provider in another process.
type Client struct {
	http         http.Client
	capabilities providers.Capabilities
	closed       atomic.Bool
}

var _ interface {
	providers.Provider
	providers.Copier
	providers.Mover
	providers.AttrSetter
	providers.Committer
} = (*Client)(nil)

// Dial reaches a Server at a network ("unix", "tcp") and address as net.Dial
// takes them. It fails with ErrUnavailable when nobody answers. The server's
// provider stays open when the client closes.
func Dial(ctx context.Context, network, address string) (*Client, error) {
	c := &Client{}
	c.http.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, address)
		},
		MaxIdleConnsPerHost: 64,
		DisableCompression:  true,
	}
	a, err := c.ask(ctx, request{Method: methodHello}, providers.Body{})
	if err != nil {
		return nil, err
	}
	c.capabilities = a.Capabilities
	c.capabilities.Abilities &= served
	return c, nil
}

// ask makes a call whose answer has no content.
func (c *Client) ask(ctx context.Context, q request, body providers.Body) (answer, error) {
	a, content, err := c.open(ctx, q, body)
	if content != nil {
		content.Close()
	}
	return a, err
}

// open makes a call. What it returns without an error must be closed.
func (c *Client) open(ctx context.Context, q request, body providers.Body) (answer, io.ReadCloser, error) {
	a, content, err := c.post(ctx, q, body)
	if err == nil {
		err = a.Failed.err()
		if err != nil {
			content.Close()
			content = nil
		}
	}
	return a, content, providers.Fail(name, q.Method, q.Locator, err, providers.ErrUnavailable)
}

func (c *Client) post(ctx context.Context, q request, body providers.Body) (answer, io.ReadCloser, error) {
	if c.closed.Load() {
		return answer{}, nil, providers.ErrClosed
	}
	var head bytes.Buffer
	q.Size = body.Size
	if err := send(&head, q); err != nil {
		return answer{}, nil, err
	}
	up := newUpload(ctx, &head, body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://memory/", up.pipe)
	if err != nil {
		return answer{}, nil, err
	}
	response, err := c.http.Do(r)
	if bodyErr := up.finish(); bodyErr != nil {
		err = bodyErr // why the request failed, if it did
	}
	if err != nil {
		if response != nil {
			response.Body.Close()
		}
		return answer{}, nil, firstErr(ctx.Err(), err)
	}
	return receiveAnswer(ctx, response)
}

func receiveAnswer(ctx context.Context, response *http.Response) (answer, io.ReadCloser, error) {
	var a answer
	in := bufio.NewReader(response.Body)
	err := errors.New(response.Status)
	if response.StatusCode == http.StatusOK {
		err = receive(in, &a)
	}
	if err != nil {
		response.Body.Close()
		return answer{}, nil, firstErr(ctx.Err(), err)
	}
	return a, content{in, response.Body}, nil
}

// firstErr is the first of errs that is one.
func firstErr(errs ...error) error {
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	return errs[i]
}

type content struct {
	io.Reader
	io.Closer
}

// upload feeds a request and keeps the error of the body's own reader, which
// net/http would dress up as one of the connection.
type upload struct {
	pipe *io.PipeReader
	done chan error
}

func newUpload(ctx context.Context, head io.Reader, body providers.Body) upload {
	r, w := io.Pipe()
	u := upload{r, make(chan error, 1)}
	go func() {
		_, err := io.Copy(w, head)
		if err == nil {
			_, err = body.CopyTo(ctx, w)
		}
		w.CloseWithError(err)
		u.done <- err
	}()
	return u
}

// errAnswered ends an upload whose call is over.
var errAnswered = errors.New("answered before the end of the request")

// finish ends the upload; after it nobody reads the body any more.
func (u upload) finish() error {
	u.pipe.CloseWithError(errAnswered)
	err := <-u.done
	if errors.Is(err, errAnswered) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}
