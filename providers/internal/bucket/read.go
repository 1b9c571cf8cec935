package bucket

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// object is an Object and its decoded metadata.
type object struct {
	Object
	meta meta
}

// read decodes an object that the service described.
func read(told Object) *object { return &object{told, decode(told.Key, told.Metadata, told.Headers)} }

// Version is how every verb tells it.
func (o *Object) Version() providers.Version {
	v := providers.Version{ETag: o.ETag, Size: o.Size}
	if !o.Modified.IsZero() {
		v.Modified = o.Modified.Truncate(time.Second).UnixNano()
	}
	return v
}

func (o *object) info(l providers.Locator) providers.Info {
	info := providers.Info{Locator: l, Kind: o.meta.kind, Size: o.Size, Version: o.Version(), Attr: o.meta.attr, Metadata: o.meta.user}
	if target := o.meta.apart(); target != "" {
		info.Size = int64(len(target))
	} else if o.MD5 != "" {
		info.Digest = "md5:" + o.MD5
	}
	return info
}

// tell adds the object's attributes to a listing entry.
func (o *object) tell(info *providers.Info) {
	if o.isMarker() {
		info.Attr, info.Metadata = o.meta.attr, o.meta.user
		return
	}
	*info = o.info(info.Locator)
}

// isMarker: a key that ends in a slash and has no content is a directory.
func (o *object) isMarker() bool { return isMarker(o.Key, o.Size) }

func isMarker(key string, size int64) bool {
	return size == 0 && (key == "" || strings.HasSuffix(key, "/"))
}

// file is head for anything but a directory.
func (p *Provider) file(ctx context.Context, at place) (*object, error) {
	if at.key == "" {
		return nil, &Fault{Kind: providers.ErrNotExist}
	}
	o, err := p.head(ctx, at.key)
	if err == nil && o.isMarker() {
		return nil, &Fault{Kind: providers.ErrNotExist}
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

// kindAt tells why there is no file at a place: ErrIsDir, or ErrNotExist.
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
			return p.past(ctx, at, opts)
		case errors.Is(err, providers.ErrNotExist):
			err = p.kindAt(ctx, at)
		}
		return content, err
	})
}

// past reads the version of an object that opts ask for, which is not the present one.
func (p *Provider) past(ctx context.Context, at place, opts providers.ReadOptions) (providers.Content, error) {
	id, err := p.store.Past(ctx, at.key, opts.Version)
	if err != nil {
		return providers.Content{}, err
	}
	return p.get(ctx, at, id, opts)
}

// get reads an object; with an id, the version of that id instead of the current one.
func (p *Provider) get(ctx context.Context, at place, id string, opts providers.ReadOptions) (providers.Content, error) {
	told, stream, err := p.store.Get(ctx, at.key, Range{Offset: opts.Offset, Length: opts.Length, ETag: opts.Version.ETag, ID: id})
	if id == "" && doubtOf(err) == RangeBeyond {
		return p.beyond(ctx, at, opts)
	}
	if err != nil {
		return providers.Content{}, err
	}
	o := read(told)
	if id == "" {
		p.index.saw(o)
	}
	if err := o.checkPinned(opts.Version); err != nil {
		stream.Close()
		return providers.Content{}, err
	}
	if o.meta.apart() != "" {
		stream.Close()
		return o.targetContent(at.l, opts), nil
	}
	body := &incoming{ctx: ctx, service: p.service.Name, body: stream, left: opts.Span(o.Size), l: at.l}
	return providers.Content{Info: o.info(at.l), Body: body}, nil
}

// checkPinned compares more than If-Match does: the time, and that it is no directory.
func (o *object) checkPinned(v providers.Version) error {
	switch {
	case o.isMarker():
		return providers.ErrNotExist
	case !v.IsZero() && !v.Matches(o.Version()):
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
	if !opts.Version.IsZero() && !opts.Version.Matches(o.Version()) {
		return providers.Content{}, providers.ErrConflict
	}
	if o.meta.apart() != "" {
		return o.targetContent(at.l, opts), nil
	}
	if opts.Span(o.Size) > 0 { // it has grown between the two requests
		return providers.Content{}, providers.ErrConflict
	}
	return providers.Content{Info: o.info(at.l), Body: http.NoBody}, nil
}
