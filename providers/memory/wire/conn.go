package wire

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

// Conn is a client's access to a server, or to a revision of the served provider. It connects
// anew when the server was away. Its methods may be called at the same time.
type Conn struct {
	http   *http.Client
	clone  Clone
	past   providers.Revision // not "": the tree at this revision
	closed atomic.Bool
}

// NewConn makes a Conn that reaches its server by connect.
func NewConn(c Clone, connect func(context.Context) (net.Conn, error)) *Conn {
	return &Conn{clone: c, http: &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return connect(ctx) },
		MaxIdleConnsPerHost: 64,
		DisableCompression:  true,
	}}}
}

// At is the same server for a revision.
func (c *Conn) At(r providers.Revision) *Conn { return &Conn{http: c.http, clone: c.clone, past: r} }

// Close makes later calls fail with providers.ErrClosed.
func (c *Conn) Close() {
	c.closed.Store(true)
	if c.past == "" {
		c.http.CloseIdleConnections()
	}
}

// Ask makes a call whose answer has no content.
func Ask[R any](ctx context.Context, c *Conn, q Request, args any, body providers.Body) (R, error) {
	result, content, err := Open[R](ctx, c, q, args, body)
	if content != nil {
		content.Close()
	}
	return result, err
}

// Open makes a call. Content that it returns without an error must be closed; reading it fails as
// calls do, and when ctx ends.
func Open[R any](ctx context.Context, c *Conn, q Request, args any, body providers.Body) (R, io.ReadCloser, error) {
	result, content, err := post[R](ctx, c, q, args, body)
	return result, content, providers.Fail(Name, q.Method, q.Locator, err, providers.ErrUnavailable)
}

func post[R any](ctx context.Context, c *Conn, q Request, args any, body providers.Body) (result R, _ io.ReadCloser, _ error) {
	if c.closed.Load() {
		return result, nil, providers.ErrClosed
	}
	var head bytes.Buffer
	q.Size, q.Clone, q.Past = body.Size, c.clone, c.past
	if err := Send(&head, q, args); err != nil {
		return result, nil, err
	}
	up := newUpload(ctx, &head, body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://memory/", up.pipe)
	if err != nil {
		return result, nil, err
	}
	response, err := c.http.Do(r)
	if bodyErr := up.finish(); bodyErr != nil {
		err = bodyErr // the cause, if the request failed
	}
	if err != nil {
		if response != nil {
			response.Body.Close()
		}
		return result, nil, firstErr(ctx.Err(), err)
	}
	in := NewIncoming(response.Body)
	if result, err = receive[R](response, in); err != nil {
		response.Body.Close()
		return result, nil, firstErr(failedBy(err), ctx.Err(), err)
	}
	return result, content{providers.WithContext(ctx, download{q, in.Rest}), response.Body}, nil
}

// receive returns the result, or the error that the server sent.
func receive[R any](response *http.Response, in Incoming) (result R, _ error) {
	if response.StatusCode != http.StatusOK {
		return result, errors.New(response.Status)
	}
	r, err := Next[Reply](in)
	if err != nil {
		return result, err
	}
	if err := r.Failed.Err(); err != nil {
		return result, err
	}
	return Next[R](in)
}

// failedBy returns err if the server sent it; else nil.
func failedBy(err error) error {
	var sent *providers.Error
	if errors.As(err, &sent) {
		return err
	}
	return nil
}

// firstErr is the first of errs that is not nil.
func firstErr(errs ...error) error {
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	return errs[i]
}

type content struct {
	io.Reader
	io.Closer
}

// download gives the errors of a broken connection their kind.
type download struct {
	of Request
	r  io.Reader
}

func (d download) Read(b []byte) (int, error) {
	n, err := d.r.Read(b)
	if err == io.EOF {
		return n, io.EOF
	}
	return n, providers.Fail(Name, d.of.Method, d.of.Locator, err, providers.ErrUnavailable)
}

// upload feeds a request and keeps the error of the body's own reader, which net/http would
// report as one of the connection.
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

// finish ends the upload; after it the body is not read any more.
func (u upload) finish() error {
	u.pipe.CloseWithError(errAnswered)
	err := <-u.done
	if errors.Is(err, errAnswered) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}
