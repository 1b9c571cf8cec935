package providers

import (
	"context"
	"io"
)

// Call is a call on its way through a wrapper.
type Call struct {
	Method  Method
	Locator Locator // zero where the method has none
	To      Locator // the target of Copy and Move

	// Body, if the wrapper sets it before it goes on, is put around the content that the call
	// moves: that returned by Read, or sent by Write or Part. Closing stays with the original.
	Body func(io.Reader) io.Reader
}

// Around sees a call. It continues with next, at most once, or returns an error without; either
// way its result is the caller's, and when it is an error the caller gets nothing else. It may
// be called from many goroutines.
type Around func(ctx context.Context, c *Call, next func(context.Context) error) error

// WrapOptions can only take away.
type WrapOptions struct {
	Around   Around  // nil: every call is passed on
	Hide     Ability // not announced any more
	ReadOnly bool    // announces Writable no more
}

// Everything is a provider with the methods of every ability. As gives only the announced ones.
type Everything interface {
	Provider
	Copier
	Mover
	AttrSetter
	Multiparter
	Watcher
	Committer
	Snapshotter
	Pusher
	Syncer
	Rebaser
	Brancher
	Inspector
	Differ
	Submoduler
}

// Wrap puts a function around every call of p, those of its abilities, its uploads and its
// snapshots included. The result announces the Capabilities of p, less those that opts hides.
// It owns p: closing it closes p.
func Wrap(p Provider, opts WrapOptions) Everything { return newWrapped(p, opts) }

// wrapped has the methods of every ability, whether p has them or not: As gives only the
// announced ones, and a direct call of another is ErrUnsupported.
type wrapped struct {
	inner Provider
	opts  WrapOptions
}

var _ Everything = (*wrapped)(nil)

func newWrapped(p Provider, opts WrapOptions) *wrapped {
	if opts.Around == nil {
		opts.Around = func(ctx context.Context, _ *Call, next func(context.Context) error) error { return next(ctx) }
	}
	return &wrapped{p, opts}
}

// via runs one call. An error leaves no result: an answer that the wrapper
// declared lost must not arrive after all.
func via[R any](ctx context.Context, w *wrapped, c *Call, call func(context.Context) (R, error)) (R, error) {
	var result R
	err := w.opts.Around(ctx, c, func(ctx context.Context) error {
		var err error
		result, err = call(ctx)
		return err
	})
	if err != nil {
		discard(ctx, result)
		var none R
		return none, err
	}
	return result, nil
}

// discard frees the resources of a result that is not returned.
func discard(ctx context.Context, result any) {
	switch r := result.(type) {
	case Content:
		if r.Body != nil {
			r.Body.Close()
		}
	case Provider:
		r.Close()
	case Upload:
		// No caller is left to get an error; AbortParts finds uploads that stay.
		_ = r.Abort(context.WithoutCancel(ctx))
	}
}

// run is via for calls without a result.
func (w *wrapped) run(ctx context.Context, c *Call, call func(context.Context) error) error {
	return w.opts.Around(ctx, c, call)
}

// upload is body with the wrapper's Body around it.
func (c *Call) upload(body Body) Body {
	if c.Body != nil && body.Reader != nil {
		body.Reader = c.Body(body.Reader)
	}
	return body
}

func (w *wrapped) Capabilities() Capabilities {
	c := w.inner.Capabilities()
	c.Abilities &^= w.opts.Hide
	c.Writable = c.Writable && !w.opts.ReadOnly
	return c
}

func (w *wrapped) Stat(ctx context.Context, l Locator) (Info, error) {
	return via(ctx, w, &Call{Method: MethodStat, Locator: l}, func(ctx context.Context) (Info, error) {
		return w.inner.Stat(ctx, l)
	})
}

func (w *wrapped) List(ctx context.Context, l Locator, opts ListOptions) (Page, error) {
	return via(ctx, w, &Call{Method: MethodList, Locator: l}, func(ctx context.Context) (Page, error) {
		return w.inner.List(ctx, l, opts)
	})
}

func (w *wrapped) Read(ctx context.Context, l Locator, opts ReadOptions) (Content, error) {
	c := &Call{Method: MethodRead, Locator: l}
	return via(ctx, w, c, func(ctx context.Context) (Content, error) {
		content, err := w.inner.Read(ctx, l, opts)
		if err == nil && c.Body != nil {
			content.Body = readCloser{c.Body(content.Body), content.Body}
		}
		return content, err
	})
}

type readCloser struct {
	io.Reader
	io.Closer
}

func (w *wrapped) Write(ctx context.Context, l Locator, body Body, opts WriteOptions) (Info, error) {
	c := &Call{Method: MethodWrite, Locator: l}
	return via(ctx, w, c, func(ctx context.Context) (Info, error) {
		return w.inner.Write(ctx, l, c.upload(body), opts)
	})
}

func (w *wrapped) Delete(ctx context.Context, l Locator, opts DeleteOptions) error {
	return w.run(ctx, &Call{Method: MethodDelete, Locator: l}, func(ctx context.Context) error {
		return w.inner.Delete(ctx, l, opts)
	})
}

func (w *wrapped) Mkdir(ctx context.Context, l Locator, opts MkdirOptions) (Info, error) {
	return via(ctx, w, &Call{Method: MethodMkdir, Locator: l}, func(ctx context.Context) (Info, error) {
		return w.inner.Mkdir(ctx, l, opts)
	})
}

func (w *wrapped) Close() error {
	return w.run(context.Background(), &Call{Method: MethodClose}, func(context.Context) error {
		return w.inner.Close()
	})
}
