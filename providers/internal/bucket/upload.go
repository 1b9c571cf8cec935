package bucket

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// StartParts implements providers.Multiparter.
func (p *Provider) StartParts(ctx context.Context, l providers.Locator, opts providers.WriteOptions) (providers.Upload, error) {
	return do(ctx, p, providers.MethodStartParts, l, func(at place) (providers.Upload, error) {
		u, err := p.start(ctx, at, opts)
		if err != nil {
			return nil, err // and no upload with a type
		}
		return u, nil
	})
}

func (p *Provider) start(ctx context.Context, at place, opts providers.WriteOptions) (*upload, error) {
	m, err := p.checkWrite(at, opts)
	if err != nil {
		return nil, err
	}
	if m.op == "" {
		m.op = rand.Text() // a repeated Complete finds its own work by it
	}
	making, err := p.making(at.key, m, opts.If)
	if err != nil {
		return nil, err
	}
	u, err := p.begin(ctx, at.key, m, making)
	if err != nil {
		return nil, conditionError(opts.If, err)
	}
	u.at, u.cond, u.looked = at, opts.If, opts.Looked
	return u, nil
}

// upload implements providers.Upload.
type upload struct {
	p  *Provider
	at place
	Upload
	meta   meta
	made   time.Time // when it began
	cond   providers.Condition
	looked bool // as in WriteOptions

	mu    sync.Mutex // guards all below
	parts map[int]Part
	done  bool
}

// begin starts an upload at the service.
func (p *Provider) begin(ctx context.Context, key string, m meta, making Making) (*upload, error) {
	made := p.now()
	id, err := p.store.Begin(ctx, key, making)
	if err != nil {
		return nil, err
	}
	return &upload{p: p, Upload: Upload{key, id}, meta: m, made: made, parts: map[int]Part{}}, nil
}

// inParts makes an object of the parts that send sends.
func (u *upload) inParts(ctx context.Context, send func() error) (info providers.Info, err error) {
	if err = send(); err == nil {
		info, err = u.complete(ctx)
	}
	if err != nil {
		// AbortParts finds parts that stay.
		_ = u.abort(context.WithoutCancel(ctx))
	}
	return info, err
}

// verb is do for the methods of an upload.
func (u *upload) verb(ctx context.Context, op providers.Method, f func() error) error {
	err := u.p.ready(ctx)
	if err == nil {
		err = f()
	}
	return u.p.fail(ctx, op, u.at.l, err)
}

func (u *upload) keep(n int, p Part) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p.N = n
	u.parts[n] = p
}

func (u *upload) checkPart(n int, size int64) error {
	most := u.p.service.Parts
	switch {
	case n < 1 || n > most.Count:
		return Invalid("part %d of at most %d", n, most.Count)
	case size > most.Max:
		return fmt.Errorf("a part of %d bytes: %w", size, providers.ErrTooLarge)
	}
	return nil
}

// Part implements providers.Upload.
func (u *upload) Part(ctx context.Context, n int, body providers.Body) error {
	return u.verb(ctx, providers.MethodPart, func() error {
		if body.Size < 0 {
			c, _, large, err := buffer(ctx, body)
			switch {
			case err != nil:
				return err
			case large:
				return Invalid("a part of over %d bytes needs a known size", BufferSize)
			}
			body = c.Body
		}
		if err := u.checkPart(n, body.Size); err != nil {
			return err
		}
		return u.send(ctx, n, body)
	})
}

// send streams a part. Damage is noticed after the transfer, which is soon enough: no reader sees
// a part before it is completed.
func (u *upload) send(ctx context.Context, n int, body providers.Body) error {
	out := NewOutgoing(ctx, body)
	if err := out.attempt.start(); err != nil {
		return err
	}
	part, err := u.p.store.Part(ctx, u.Upload, n, out)
	if err := out.end(err); err != nil {
		return err
	}
	if err := out.Check(part.MD5); err != nil {
		return err
	}
	part.Size = body.Size
	u.keep(n, part)
	return nil
}

// CopyPart implements providers.Upload.
func (u *upload) CopyPart(ctx context.Context, n int, from providers.Locator, opts providers.ReadOptions) error {
	return u.verb(ctx, providers.MethodCopyPart, func() error {
		source, err := u.p.find(from)
		if err == nil {
			err = u.p.checkPlace(ctx, providers.MethodRead, source)
		}
		if err == nil {
			err = opts.Check()
		}
		size := opts.Span(opts.Version.Size)
		switch {
		case err != nil:
			return err
		case opts.Version.ETag == "" || source.key == "" || size == 0:
			return Invalid("a part to copy needs a version and bytes")
		}
		if err := u.checkPart(n, size); err != nil {
			return err
		}
		return u.copyRange(ctx, n, Object{Key: source.key, ETag: opts.Version.ETag, Size: opts.Version.Size}, opts.Offset, size)
	})
}

func (u *upload) copyRange(ctx context.Context, n int, from Object, offset, size int64) error {
	part, err := u.p.store.CopyPart(ctx, u.Upload, n, from, offset, size)
	if doubtOf(err) == RangeBeyond {
		return u.p.whyRange(ctx, from, err)
	}
	if err != nil {
		return err
	}
	part.Size = size
	u.keep(n, part)
	return nil
}

// whyRange finds why a service does not take a range. A source that has changed may be shorter,
// and some services check the range before the condition.
func (p *Provider) whyRange(ctx context.Context, from Object, refused error) error {
	o, err := p.head(ctx, from.Key)
	switch {
	case errors.Is(err, providers.ErrNotExist), err == nil && o.ETag != from.ETag:
		return &Fault{Kind: providers.ErrConflict, Err: errors.New("the source has changed")}
	case err != nil:
		return err
	}
	return refused
}

// Complete implements providers.Upload.
func (u *upload) Complete(ctx context.Context) (info providers.Info, err error) {
	err = u.verb(ctx, providers.MethodComplete, func() error {
		err := u.p.allowed(ctx, u.at, u.cond, u.looked)
		if err == nil {
			info, err = u.complete(ctx)
			info.Locator = u.at.l
		}
		info, err = u.p.settle(ctx, u.at, info, u.cond, u.meta.op, err)
		return err
	})
	return info, err
}

// complete makes the object. Without parts there is nothing to complete, and the
// content is empty.
func (u *upload) complete(ctx context.Context) (providers.Info, error) {
	parts, size := u.list()
	if len(parts) == 0 {
		info, err := u.p.put(ctx, u.Key, bytesBody(nil), u.meta, u.cond)
		if err == nil {
			err = u.abort(ctx)
		}
		return info, err
	}
	m, err := u.p.making(u.Key, u.meta, u.cond)
	if err != nil {
		return providers.Info{}, err
	}
	told, err := u.p.store.Complete(ctx, u.Upload, parts, m)
	if err != nil {
		return providers.Info{}, err
	}
	u.mu.Lock()
	u.done = true
	u.mu.Unlock()
	return u.p.made(told, u.Key, size, u.meta, u.made), nil
}

// list is the parts in order, and their size.
func (u *upload) list() (parts []Part, size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, part := range u.parts {
		parts = append(parts, part)
		size += part.Size
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.N, b.N) })
	return parts, size
}

// Abort implements providers.Upload.
func (u *upload) Abort(ctx context.Context) error {
	return u.verb(ctx, providers.MethodAbort, func() error { return u.abort(ctx) })
}

func (u *upload) abort(ctx context.Context) error {
	u.mu.Lock()
	done := u.done
	u.done = true
	u.mu.Unlock()
	if done {
		return nil
	}
	return u.p.store.Abort(ctx, u.Upload)
}

// AbortParts implements providers.Multiparter.
func (p *Provider) AbortParts(ctx context.Context, before time.Time) (int, error) {
	count := 0
	_, err := do(ctx, p, providers.MethodAbortParts, providers.Locator{}, func(place) (struct{}, error) {
		var err error
		count, err = p.store.AbortBefore(ctx, p.prefix, before)
		return struct{}{}, err
	})
	return count, err
}
