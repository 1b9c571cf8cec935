package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/wsmount/wsmount/providers"
)

// writeParts is Write for a body that does not fit in one PUT.
func (p *Provider) writeParts(ctx context.Context, at place, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	u, err := p.start(ctx, at, opts)
	if err != nil {
		return providers.Info{}, err
	}
	info, err := u.inParts(ctx, func() error { return u.sendAll(ctx, body) })
	info.Locator = at.l
	return p.settle(ctx, at, info, opts.If, opts.Op, err)
}

// sendAll sends a body part by part. Of an unknown size, each is in memory
// once.
func (u *upload) sendAll(ctx context.Context, body providers.Body) error {
	count := u.p.service.Parts.Count
	size := max(int64(BufferSize), body.Size/int64(count)+1)
	buffer := make([]byte, size)
	sent := int64(0)
	for n := 1; ; n++ {
		got, err := io.ReadFull(providers.WithContext(ctx, body.Reader), buffer)
		last := err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
		sent += int64(got)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !last:
			return fmt.Errorf("%w: %w", providers.ErrBody, err)
		case body.Size >= 0 && (sent > body.Size || last && sent < body.Size):
			return Invalid("body is not of the size that it said")
		case n > count:
			return fmt.Errorf("over %d parts of %d bytes: %w", count, size, providers.ErrTooLarge)
		}
		if got > 0 {
			if err := u.send(ctx, n, providers.Body{Reader: bytes.NewReader(buffer[:got]), Size: int64(got)}); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// BufferSize is the most of a body of unknown size that is buffered before it goes out in parts.
const BufferSize = 16 << 20
