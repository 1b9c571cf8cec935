package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/wsmount/wsmount/providers"
)

// writeParts is Write for what one PUT does not take.
func (p *Provider) writeParts(ctx context.Context, at place, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	u, err := p.start(ctx, at, opts)
	if err != nil {
		return providers.Info{}, err
	}
	err = u.sendAll(ctx, body)
	var info providers.Info
	if err == nil {
		info, err = u.complete(ctx)
		info.Locator = at.l
	}
	if err != nil {
		// AbortParts finds what stays.
		_ = u.abort(context.WithoutCancel(ctx))
	}
	return p.settle(ctx, at, info, opts.If, opts.Op, err)
}

// sendAll sends a body part by part. Of an unknown size, each is in memory
// once.
func (u *upload) sendAll(ctx context.Context, body providers.Body) error {
	count := u.p.service.Parts.Count
	size := max(int64(BufferSize), body.Size/int64(count)+1)
	buffer := make([]byte, size)
	r := body.Reader
	if body.Size >= 0 {
		r = &exact{r: r, left: body.Size}
	}
	for n := 1; ; n++ {
		got, err := io.ReadFull(providers.WithContext(ctx, r), buffer)
		last := err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !last && errors.Is(err, providers.ErrInvalid):
			return err
		case err != nil && !last:
			return fmt.Errorf("%w: %w", providers.ErrBody, err)
		case n > count:
			return fmt.Errorf("over %d parts of %d bytes: %w", count, size, providers.ErrTooLarge)
		}
		if got > 0 {
			part := providers.Body{Reader: bytes.NewReader(buffer[:got]), Size: int64(got)}
			if err := u.send(ctx, n, part); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// exact ends in an error unless there are as many bytes as were promised.
type exact struct {
	r    io.Reader
	left int64
}

func (e *exact) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	e.left -= int64(n)
	if e.left < 0 || err == io.EOF && e.left > 0 {
		return 0, Invalid("body is not of the size that it said")
	}
	return n, err
}
