package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// maxParts is the number that tests of the contract's limits use.
const maxParts = 10_000

// StartParts implements providers.Multiparter.
func (p *Provider) StartParts(ctx context.Context, l providers.Locator, opts providers.WriteOptions) (providers.Upload, error) {
	u := &parted{p: p, l: l, opts: opts, parts: map[int][]byte{}}
	return do(ctx, p, providers.MethodStartParts, l, func() (providers.Upload, error) {
		if err := p.able(providers.AbilityParts); err != nil {
			return nil, err
		}
		if err := checkWrite(l, 1, opts.Kind, p.mint.caps); err != nil {
			return nil, err
		}
		if opts.If.Kind == providers.ConditionMissing {
			return nil, opts.If.Allows(providers.MethodWrite, nil)
		}
		u.began = p.opts.Now()
		p.uploads = append(p.uploads, u)
		return u, nil
	})
}

// AbortParts implements providers.Multiparter.
func (p *Provider) AbortParts(ctx context.Context, before time.Time) (int, error) {
	return do(ctx, p, providers.MethodAbortParts, providers.Locator{}, func() (int, error) {
		if err := p.able(providers.AbilityParts); err != nil {
			return 0, err
		}
		n := len(p.uploads)
		p.uploads = slices.DeleteFunc(p.uploads, func(u *parted) bool { return u.began.Before(before) })
		return n - len(p.uploads), nil
	})
}

// parted implements providers.Upload.
type parted struct {
	p     *Provider
	l     providers.Locator
	opts  providers.WriteOptions
	began time.Time

	mu    sync.Mutex // guards parts
	parts map[int][]byte
}

// Part implements providers.Upload.
func (u *parted) Part(ctx context.Context, n int, body providers.Body) error {
	content, err := whole(ctx, body)
	if err != nil {
		return providers.Fail(name, providers.MethodPart, u.l, err, providers.ErrUnavailable)
	}
	return u.keep(ctx, providers.MethodPart, n, func() ([]byte, error) { return content, nil })
}

// CopyPart implements providers.Upload.
func (u *parted) CopyPart(ctx context.Context, n int, from providers.Locator, opts providers.ReadOptions) error {
	return u.keep(ctx, providers.MethodCopyPart, n, func() ([]byte, error) {
		if err := opts.Check(); err != nil {
			return nil, err
		}
		if opts.Version.IsZero() {
			return nil, fmt.Errorf("a part to copy needs a version: %w", providers.ErrInvalid)
		}
		source, err := u.p.tree.look(from)
		switch {
		case err != nil:
			return nil, err
		case source.isDir():
			return nil, providers.ErrIsDir
		case !opts.Version.Matches(source.version):
			return nil, providers.ErrConflict
		}
		span := opts.Span(int64(len(source.content)))
		return source.content[opts.Offset:][:span], nil
	})
}

// keep stores a part of an upload that has not ended.
func (u *parted) keep(ctx context.Context, m providers.Method, n int, part func() ([]byte, error)) error {
	_, err := do(ctx, u.p, m, u.l, func() (struct{}, error) {
		if n < 1 || n > maxParts {
			return struct{}{}, fmt.Errorf("part %d: %w", n, providers.ErrInvalid)
		}
		if !slices.Contains(u.p.uploads, u) {
			return struct{}{}, fmt.Errorf("the upload has ended: %w", providers.ErrNotExist)
		}
		content, err := part()
		if err != nil {
			return struct{}{}, err
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		u.parts[n] = content
		return struct{}{}, nil
	})
	return err
}

// Complete implements providers.Upload.
func (u *parted) Complete(ctx context.Context) (providers.Info, error) {
	return do(ctx, u.p, providers.MethodComplete, u.l, func() (providers.Info, error) {
		if !slices.Contains(u.p.uploads, u) {
			if current, _ := u.p.tree.look(u.l); repeats(current, u.opts.Op) {
				return current.at(u.l), nil
			}
			return providers.Info{}, fmt.Errorf("the upload has ended: %w", providers.ErrNotExist)
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		var content []byte
		for n := 1; n <= len(u.parts); n++ {
			if _, ok := u.parts[n]; !ok {
				return providers.Info{}, fmt.Errorf("part %d is missing: %w", n, providers.ErrInvalid)
			}
			content = append(content, u.parts[n]...)
		}
		info, err := u.p.write(u.l, content, u.opts)
		if err == nil {
			u.end()
		}
		return info, err
	})
}

// Abort implements providers.Upload.
func (u *parted) Abort(ctx context.Context) error {
	_, err := do(ctx, u.p, providers.MethodAbort, u.l, func() (struct{}, error) {
		u.end()
		return struct{}{}, nil
	})
	return err
}

// end ends an upload within a verb.
func (u *parted) end() {
	u.p.uploads = slices.DeleteFunc(u.p.uploads, func(other *parted) bool { return other == u })
}

// Uploads is how many uploads were begun and neither completed nor aborted.
func (p *Provider) Uploads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.uploads)
}
