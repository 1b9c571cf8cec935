package bucket

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

// Outgoing is a body of known size on its way to the service.
type Outgoing struct {
	Size int64
	MD5  *[md5.Size]byte // nil: known once the body was read

	ctx    context.Context
	body   providers.Body
	rewind func() error // nil: the body cannot be read again

	attempt *attempt // the latest
}

// NewOutgoing is a body, for as long as ctx lasts.
func NewOutgoing(ctx context.Context, body providers.Body) *Outgoing {
	if body.Reader == nil {
		body.Reader = bytes.NewReader(nil)
	}
	o := &Outgoing{Size: body.Size, ctx: ctx, body: body, rewind: rewinder(body)}
	o.attempt = o.begin()
	return o
}

// Reader is the body for one request.
func (o *Outgoing) Reader() io.Reader { return o.attempt }

// Again makes the next Reader begin anew, and reports whether it can. The request before is over,
// however it ended.
func (o *Outgoing) Again() bool {
	_ = o.attempt.stop()
	if o.attempt.hasRead() && (o.rewind == nil || o.rewind() != nil) {
		return false
	}
	o.attempt = o.begin()
	return true
}

// end stops all reading. It returns the reason if the body ended early, else err, the request's.
func (o *Outgoing) end(err error) error {
	if early := o.attempt.stop(); early != nil && o.ctx.Err() == nil {
		return early
	}
	return err
}

// Check compares the service's MD5 (has) with that of the sent content.
func (o *Outgoing) Check(has string) error {
	sent := o.attempt.digest()
	if o.MD5 != nil {
		sent = hex.EncodeToString(o.MD5[:])
	}
	if has != "" && has != sent {
		return fmt.Errorf("%w: sent content with MD5 %s, the service has %s", providers.ErrCorrupt, sent, has)
	}
	return nil
}

func (o *Outgoing) begin() *attempt {
	return &attempt{ctx: o.ctx, held: lockedAttempt{size: o.Size, r: o.body.Reader, sum: md5.New()}}
}

// attempt is a body for one request. The last bytes leave only when it is sure that there are no
// more: the service must never get all the promised bytes of a body that is wrong. It is also the
// line between the HTTP client, which may read on when the call is over, and the caller, whose
// Reader is its own again then.
type attempt struct {
	ctx  context.Context
	held lockedAttempt // see lock
}

// lockedAttempt has the fields that the mutex of an attempt guards.
type lockedAttempt struct {
	mu   sync.Mutex
	size int64
	r    io.Reader // nil after stop
	took bool      // r was read from
	read int64
	sum  hash.Hash
	err  error // why it ended early
}

func (a *attempt) lock() *lockedAttempt {
	a.held.mu.Lock()
	return &a.held
}

func (a *lockedAttempt) unlock() { a.mu.Unlock() }

// Read implements io.Reader.
func (a *attempt) Read(b []byte) (int, error) {
	h := a.lock()
	defer h.unlock()
	switch {
	case h.err != nil:
		return 0, h.err
	case h.r == nil:
		return 0, errors.New("the call is over")
	case a.ctx.Err() != nil:
		return 0, a.ctx.Err()
	case h.read == h.size:
		return 0, io.EOF
	case len(b) == 0:
		return 0, nil
	}
	h.took = true
	n, err := h.r.Read(b[:min(int64(len(b)), h.size-h.read)])
	if h.read+int64(n) == h.size && (err == nil || err == io.EOF) {
		err = h.atEnd()
	} else if err == io.EOF {
		err = h.wrong("shorter")
	}
	if err != nil && h.err == nil {
		h.err = fmt.Errorf("%w: %w", providers.ErrBody, err)
	}
	if h.err != nil {
		return 0, h.err
	}
	h.sum.Write(b[:n])
	h.read += int64(n)
	return n, nil
}

// atEnd checks that the body has no more bytes.
func (a *lockedAttempt) atEnd() error {
	var one [1]byte
	a.took = true
	for range 100 {
		n, err := a.r.Read(one[:])
		switch {
		case n > 0:
			return a.wrong("longer")
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}

func (a *lockedAttempt) wrong(how string) error {
	a.err = fmt.Errorf("body is %s than the %d bytes that it said: %w", how, a.size, providers.ErrInvalid)
	return a.err
}

// start checks the one case that needs no request: an empty body must be empty.
func (a *attempt) start() error {
	h := a.lock()
	defer h.unlock()
	if h.size > 0 {
		return nil
	}
	if err := h.atEnd(); err != nil && h.err == nil {
		h.err = fmt.Errorf("%w: %w", providers.ErrBody, err)
	}
	return h.err
}

// stop ends all reading, and waits for a read under way. It returns the reason if the body ended
// early.
func (a *attempt) stop() error {
	h := a.lock()
	defer h.unlock()
	h.r = nil
	return h.err
}

// hasRead reports whether bytes of the body may have been consumed.
func (a *attempt) hasRead() bool {
	h := a.lock()
	defer h.unlock()
	return h.took
}

// digest is the MD5 of the bytes read so far, in hexadecimal.
func (a *attempt) digest() string {
	h := a.lock()
	defer h.unlock()
	return hex.EncodeToString(h.sum.Sum(nil))
}

// rewinder makes the function that has a body begin anew for another attempt; nil if it cannot.
func rewinder(body providers.Body) func() error {
	if body.Size == 0 || body.Reader == nil {
		return func() error { return nil }
	}
	s, ok := body.Reader.(io.Seeker)
	if !ok {
		return nil
	}
	start, err := s.Seek(0, io.SeekCurrent)
	if err != nil { // a pipe
		return nil
	}
	return func() error {
		_, err := s.Seek(start, io.SeekStart)
		return err
	}
}

// incoming is a body on its way in. It ends without an error only when all promised bytes came.
type incoming struct {
	ctx     context.Context
	service string
	body    io.ReadCloser
	left    int64
	l       providers.Locator
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
	var f *Fault
	switch {
	case i.ctx.Err() != nil:
		err = i.ctx.Err()
	case !errors.As(err, &f): // the connection broke before the end
		err = &Fault{Kind: providers.ErrUnavailable, Err: err}
	}
	return Fail(i.ctx, i.service, providers.MethodRead, i.l, err)
}

// Close implements io.Closer.
func (i *incoming) Close() error {
	i.body.Close() // the content that matters has been read, or is not wanted
	return nil
}
