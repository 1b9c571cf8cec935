package s3

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/providers"
)

// copyMax is what one COPY takes; a part of a copy is as large.
const copyMax = 5 << 30

// Copy implements providers.Copier.
func (p *Provider) Copy(ctx context.Context, from, to providers.Locator, opts providers.CopyOptions) (providers.Info, error) {
	return do(ctx, p, providers.MethodCopy, from, func(source place) (providers.Info, error) {
		target, err := p.find(to)
		if err == nil {
			err = p.checkPlace(ctx, providers.MethodCopy, target)
		}
		if err == nil {
			_, err = checkWrite(target, providers.WriteOptions{If: opts.If, Metadata: opts.Metadata, Op: opts.Op})
		}
		if err != nil {
			return providers.Info{}, err
		}
		o, err := p.source(ctx, source, opts.Version)
		if err != nil {
			if done, ok := p.done(ctx, target, opts.Op); ok && opts.Op != "" {
				return done, nil // whatever the source is by now
			}
			return providers.Info{}, err
		}
		if err := p.allowed(ctx, target, opts.If, opts.Looked); err != nil {
			return providers.Info{}, err
		}
		o.meta = o.meta.with(opts.Attr, opts.Metadata, opts.Op)
		info, err := p.copy(ctx, o, target.key, opts.If)
		info.Locator = to
		return p.settle(ctx, target, info, opts.If, opts.Op, err)
	})
}

// source is the object to copy, in the version asked for.
func (p *Provider) source(ctx context.Context, at place, v providers.Version) (*object, error) {
	if at.l.IsRoot() {
		return nil, providers.ErrIsDir
	}
	o, err := p.file(ctx, at)
	switch {
	case errors.Is(err, providers.ErrNotExist):
		return nil, p.kindAt(ctx, at)
	case err == nil && !v.IsZero() && !v.Matches(o.version()):
		return nil, providers.ErrConflict
	}
	return o, err
}

// copy makes key from o, with o's metadata as they are by now. What of the
// ways keeps the condition, and costs least, is taken: COPY where the service
// honours conditions there, else parts, whose completion does.
func (p *Provider) copy(ctx context.Context, o *object, key string, c providers.Condition) (providers.Info, error) {
	raw, err := o.meta.encode()
	if err != nil {
		return providers.Info{}, err
	}
	guarded := c.Kind == providers.ConditionNone || p.probe.Copy
	switch {
	case o.size == 0:
		return p.put(ctx, key, bytesContent(nil), o.meta, c)
	case guarded && o.size <= copyMax:
		return p.copyWhole(ctx, o, key, raw, c)
	}
	return p.copyParts(ctx, o, key, raw, c)
}

// sourceOf is the header that names a source: bucket and key, percent-encoded.
func (p *Provider) sourceOf(key string) *string {
	segments := strings.Split(key, "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	}
	return aws.String(p.config.bucket + "/" + strings.Join(segments, "/"))
}

func (p *Provider) copyWhole(ctx context.Context, o *object, key string, raw map[string]string, c providers.Condition) (providers.Info, error) {
	h := o.meta.headers(key)
	in := &s3.CopyObjectInput{
		Bucket: &p.config.bucket, Key: &key, CopySource: p.sourceOf(o.key), CopySourceIfMatch: quote(o.etag),
		Metadata: raw, MetadataDirective: types.MetadataDirectiveReplace,
		ContentType: h.contentType, CacheControl: h.cacheControl, ContentDisposition: h.disposition,
		ContentEncoding: h.encoding, ContentLanguage: h.language, Expires: h.expiry(),
	}
	in.IfMatch, in.IfNoneMatch = p.match(c)
	began := p.now()
	out, err := call(ctx, p, p.client.CopyObject, in, nil)
	if err != nil {
		return providers.Info{}, err
	}
	if out.CopyObjectResult == nil {
		return providers.Info{}, fmt.Errorf("%w: the answer to a copy has no result", providers.ErrCorrupt)
	}
	made := object{
		key: key, size: o.size, etag: unquote(out.CopyObjectResult.ETag), modified: aws.ToTime(out.CopyObjectResult.LastModified),
		meta: o.meta.written(key), plain: isPlain(out.ServerSideEncryption, out.SSECustomerAlgorithm),
	}
	p.hints.wrote(&made, began, out.ResultMetadata)
	return made.info(providers.Locator{}), nil
}

func (p *Provider) copyParts(ctx context.Context, o *object, key string, raw map[string]string, c providers.Condition) (providers.Info, error) {
	u, err := p.begin(ctx, key, raw, o.meta)
	if err != nil {
		return providers.Info{}, err
	}
	u.cond = c
	for n, offset := 1, int64(0); offset < o.size; n, offset = n+1, offset+copyMax {
		if err = u.copyRange(ctx, n, o.key, o.etag, offset, min(copyMax, o.size-offset)); err != nil {
			break
		}
	}
	var info providers.Info
	if err == nil {
		info, err = u.complete(ctx)
	}
	if err != nil {
		// AbortParts finds what stays.
		_ = u.abort(context.WithoutCancel(ctx))
	}
	return info, err
}

// clone keeps a caller's map out of ours.
func clone(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return maps.Clone(m)
}
