package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/wsmount/wsmount/providers"
)

// object is what the service says of one.
type object struct {
	key      string
	size     int64
	etag     string // without quotes
	modified time.Time
	meta     meta
	plain    bool // an ETag that looks like an MD5 is one
}

// version is how every verb tells it.
func (o *object) version() providers.Version {
	v := providers.Version{ETag: o.etag, Size: o.size}
	if !o.modified.IsZero() {
		v.Modified = o.modified.Truncate(time.Second).UnixNano()
	}
	return v
}

func (o *object) info(l providers.Locator) providers.Info {
	info := providers.Info{Locator: l, Kind: o.meta.kind, Size: o.size, Version: o.version(), Attr: o.meta.attr, Metadata: o.meta.user}
	if o.meta.target != "" {
		info.Size = int64(len(o.meta.target))
	} else if o.plain && isMD5(o.etag) {
		info.Digest = "md5:" + o.etag
	}
	return info
}

func isMD5(etag string) bool {
	return len(etag) == 32 && strings.Trim(etag, "0123456789abcdef") == ""
}

// isMarker: a key that ends in a slash and has no content is a directory.
func (o *object) isMarker() bool { return isMarker(o.key, o.size) }

func isMarker(key string, size int64) bool {
	return size == 0 && (key == "" || strings.HasSuffix(key, "/"))
}

func unquote(etag *string) string { return strings.Trim(aws.ToString(etag), `"`) }

func quote(etag string) *string { return aws.String(`"` + etag + `"`) }

// isPlain: with these encryptions an ETag is no MD5.
func isPlain(sse types.ServerSideEncryption, customer *string) bool {
	return (sse == "" || sse == types.ServerSideEncryptionAes256) && aws.ToString(customer) == ""
}

// head asks for one object. Markers count. The answer to a HEAD has no text, so
// one that refuses is followed by a LIST, which says why: a clock that is wrong
// passes, what is not allowed does not. Where the LIST is allowed, what refused the HEAD
// may be over by then, and only a second refusal is one of this object.
func (p *Provider) head(ctx context.Context, key string) (*object, error) {
	o, err := p.headAlone(ctx, key)
	if !isBare(err) {
		return o, err
	}
	_, listErr := p.list(ctx, &s3.ListObjectsV2Input{Prefix: &key, MaxKeys: aws.Int32(1)})
	switch {
	case listErr == nil:
		return p.headAlone(ctx, key)
	case isBare(listErr):
		return nil, err
	}
	return nil, listErr
}

// headAlone is head for who has just been answered otherwise.
func (p *Provider) headAlone(ctx context.Context, key string) (*object, error) {
	if key == "" {
		return nil, &fault{kind: providers.ErrNotExist}
	}
	out, err := call(ctx, p, p.client.HeadObject, &s3.HeadObjectInput{Bucket: &p.config.bucket, Key: &key}, nil)
	if err != nil {
		return nil, err
	}
	o := &object{
		key: key, size: aws.ToInt64(out.ContentLength), etag: unquote(out.ETag), modified: aws.ToTime(out.LastModified),
		plain: isPlain(out.ServerSideEncryption, out.SSECustomerAlgorithm),
		meta: decode(key, out.Metadata, headers{out.ContentType, out.CacheControl, out.ContentDisposition, out.ContentEncoding,
			out.ContentLanguage, out.ExpiresString}.stored(answeredAt(out.ResultMetadata))),
	}
	p.hints.saw(o)
	return o, nil
}

// answeredAt is when a service says that it answered; zero: it does not say.
func answeredAt(m middleware.Metadata) time.Time {
	t, _ := awsmiddleware.GetServerTime(m)
	return t
}

// file is head for what is no directory.
func (p *Provider) file(ctx context.Context, at place) (*object, error) {
	if at.key == "" {
		return nil, &fault{kind: providers.ErrNotExist}
	}
	o, err := p.head(ctx, at.key)
	if err == nil && o.isMarker() {
		return nil, &fault{kind: providers.ErrNotExist}
	}
	return o, err
}

// Stat implements providers.Provider. A directory costs a HEAD and a LIST, and
// another HEAD if it has a marker: asking all at once would be quicker, and
// dearer for every file.
func (p *Provider) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	return do(ctx, p, providers.MethodStat, l, func(at place) (providers.Info, error) {
		if l.IsRoot() {
			return providers.Info{Kind: providers.KindDir}, nil
		}
		o, err := p.file(ctx, at)
		if err == nil {
			return o.info(l), nil
		}
		return p.statDir(ctx, at, err)
	})
}

// statDir describes the directory at a place where no file was found, for the
// reason given. Any refusal of a HEAD comes here too: the LIST says why.
func (p *Provider) statDir(ctx context.Context, at place, why error) (providers.Info, error) {
	if !errors.Is(why, providers.ErrNotExist) && !errors.Is(why, providers.ErrInvalid) {
		return providers.Info{}, why
	}
	d, err := p.lookDir(ctx, at)
	if err != nil {
		return providers.Info{}, err
	}
	switch {
	case d.refused:
		return providers.Info{}, providers.ErrNotExist
	case !d.there:
		return providers.Info{}, why
	}
	info := providers.Info{Locator: at.l, Kind: providers.KindDir}
	if !d.marked {
		return info, nil
	}
	marker, err := p.head(ctx, at.dir)
	switch {
	case errors.Is(err, providers.ErrNotExist):
		return info, nil // gone since
	case err != nil:
		return providers.Info{}, err
	}
	info.Attr, info.Metadata = marker.meta.attr, marker.meta.user
	return info, nil
}

// kindAt says why there is no file at a place: ErrIsDir, or ErrNotExist.
func (p *Provider) kindAt(ctx context.Context, at place) error {
	d, err := p.lookDir(ctx, at)
	switch {
	case err != nil:
		return err
	case d.there:
		return providers.ErrIsDir
	}
	return providers.ErrNotExist
}

// Read implements providers.Provider.
func (p *Provider) Read(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	return do(ctx, p, providers.MethodRead, l, func(at place) (providers.Content, error) {
		if err := opts.Check(); err != nil {
			return providers.Content{}, err
		}
		if l.IsRoot() || at.key == "" {
			return providers.Content{}, p.kindAt(ctx, at)
		}
		content, err := p.get(ctx, at, "", opts)
		switch isOther := errors.Is(err, providers.ErrNotExist) || errors.Is(err, providers.ErrConflict); {
		case isOther && opts.Past && opts.Version.ETag != "":
			return p.past.read(ctx, at, opts)
		case errors.Is(err, providers.ErrNotExist):
			err = p.kindAt(ctx, at)
		}
		return content, err
	})
}

// get reads an object; with an id, the version of that id, which is not what is there.
func (p *Provider) get(ctx context.Context, at place, id string, opts providers.ReadOptions) (providers.Content, error) {
	in := &s3.GetObjectInput{Bucket: &p.config.bucket, Key: &at.key, Range: byteRange(opts)}
	if opts.Version.ETag != "" {
		in.IfMatch = quote(opts.Version.ETag)
	}
	if id != "" {
		in.VersionId = &id
	}
	out, err := call(ctx, p, p.client.GetObject, in, nil)
	if id == "" && isStatus(err, http.StatusRequestedRangeNotSatisfiable) {
		return p.beyond(ctx, at, opts)
	}
	if err != nil {
		return providers.Content{}, err
	}
	o := &object{
		key: at.key, etag: unquote(out.ETag), modified: aws.ToTime(out.LastModified), size: aws.ToInt64(out.ContentLength),
		plain: isPlain(out.ServerSideEncryption, out.SSECustomerAlgorithm),
		meta: decode(at.key, out.Metadata, headers{out.ContentType, out.CacheControl, out.ContentDisposition, out.ContentEncoding,
			out.ContentLanguage, out.ExpiresString}.stored(answeredAt(out.ResultMetadata))),
	}
	err = o.checkRange(in.Range, aws.ToString(out.ContentRange))
	if err == nil {
		if id == "" {
			p.hints.saw(o)
		}
		err = o.checkPinned(opts.Version)
	}
	if err != nil {
		out.Body.Close()
		return providers.Content{}, err
	}
	if o.meta.target != "" {
		out.Body.Close()
		return o.targetContent(at.l, opts), nil
	}
	body := &incoming{ctx: ctx, body: out.Body, left: opts.Span(o.size), l: at.l}
	return providers.Content{Info: o.info(at.l), Body: body}, nil
}

// byteRange is the header for a range, nil for all.
func byteRange(opts providers.ReadOptions) *string {
	switch {
	case opts.Length > 0:
		last := opts.Offset + opts.Length - 1
		if last < opts.Offset { // past the last number there is
			return aws.String(fmt.Sprintf("bytes=%d-", opts.Offset))
		}
		return aws.String(fmt.Sprintf("bytes=%d-%d", opts.Offset, last))
	case opts.Offset > 0:
		return aws.String(fmt.Sprintf("bytes=%d-", opts.Offset))
	}
	return nil
}

// checkRange learns the size of the whole from the answer to a range.
func (o *object) checkRange(asked *string, got string) error {
	if asked == nil {
		return nil
	}
	_, total, ok := strings.Cut(got, "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if !ok || err != nil {
		return fmt.Errorf("%w: asked for %s, got %q", providers.ErrCorrupt, *asked, got)
	}
	o.size = size
	return nil
}

// checkPinned compares what If-Match does not: the time, and whether there is
// anything at all.
func (o *object) checkPinned(v providers.Version) error {
	switch {
	case o.isMarker():
		return providers.ErrNotExist
	case !v.IsZero() && !v.Matches(o.version()):
		return providers.ErrConflict
	}
	return nil
}

// targetContent is the content of a link that has its target in metadata.
func (o *object) targetContent(l providers.Locator, opts providers.ReadOptions) providers.Content {
	target := o.meta.target[min(opts.Offset, int64(len(o.meta.target))):]
	target = target[:opts.Span(int64(len(o.meta.target)))]
	return providers.Content{Info: o.info(l), Body: io.NopCloser(strings.NewReader(target))}
}

// beyond is the answer for a range past the end, which is no error.
func (p *Provider) beyond(ctx context.Context, at place, opts providers.ReadOptions) (providers.Content, error) {
	o, err := p.file(ctx, at)
	if err != nil {
		return providers.Content{}, err
	}
	if !opts.Version.IsZero() && !opts.Version.Matches(o.version()) {
		return providers.Content{}, providers.ErrConflict
	}
	if o.meta.target != "" {
		return o.targetContent(at.l, opts), nil
	}
	if opts.Span(o.size) > 0 { // it has grown between the two requests
		return providers.Content{}, providers.ErrConflict
	}
	return providers.Content{Info: o.info(at.l), Body: http.NoBody}, nil
}

func isStatus(err error, status int) bool {
	var f *fault
	return errors.As(err, &f) && f.status == status
}
