package memory

import (
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
const served = providers.AbilityCopy | providers.AbilityMove | providers.AbilityAttr | providers.AbilityCommit |
	providers.AbilitySnapshot | providers.AbilityPush | providers.AbilitySync | providers.AbilityDiffer

// Client is a provider in another process. It connects anew when the server
// was away.
type Client struct {
	http         *http.Client
	clone        clone
	past         providers.Revision // not "": the tree at this revision
	capabilities providers.Capabilities
	closed       atomic.Bool
}

var _ interface {
	providers.Provider
	providers.Copier
	providers.Mover
	providers.AttrSetter
	providers.Committer
	providers.Snapshotter
	providers.Pusher
	providers.Syncer
	providers.Differ
} = (*Client)(nil)

// Dial reaches a Server at a network ("unix", "tcp") and address as net.Dial
// takes them. It fails with ErrUnavailable when nobody answers. The server's
// provider stays open when the client closes.
func Dial(ctx context.Context, network, address string) (*Client, error) {
	return DialClone(ctx, network, address, "", "")
}

// DialClone is Dial for a clone of the remote that ServeRemote serves: all who
// give one name use one clone. branch is what it tracks; "": main. ErrInvalid
// when the clone tracks another.
func DialClone(ctx context.Context, network, address, name, branch string) (*Client, error) {
	return dial(ctx, clone{name, branch}, func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	})
}

func dial(ctx context.Context, c clone, connect func(context.Context) (net.Conn, error)) (*Client, error) {
	client := &Client{clone: c, http: &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return connect(ctx) },
		MaxIdleConnsPerHost: 64,
		DisableCompression:  true,
	}}}
	caps, err := ask[providers.Capabilities](ctx, client, request{Method: methodHello}, nothing{}, providers.Body{})
	if err != nil {
		client.http.CloseIdleConnections()
		return nil, err
	}
	caps.ConcurrentWriters = true // they all ask the one server
	client.capabilities = caps
	client.capabilities.Abilities &= served
	return client, nil
}

// ask makes a call whose answer has no content.
func ask[R any](ctx context.Context, c *Client, q request, args any, body providers.Body) (R, error) {
	result, content, err := open[R](ctx, c, q, args, body)
	if content != nil {
		content.Close()
	}
	return result, err
}

// open makes a call. What it returns without an error must be closed.
func open[R any](ctx context.Context, c *Client, q request, args any, body providers.Body) (R, io.ReadCloser, error) {
	result, content, err := post[R](ctx, c, q, args, body)
	return result, content, providers.Fail(name, q.Method, q.Locator, err, providers.ErrUnavailable)
}

func post[R any](ctx context.Context, c *Client, q request, args any, body providers.Body) (result R, _ io.ReadCloser, _ error) {
	if c.closed.Load() {
		return result, nil, providers.ErrClosed
	}
	var head bytes.Buffer
	q.Size, q.Clone, q.Past = body.Size, c.clone, c.past
	if err := send(&head, q, args); err != nil {
		return result, nil, err
	}
	up := newUpload(ctx, &head, body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://memory/", up.pipe)
	if err != nil {
		return result, nil, err
	}
	response, err := c.http.Do(r)
	if bodyErr := up.finish(); bodyErr != nil {
		err = bodyErr // why the request failed, if it did
	}
	if err != nil {
		if response != nil {
			response.Body.Close()
		}
		return result, nil, firstErr(ctx.Err(), err)
	}
	in := newIncoming(response.Body)
	if result, err = receive[R](response, in); err != nil {
		response.Body.Close()
		return result, nil, firstErr(failedBy(err), ctx.Err(), err)
	}
	return result, content{in.rest, response.Body}, nil
}

// receive is the result, or the error that the server sent.
func receive[R any](response *http.Response, in incoming) (result R, _ error) {
	if response.StatusCode != http.StatusOK {
		return result, errors.New(response.Status)
	}
	r, err := next[reply](in)
	if err != nil {
		return result, err
	}
	if err := r.Failed.err(); err != nil {
		return result, err
	}
	return next[R](in)
}

// failedBy is an error that the server sent; any other is nil.
func failedBy(err error) error {
	var sent *providers.Error
	if errors.As(err, &sent) {
		return err
	}
	return nil
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
