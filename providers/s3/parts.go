package s3

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/providers"
)

// What S3 takes.
const (
	partMin   = 5 << 20
	partMax   = 5 << 30
	partCount = 10_000
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
	m, err := checkWrite(at, opts)
	if err != nil {
		return nil, err
	}
	if m.op == "" {
		m.op = rand.Text() // a repeated Complete finds its own work by it
	}
	raw, err := m.encode()
	if err != nil {
		return nil, err
	}
	u, err := p.begin(ctx, at.key, raw, m)
	if err != nil {
		return nil, conditionError(opts.If, err)
	}
	u.at, u.cond, u.looked = at, opts.If, opts.Looked
	return u, nil
}

// upload implements providers.Upload.
type upload struct {
	p      *Provider
	at     place
	key    string
	id     string
	meta   meta
	made   time.Time // when it began
	cond   providers.Condition
	looked bool // as in WriteOptions

	mu    sync.Mutex // guards all below
	parts map[int]part
	done  bool
}

type part struct {
	etag string
	size int64
}

// begin starts an upload at the service.
func (p *Provider) begin(ctx context.Context, key string, raw map[string]string, m meta) (*upload, error) {
	h := m.headers(key)
	made := p.now()
	out, err := call(ctx, p, p.client.CreateMultipartUpload, &s3.CreateMultipartUploadInput{
		Bucket: &p.config.bucket, Key: &key, Metadata: raw, ContentType: h.contentType, CacheControl: h.cacheControl,
		ContentDisposition: h.disposition, ContentEncoding: h.encoding, ContentLanguage: h.language, Expires: h.expiry(),
	}, nil)
	if err != nil {
		return nil, err
	}
	return &upload{p: p, key: key, id: aws.ToString(out.UploadId), meta: m, made: made, parts: map[int]part{}}, nil
}

// verb is do for the methods of an upload.
func (u *upload) verb(ctx context.Context, op providers.Method, f func() error) error {
	err := u.p.ready(ctx)
	if err == nil {
		err = f()
	}
	return fail(ctx, op, u.at.l, err)
}

func (u *upload) keep(n int, p part) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.parts[n] = p
}

func checkPart(n int, size int64) error {
	switch {
	case n < 1 || n > partCount:
		return invalid("part %d of at most %d", n, partCount)
	case size > partMax:
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
				return invalid("a part of over %d bytes needs a known size", bufferSize)
			}
			body = c.Body
		}
		if err := checkPart(n, body.Size); err != nil {
			return err
		}
		return u.send(ctx, n, body)
	})
}

// send streams a part. What arrives wrong is noticed afterwards, which is soon
// enough: nobody sees a part before it is completed.
func (u *upload) send(ctx context.Context, n int, body providers.Body) error {
	out := newOutgoing(ctx, body)
	if err := out.start(); err != nil {
		return err
	}
	in := &s3.UploadPartInput{Bucket: &u.p.config.bucket, Key: &u.key, UploadId: &u.id, PartNumber: aws.Int32(int32(n)),
		ContentLength: &body.Size, Body: out}
	again := rewinder(body)
	answer, err := call(ctx, u.p, u.p.client.UploadPart, in, func() bool {
		_ = out.stop() // the first attempt is over, however it ended
		if !again() {
			return false
		}
		out = newOutgoing(ctx, body)
		in.Body = out
		return true
	}, unsigned)
	if bodyErr := out.stop(); bodyErr != nil && ctx.Err() == nil {
		return bodyErr
	}
	if err != nil {
		return err
	}
	o := object{etag: unquote(answer.ETag), plain: u.p.probe.MD5 && isPlain(answer.ServerSideEncryption, answer.SSECustomerAlgorithm)}
	if err := o.checkSent(out.digest()); err != nil {
		return err
	}
	u.keep(n, part{o.etag, body.Size})
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
			return invalid("a part to copy needs a version and bytes")
		}
		if err := checkPart(n, size); err != nil {
			return err
		}
		return u.copyRange(ctx, n, source.key, opts.Version.ETag, opts.Offset, size)
	})
}

func (u *upload) copyRange(ctx context.Context, n int, from, etag string, offset, size int64) error {
	out, err := call(ctx, u.p, u.p.client.UploadPartCopy, &s3.UploadPartCopyInput{
		Bucket: &u.p.config.bucket, Key: &u.key, UploadId: &u.id, PartNumber: aws.Int32(int32(n)),
		CopySource: u.p.sourceOf(from), CopySourceIfMatch: quote(etag),
		CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+size-1)),
	}, nil)
	if isCode(err, "InvalidArgument") || isCode(err, "InvalidRange") {
		return u.p.whyRange(ctx, from, etag, err)
	}
	if err != nil {
		return err
	}
	if out.CopyPartResult == nil {
		return fmt.Errorf("%w: the answer to a copy has no result", providers.ErrCorrupt)
	}
	u.keep(n, part{unquote(out.CopyPartResult.ETag), size})
	return nil
}

// whyRange looks why a service does not take a range. A source that has changed may
// be shorter, and some services look at that before the condition.
func (p *Provider) whyRange(ctx context.Context, from, etag string, refused error) error {
	o, err := p.head(ctx, from)
	switch {
	case errors.Is(err, providers.ErrNotExist), err == nil && o.etag != etag:
		return &fault{kind: providers.ErrConflict, err: errors.New("the source has changed")}
	case err != nil:
		return err
	}
	return refused
}

// Complete implements providers.Upload.
func (u *upload) Complete(ctx context.Context) (info providers.Info, err error) {
	err = u.verb(ctx, providers.MethodComplete, func() error {
		if err := u.p.allowed(ctx, u.at, u.cond, u.looked); err != nil {
			if done, ok := u.p.done(ctx, u.at, u.meta.op); ok {
				info = done
				return nil
			}
			return err
		}
		info, err = u.complete(ctx)
		info.Locator = u.at.l
		if isCode(err, "NoSuchUpload") { // completed before, or aborted
			err = &fault{kind: providers.ErrConflict, code: "NoSuchUpload", err: errors.New("the upload is gone")}
		}
		info, err = u.p.settle(ctx, u.at, info, u.cond, u.meta.op, err)
		return err
	})
	return info, err
}

// complete sends the completion, again where writers met each other. Without
// parts there is nothing to complete, and the content is empty.
func (u *upload) complete(ctx context.Context) (providers.Info, error) {
	parts, size := u.list()
	if len(parts) == 0 {
		info, err := u.p.put(ctx, u.key, bytesContent(nil), u.meta, u.cond)
		if err == nil {
			err = u.abort(ctx)
		}
		return info, err
	}
	in := &s3.CompleteMultipartUploadInput{Bucket: &u.p.config.bucket, Key: &u.key, UploadId: &u.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}}
	in.IfMatch, in.IfNoneMatch = u.p.match(u.cond)
	for attempt := 0; ; attempt++ {
		out, err := call(ctx, u.p, u.p.client.CompleteMultipartUpload, in, nil)
		if meetsOthers(err) && attempt < 3 {
			if err := pause(ctx, attempt); err != nil {
				return providers.Info{}, err
			}
			continue
		}
		if err != nil {
			return providers.Info{}, err
		}
		u.mu.Lock()
		u.done = true
		u.mu.Unlock()
		o := object{key: u.key, size: size, etag: unquote(out.ETag), meta: u.meta.written(u.key)}
		u.p.hints.wrote(&o, u.made, out.ResultMetadata)
		return o.info(providers.Locator{}), nil
	}
}

// list is the parts in order, and their size.
func (u *upload) list() (parts []types.CompletedPart, size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for n, part := range u.parts {
		parts = append(parts, types.CompletedPart{PartNumber: aws.Int32(int32(n)), ETag: quote(part.etag)})
		size += part.size
	}
	slices.SortFunc(parts, func(a, b types.CompletedPart) int { return cmp.Compare(*a.PartNumber, *b.PartNumber) })
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
	return u.p.abortUpload(ctx, u.key, u.id)
}

// abortUpload frees an upload; one that is gone is freed.
func (p *Provider) abortUpload(ctx context.Context, key, id string) error {
	_, err := call(ctx, p, p.client.AbortMultipartUpload, &s3.AbortMultipartUploadInput{Bucket: &p.config.bucket, Key: &key, UploadId: &id}, nil)
	if errors.Is(err, providers.ErrNotExist) {
		return nil
	}
	return err
}

// AbortParts implements providers.Multiparter.
func (p *Provider) AbortParts(ctx context.Context, before time.Time) (int, error) {
	count := 0
	_, err := do(ctx, p, providers.MethodAbortParts, providers.Locator{}, func(place) (struct{}, error) {
		var err error
		count, err = p.abortBefore(ctx, p.config.prefix, before)
		if err == nil && count == 0 && p.config.prefix != "" {
			// MinIO lists uploads of one whole key, or of the whole bucket,
			// which others may not let us see.
			if count, err = p.abortBefore(ctx, "", before); errors.Is(err, providers.ErrPermission) {
				err = nil
			}
		}
		return struct{}{}, err
	})
	return count, err
}

// abortBefore aborts the uploads below our prefix among those below another.
func (p *Provider) abortBefore(ctx context.Context, prefix string, before time.Time) (count int, err error) {
	in := &s3.ListMultipartUploadsInput{Bucket: &p.config.bucket, Prefix: nonEmpty(prefix)}
	for {
		out, err := call(ctx, p, p.client.ListMultipartUploads, in, nil)
		if err != nil {
			return count, err
		}
		for _, u := range out.Uploads {
			if !strings.HasPrefix(aws.ToString(u.Key), p.config.prefix) || !aws.ToTime(u.Initiated).Before(before) {
				continue
			}
			if err := p.abortUpload(ctx, *u.Key, aws.ToString(u.UploadId)); err != nil {
				return count, err
			}
			count++
		}
		if !aws.ToBool(out.IsTruncated) {
			return count, nil
		}
		in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
	}
}
