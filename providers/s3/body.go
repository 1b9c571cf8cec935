package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/wsmount/wsmount/providers"
)

// outgoing is a body of known size on its way out. The last bytes leave only
// when it is sure that there are no more: the service must never get all of
// what it was promised from a body that is wrong. It is also the line between
// the HTTP client, which may read on when the call is over, and the caller,
// whose Reader is his again then.
type outgoing struct {
	ctx  context.Context
	size int64

	mu   sync.Mutex // guards all below
	r    io.Reader  // nil after stop
	read int64
	sum  hash.Hash
	err  error // why it ended early
}

func newOutgoing(ctx context.Context, body providers.Body) *outgoing {
	r := body.Reader
	if r == nil {
		r = bytes.NewReader(nil)
	}
	return &outgoing{ctx: ctx, size: body.Size, r: r, sum: md5.New()}
}

// Read implements io.Reader.
func (o *outgoing) Read(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil:
		return 0, o.err
	case o.r == nil:
		return 0, errors.New("the call is over")
	case o.ctx.Err() != nil:
		return 0, o.ctx.Err()
	case o.read == o.size:
		return 0, io.EOF
	case len(b) == 0:
		return 0, nil
	}
	n, err := o.r.Read(b[:min(int64(len(b)), o.size-o.read)])
	if o.read+int64(n) == o.size && (err == nil || err == io.EOF) {
		err = o.atEnd()
	} else if err == io.EOF {
		err = o.wrong("shorter")
	}
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("%w: %w", providers.ErrBody, err)
	}
	if o.err != nil {
		return 0, o.err
	}
	o.sum.Write(b[:n])
	o.read += int64(n)
	return n, nil
}

// atEnd checks that nothing follows. The caller holds mu.
func (o *outgoing) atEnd() error {
	var one [1]byte
	for range 100 {
		n, err := o.r.Read(one[:])
		switch {
		case n > 0:
			return o.wrong("longer")
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}

func (o *outgoing) wrong(how string) error {
	o.err = fmt.Errorf("body is %s than the %d bytes that it said: %w", how, o.size, providers.ErrInvalid)
	return o.err
}

// start checks what needs no request: an empty body must be empty.
func (o *outgoing) start() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size > 0 {
		return nil
	}
	if err := o.atEnd(); err != nil && o.err == nil {
		o.err = fmt.Errorf("%w: %w", providers.ErrBody, err)
	}
	return o.err
}

// stop ends all reading, and waits for what is under way. It returns why the
// body ended early, if it did.
func (o *outgoing) stop() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.r = nil
	return o.err
}

// digest is the MD5 of what was read, in hexadecimal.
func (o *outgoing) digest() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return hex.EncodeToString(o.sum.Sum(nil))
}

// rewinder gives the body again for another attempt, where that can be.
func rewinder(body providers.Body) func() bool {
	if body.Size == 0 || body.Reader == nil {
		return func() bool { return true }
	}
	s, ok := body.Reader.(io.Seeker)
	if !ok {
		return func() bool { return false }
	}
	start, err := s.Seek(0, io.SeekCurrent)
	return func() bool {
		if err != nil {
			return false
		}
		_, err = s.Seek(start, io.SeekStart)
		return err == nil
	}
}

// incoming is a body on its way in. It ends well only when all that was
// promised came.
type incoming struct {
	ctx  context.Context
	body io.ReadCloser
	left int64
	l    providers.Locator
}

// Read implements io.Reader.
func (i *incoming) Read(b []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, i.fail(err)
	}
	n, err := i.body.Read(b)
	i.left -= int64(n)
	switch {
	case err == io.EOF && i.left == 0:
		return n, io.EOF
	case err == io.EOF:
		return n, i.fail(fmt.Errorf("%d bytes are missing: %w", i.left, io.ErrUnexpectedEOF))
	case err != nil:
		return n, i.fail(err)
	}
	return n, nil
}

func (i *incoming) fail(err error) error {
	return fail(i.ctx, providers.MethodRead, i.l, translate(i.ctx, err))
}

// Close implements io.Closer.
func (i *incoming) Close() error {
	i.body.Close() // what matters has been read, or is not wanted
	return nil
}
