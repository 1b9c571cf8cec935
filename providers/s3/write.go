package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/wsmount/wsmount/providers"
)

const (
	putMax     = 5 << 30  // bytes in one PUT
	bufferSize = 16 << 20 // of a body of unknown size, before it goes out in parts
)

// Write implements providers.Provider: one PUT, or an upload in parts for what
// is over 5 GiB, or of unknown size and over 16 MiB.
func (p *Provider) Write(ctx context.Context, l providers.Locator, body providers.Body, opts providers.WriteOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodWrite, l, func(at place) (providers.Info, error) {
		m, err := checkWrite(at, opts)
		if err != nil {
			return providers.Info{}, err
		}
		c, rest, large, err := prepare(ctx, body)
		if err != nil {
			return providers.Info{}, err
		}
		if !large && opts.Kind == providers.KindSymlink && c.Size == 0 {
			return providers.Info{}, invalid("a link without target")
		}
		if err := p.allowed(ctx, at, opts.If, opts.Looked); err != nil {
			return providers.Info{}, err
		}
		if large {
			return p.writeParts(ctx, at, rest, opts)
		}
		info, err := p.put(ctx, at.key, c, m, opts.If)
		info.Locator = l
		return p.settle(ctx, at, info, opts.If, opts.Op, err)
	})
}

// checkWrite refuses what makes no sense, and gives the metadata to write.
func checkWrite(at place, opts providers.WriteOptions) (meta, error) {
	switch {
	case at.l.IsRoot():
		return meta{}, invalid("the root is a directory")
	case at.key == "":
		return meta{}, invalid("%q cannot be a file", at.l)
	case opts.Kind == providers.KindDir || opts.Kind > providers.KindSymlink:
		return meta{}, invalid("a %s cannot be written", opts.Kind)
	}
	if err := opts.If.Allows(providers.MethodWrite, wanted(opts.If)); err != nil {
		return meta{}, err
	}
	kind := opts.Kind
	if kind == providers.KindUnknown {
		kind = providers.KindFile
	}
	m := meta{kind: kind, attr: opts.Attr.Keep(attributes), user: clone(opts.Metadata), op: opts.Op}
	_, err := m.encode()
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

// content is a body that can go out in one PUT: it can be read again, and its
// MD5 is known ahead, so that the service refuses what does not arrive as it
// was. Some services would else keep a half body whose sender went away.
type content struct {
	providers.Body
	start int64
	sum   [md5.Size]byte
}

// prepare reads the body once. large says that it is more than a PUT takes,
// or more than should be in memory of a body that cannot be read twice; it is
// rest then.
func prepare(ctx context.Context, body providers.Body) (c content, rest providers.Body, large bool, err error) {
	seeker, start := seekable(body)
	switch {
	case body.Size > putMax, seeker == nil && body.Size > bufferSize:
		return content{}, body, true, nil
	case seeker == nil:
		return buffer(ctx, body)
	}
	c = content{Body: body, start: start}
	sum := md5.New()
	if _, err := body.CopyTo(ctx, sum); err != nil {
		return content{}, body, false, err
	}
	c.sum = [md5.Size]byte(sum.Sum(nil))
	return c, body, false, c.rewind()
}

// seekable is body's Reader and where it stands, if it can go back.
func seekable(body providers.Body) (io.Seeker, int64) {
	s, ok := body.Reader.(io.Seeker)
	if !ok || body.Size < 0 {
		return nil, 0
	}
	start, err := s.Seek(0, io.SeekCurrent)
	if err != nil { // a pipe
		return nil, 0
	}
	return s, start
}

// buffer keeps a body in memory, up to a bound if its size is not known.
func buffer(ctx context.Context, body providers.Body) (c content, rest providers.Body, large bool, err error) {
	kept := &bytes.Buffer{}
	limited := body
	if body.Size < 0 {
		limited.Reader = io.LimitReader(body.Reader, bufferSize)
	}
	n, err := limited.CopyTo(ctx, kept)
	if err != nil {
		return content{}, body, false, err
	}
	if body.Size < 0 && n == bufferSize {
		return content{}, providers.Body{Reader: io.MultiReader(kept, body.Reader), Size: providers.SizeUnknown}, true, nil
	}
	return bytesContent(kept.Bytes()), body, false, nil
}

func bytesContent(b []byte) content { return content{Body: providers.Bytes(b), sum: md5.Sum(b)} }

func (c content) rewind() error {
	if _, err := c.Reader.(io.Seeker).Seek(c.start, io.SeekStart); err != nil {
		return fmt.Errorf("%w: %w", providers.ErrBody, err)
	}
	return nil
}

// allowed looks before a change, where the service does not decide itself, unless
// the caller has looked.
func (p *Provider) allowed(ctx context.Context, at place, c providers.Condition, looked bool) error {
	if p.probe.Hides && !looked && c.Kind != providers.ConditionVersion {
		d, err := p.lookDir(ctx, at)
		if err == nil && d.there {
			err = c.Allows(providers.MethodWrite, &providers.Info{Kind: providers.KindDir})
		}
		if err != nil {
			return err
		}
	}
	if p.probe.guards(c) == providers.GuardAtomic {
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

// match is a condition as the headers of PUT, COPY and Complete say it.
func (p *Provider) match(c providers.Condition) (ifMatch, ifNoneMatch *string) {
	switch {
	case p.probe.guards(c) != providers.GuardAtomic:
	case c.Kind == providers.ConditionAbsent:
		return nil, aws.String("*")
	case c.Kind == providers.ConditionVersion:
		return quote(c.Version.ETag), nil
	}
	return nil, nil
}

// unsigned leaves the body out of the signature: it is sent as it is read.
var unsigned = s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)

// put sends one PUT, and again where writers met each other. The info lacks a
// Locator.
func (p *Provider) put(ctx context.Context, key string, body content, m meta, c providers.Condition) (providers.Info, error) {
	raw, err := m.encode()
	if err != nil {
		return providers.Info{}, err
	}
	for attempt := 0; ; attempt++ {
		info, err := p.putOnce(ctx, key, body, raw, m, c)
		if !meetsOthers(err) || attempt == 3 {
			return info, err
		}
		err = pause(ctx, attempt)
		if err == nil {
			err = body.rewind()
		}
		if err != nil {
			return providers.Info{}, err
		}
	}
}

// meetsOthers: AWS did not decide between writers that came at the same time.
func meetsOthers(err error) bool { return isCode(err, "ConditionalRequestConflict") }

// pause waits for a random time that grows with each attempt.
func pause(ctx context.Context, attempt int) error {
	t := time.NewTimer(time.Duration(rand.Int64N(int64(50*time.Millisecond) << attempt)))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (p *Provider) putOnce(ctx context.Context, key string, body content, raw map[string]string, m meta, c providers.Condition) (providers.Info, error) {
	began := p.now()
	out := newOutgoing(ctx, body.Body)
	in := &s3.PutObjectInput{
		Bucket: &p.config.bucket, Key: &key, Metadata: raw, ContentLength: &body.Size, Body: out,
		ContentMD5: aws.String(base64.StdEncoding.EncodeToString(body.sum[:])),
	}
	in.IfMatch, in.IfNoneMatch = p.match(c)
	h := m.headers(key)
	in.ContentType, in.CacheControl, in.ContentDisposition = h.contentType, h.cacheControl, h.disposition
	in.ContentEncoding, in.ContentLanguage, in.Expires = h.encoding, h.language, h.expiry()
	answer, err := call(ctx, p, p.client.PutObject, in, func() bool {
		_ = out.stop() // the first attempt is over, however it ended
		out = newOutgoing(ctx, body.Body)
		in.Body = out
		return body.rewind() == nil
	}, unsigned)
	if bodyErr := out.stop(); bodyErr != nil && ctx.Err() == nil {
		return providers.Info{}, bodyErr
	}
	if err != nil {
		return providers.Info{}, err
	}
	o := object{key: key, size: body.Size, etag: unquote(answer.ETag), meta: m.written(key)}
	o.plain = p.probe.MD5 && isPlain(answer.ServerSideEncryption, answer.SSECustomerAlgorithm)
	p.hints.wrote(&o, began, answer.ResultMetadata)
	return o.info(providers.Locator{}), o.checkSent(hex.EncodeToString(body.sum[:]))
}

// checkSent compares what the service has with what was sent, in case that it
// does not look at Content-MD5.
func (o *object) checkSent(sent string) error {
	if o.plain && isMD5(o.etag) && o.etag != sent {
		return fmt.Errorf("%w: sent content with MD5 %s, the service has %s", providers.ErrCorrupt, sent, o.etag)
	}
	return nil
}

// settle says what the end of a conditional change means: which error the
// contract wants for the service's, and whether the change is there already
// because this is the repetition of one whose answer got lost.
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

// inTheWay finds out what a failure that says nothing is about. A service whose
// store is a file system (Versitygw) has no better word for an upload that cannot be
// completed because a directory has its name, and would never have another.
func (p *Provider) inTheWay(ctx context.Context, at place, c providers.Condition, err error) error {
	var f *fault
	if c.Kind == providers.ConditionVersion || !isCode(err, "InternalError") || !errors.As(err, &f) {
		return err
	}
	if d, lookErr := p.lookDir(ctx, at); lookErr != nil || !d.there {
		return err
	}
	return &fault{kind: providers.ErrIsDir, code: f.code, status: f.status, err: f.err}
}

// done looks whether operation op left what is at a place.
func (p *Provider) done(ctx context.Context, at place, op string) (providers.Info, bool) {
	o, err := p.file(ctx, at)
	if err != nil || op == "" || o.meta.op != op {
		return providers.Info{}, false
	}
	return o.info(at.l), true
}

// conditionError is err as the contract has it for a change that creates.
func conditionError(c providers.Condition, err error) error {
	var f *fault
	if !errors.As(err, &f) {
		return err
	}
	kind := f.kind
	switch {
	case c.Kind == providers.ConditionAbsent && (kind == providers.ErrConflict || kind == providers.ErrIsDir): // of our own table
		kind = providers.ErrExist
	case c.Kind == providers.ConditionVersion && (kind == providers.ErrNotExist || kind == providers.ErrIsDir): // of our own table
		kind = providers.ErrConflict
	}
	return &fault{kind: kind, code: f.code, status: f.status, err: f.err}
}
