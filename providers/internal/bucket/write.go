package bucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"

	"github.com/wsmount/wsmount/providers"
)

// Write implements providers.Provider: one Put, or an upload in parts for a body that is too
// large for it, or of unknown size and over 16 MiB.
func (p *Provider) Write(ctx context.Context, l providers.Locator, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodWrite, l, func(at place) (providers.Info, error) {
		m, err := p.checkWrite(at, opts)
		if err != nil {
			return providers.Info{}, err
		}
		c, rest, large, err := p.prepare(ctx, body)
		if err != nil {
			return providers.Info{}, err
		}
		if !large && opts.Kind == providers.KindSymlink && c.Size == 0 {
			return providers.Info{}, Invalid("a link without target")
		}
		if !large {
			if c, m, err = p.tellTarget(ctx, c, m); err != nil {
				return providers.Info{}, err
			}
		}
		if err := p.allowed(ctx, at, opts.If, opts.Looked); err != nil {
			return p.settle(ctx, at, providers.Info{}, opts.If, opts.Op, err)
		}
		if large {
			return p.writeParts(ctx, at, rest, opts)
		}
		info, err := p.put(ctx, at.key, c, m, opts.If)
		info.Locator = l
		return p.settle(ctx, at, info, opts.If, opts.Op, err)
	})
}

// checkWrite refuses a Write that makes no sense, and gives the metadata to write.
func (p *Provider) checkWrite(at place, opts providers.WriteOptions) (meta, error) {
	switch {
	case at.l.IsRoot():
		return meta{}, Invalid("the root is a directory")
	case at.key == "":
		return meta{}, Invalid("%q cannot be a file", at.l)
	case opts.Kind == providers.KindDir || opts.Kind > providers.KindSymlink:
		return meta{}, Invalid("a %s cannot be written", opts.Kind)
	}
	if err := opts.If.Allows(providers.MethodWrite, wanted(opts.If)); err != nil {
		return meta{}, err
	}
	kind := opts.Kind
	if kind == providers.KindUnknown {
		kind = providers.KindFile
	}
	m := meta{kind: kind, attr: opts.Attr.Keep(attributes), user: clone(opts.Metadata), op: opts.Op}
	_, err := m.encode(p.service)
	return m, err
}

// wanted is an entry as the condition asks for it, so that Allows tells only
// whether the condition makes sense.
func wanted(c providers.Condition) *providers.Info {
	switch c.Kind {
	case providers.ConditionVersion:
		v := c.Version
		if v.ETag == "" {
			return nil
		}
		return &providers.Info{Kind: providers.KindFile, Version: v}
	case providers.ConditionDir:
		return &providers.Info{Kind: providers.KindDir}
	}
	return nil
}

// content is a body that can go out in one Put: it can be read again, and its MD5 is known ahead,
// so that the service refuses content that arrives damaged. Some services would else keep half a
// body whose sender went away.
type content struct {
	providers.Body
	sum [md5.Size]byte
}

// prepare reads the body once. large reports that it is more than a PUT takes, or more than
// should be in memory of a body that cannot be read twice; then the body is rest.
func (p *Provider) prepare(ctx context.Context, body providers.Body) (c content, rest providers.Body, large bool, err error) {
	again := rewinder(body)
	switch {
	case body.Size > p.service.Put, again == nil && body.Size > BufferSize:
		return content{}, body, true, nil
	case body.Size < 0, again == nil:
		return buffer(ctx, body)
	}
	sum := md5.New()
	if _, err := body.CopyTo(ctx, sum); err != nil {
		return content{}, body, false, err
	}
	if err := again(); err != nil {
		return content{}, body, false, fmt.Errorf("%w: %w", providers.ErrBody, err)
	}
	return content{body, [md5.Size]byte(sum.Sum(nil))}, body, false, nil
}

// buffer keeps a body in memory, up to a bound if its size is not known.
func buffer(ctx context.Context, body providers.Body) (c content, rest providers.Body, large bool, err error) {
	kept := &bytes.Buffer{}
	limited := body
	if body.Size < 0 {
		limited.Reader = io.LimitReader(body.Reader, BufferSize)
	}
	n, err := limited.CopyTo(ctx, kept)
	if err != nil {
		return content{}, body, false, err
	}
	if body.Size < 0 && n == BufferSize {
		return content{}, providers.Body{Reader: io.MultiReader(kept, body.Reader), Size: providers.SizeUnknown}, true, nil
	}
	return bytesBody(kept.Bytes()), body, false, nil
}

func bytesBody(b []byte) content { return content{Body: providers.Bytes(b), sum: md5.Sum(b)} }

// allowed checks the condition before a change, where the service does not decide it, unless the
// caller has checked it.
func (p *Provider) allowed(ctx context.Context, at place, c providers.Condition, looked bool) error {
	if p.honours.Hides && !looked && c.Kind != providers.ConditionVersion {
		d, err := p.lookDir(ctx, at)
		if err == nil && d.there {
			err = c.Allows(providers.MethodWrite, &providers.Info{Kind: providers.KindDir})
		}
		if err != nil {
			return err
		}
	}
	if p.honours.holds(c) {
		return nil
	}
	o, err := p.file(ctx, at)
	if err != nil && !errors.Is(err, providers.ErrNotExist) {
		return err
	}
	if err != nil {
		return c.Allows(providers.MethodWrite, nil)
	}
	info := o.info(at.l)
	return c.Allows(providers.MethodWrite, &info)
}

// settle interprets the end of a conditional change: it gives the contract's error for the
// service's, and success if the change was made already, because this repeats an operation whose
// answer got lost.
func (p *Provider) settle(ctx context.Context, at place, info providers.Info, c providers.Condition, op string, err error) (providers.Info, error) {
	if err == nil {
		return info, nil
	}
	err = conditionError(c, p.inTheWay(ctx, at, c, err))
	if op == "" || !errors.Is(err, providers.ErrConflict) && !errors.Is(err, providers.ErrExist) {
		return providers.Info{}, err
	}
	if done, ok := p.done(ctx, at, op); ok {
		return done, nil
	}
	return providers.Info{}, err
}

// inTheWay finds the cause of a failure that leaves it open. A service whose
// store is a file system (Versitygw) has no better word for an upload that cannot be
// completed because a directory has its name, and would never have another.
func (p *Provider) inTheWay(ctx context.Context, at place, c providers.Condition, err error) error {
	var f *Fault
	if c.Kind == providers.ConditionVersion || !errors.As(err, &f) || f.Doubt != DirInTheWay {
		return err
	}
	if d, lookErr := p.lookDir(ctx, at); lookErr != nil || !d.there {
		return err
	}
	return &Fault{Kind: providers.ErrIsDir, Code: f.Code, Status: f.Status, Err: f.Err}
}

// done reports whether operation op made the object at a place.
func (p *Provider) done(ctx context.Context, at place, op string) (providers.Info, bool) {
	o, err := p.file(ctx, at)
	if err != nil || op == "" || o.meta.op != op {
		return providers.Info{}, false
	}
	return o.info(at.l), true
}

// conditionError is the contract's error for err, of a change that creates.
func conditionError(c providers.Condition, err error) error {
	var f *Fault
	if !errors.As(err, &f) {
		return err
	}
	kind := f.Kind
	switch {
	case c.Kind == providers.ConditionAbsent && (kind == providers.ErrConflict || kind == providers.ErrIsDir): // of our own table
		kind = providers.ErrExist
	case c.Kind == providers.ConditionVersion && (kind == providers.ErrNotExist || kind == providers.ErrIsDir): // of our own table
		kind = providers.ErrConflict
	}
	return &Fault{Kind: kind, Code: f.Code, Status: f.Status, Err: f.Err}
}
