package providers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
)

// All lists page after page, from opts.Token on, until the end, an error, or until the caller
// stops.
func All(ctx context.Context, p Provider, l Locator, opts ListOptions) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for {
			page, err := p.List(ctx, l, opts)
			if err = PageError(opts, err); err != nil {
				yield(Info{}, err)
				return
			}
			for _, info := range page.Entries {
				if !yield(info, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			opts.Token = page.Next
		}
	}
}

// ErrBrokenOff says that a later page of a listing is not there: the earlier pages are not the
// whole directory. The listing is to begin anew, and its first page says whether the directory is
// gone. It is an ErrUnavailable.
var ErrBrokenOff = Kinded(errors.New("a later page of the listing is not there"), ErrUnavailable)

// PageError is the error of a page that List was asked for with these options: ErrNotExist says
// that the directory is gone if it is of the first page, and is ErrBrokenOff of a later one.
func PageError(o ListOptions, err error) error {
	if o.Token != "" && errors.Is(err, ErrNotExist) {
		return fmt.Errorf("%w: %v", ErrBrokenOff, err)
	}
	return err
}

// Fetch reads a whole range into memory, with the check of Stream.
func Fetch(ctx context.Context, p Provider, l Locator, opts ReadOptions) ([]byte, Info, error) {
	c, err := Stream(ctx, p, l, opts)
	if err != nil {
		return nil, Info{}, err
	}
	data, err := io.ReadAll(c.Body)
	if err := errors.Join(err, c.Body.Close()); err != nil {
		return nil, Info{}, err
	}
	return data, c.Info, nil
}

// Stream opens a range. Its Body is checked against the size in Info: it fails with ErrCorrupt
// where it ends too early, or goes on for too long. Other errors of Body are an *Error too.
func Stream(ctx context.Context, p Provider, l Locator, opts ReadOptions) (Content, error) {
	c, err := p.Read(ctx, l, opts)
	if err == nil {
		want := opts.Span(c.Info.Size)
		c.Body = &checkedBody{c.Body, l, want, want}
	}
	return c, err
}

// checkedBody is a body that is to have a length.
type checkedBody struct {
	from       io.ReadCloser
	l          Locator
	want, left int64
}

func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return n, b.corrupt("more than %d bytes came", b.want)
	case err == io.EOF && b.left > 0:
		return n, b.corrupt("%d bytes came instead of %d", b.want-b.left, b.want)
	case err == io.EOF:
		return n, err
	}
	return n, Fail("", MethodRead, b.l, err, ErrUnavailable)
}

func (b *checkedBody) Close() error {
	return Fail("", MethodRead, b.l, b.from.Close(), ErrUnavailable)
}

func (b *checkedBody) corrupt(format string, args ...any) error {
	return &Error{Op: MethodRead, Locator: b.l, Kind: ErrCorrupt, Err: fmt.Errorf(format, args...)}
}

// Span is how many bytes the range has in an entry of size bytes.
func (o ReadOptions) Span(size int64) int64 {
	rest := max(0, size-o.Offset)
	if o.Length > 0 {
		return min(o.Length, rest)
	}
	return rest
}

// Check refuses a negative range.
func (o ReadOptions) Check() error {
	if o.Offset < 0 || o.Length < 0 {
		return fmt.Errorf("range %d+%d: %w", o.Offset, o.Length, ErrInvalid)
	}
	return nil
}

// CopyTo writes all of b to w and returns the number of bytes. It fails with ErrInvalid when
// Size is known and the Reader gives more or less, with the context's error when that ends,
// with ErrBody and the Reader's own error, and with w's own error.
func (b Body) CopyTo(ctx context.Context, w io.Writer) (int64, error) {
	if b.Reader == nil {
		b.Reader = eof{}
	}
	r := io.Reader(contextReader{ctx, bodyReader{b.Reader}})
	if b.Size >= 0 {
		r = io.LimitReader(r, b.Size+1)
	}
	n, err := io.Copy(w, r)
	switch {
	case err != nil:
		return n, err
	case b.Size >= 0 && n != b.Size:
		return n, fmt.Errorf("body is not the %d bytes that it said: %w", b.Size, ErrInvalid)
	}
	return n, nil
}

// bodyReader marks errors of the caller's content, to tell them from those of storage.
type bodyReader struct{ r io.Reader }

func (b bodyReader) Read(buf []byte) (int, error) {
	n, err := b.r.Read(buf)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: %w", ErrBody, err)
	}
	return n, err
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// contextReader fails as soon as its context has ended.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// WithContext is r, failing with ctx.Err() once ctx has ended. It does not
// interrupt a Read that blocks.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }
