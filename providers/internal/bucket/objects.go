package bucket

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/wsmount/wsmount/providers"
)

// objects are the service's objects below a prefix. The attributes that their answers tell are
// kept in the index.
type objects struct {
	store   Store
	service Service
	prefix  string
	log     *slog.Logger
	now     func() time.Time
	honours Honours
	index   *index
}

// head asks for one object. Markers count. A refusal without words is followed by a LIST, which
// tells the reason: a wrong clock passes, a missing permission does not. Where the LIST is
// allowed, the cause may have passed in the meantime, and only a second refusal is one of this
// object.
func (b *objects) head(ctx context.Context, key string) (*object, error) {
	o, err := b.headAlone(ctx, key)
	if doubtOf(err) != NoReason {
		return o, err
	}
	_, listErr := b.list(ctx, Query{Prefix: key, Limit: 1})
	switch {
	case listErr == nil:
		return b.headAlone(ctx, key)
	case doubtOf(listErr) == NoReason:
		return nil, err
	}
	return nil, listErr
}

// headAlone is head without the LIST.
func (b *objects) headAlone(ctx context.Context, key string) (*object, error) {
	if key == "" {
		return nil, &Fault{Kind: providers.ErrNotExist}
	}
	told, err := b.store.Head(ctx, key)
	if err != nil {
		return nil, err
	}
	o := read(told)
	b.index.saw(o)
	return o, nil
}

// listing is a page of keys, put in their order.
type listing struct {
	Listing
	ordered bool // the service sent them so
}

func byKey(a, b Item) int { return cmp.Compare(a.Key, b.Key) }

// list sends one LIST.
func (b *objects) list(ctx context.Context, q Query) (listing, error) {
	answer, err := b.store.List(ctx, q)
	if err != nil {
		return listing{}, err
	}
	ordered := slices.IsSortedFunc(answer.Items, byKey)
	if !ordered {
		slices.SortStableFunc(answer.Items, byKey)
	}
	return listing{answer, ordered}, nil
}

// making has the metadata, headers and condition to make an object with.
func (b *objects) making(key string, m meta, c providers.Condition) (Making, error) {
	raw, err := m.encode(b.service)
	return Making{Metadata: raw, Headers: m.headers(key), If: b.honours.asked(c)}, err
}

// put makes an object of content. The info lacks a Locator.
func (b *objects) put(ctx context.Context, key string, body content, m meta, c providers.Condition) (providers.Info, error) {
	making, err := b.making(key, m, c)
	if err != nil {
		return providers.Info{}, err
	}
	began := b.now()
	told, err := b.send(ctx, key, body, making)
	if err != nil {
		return providers.Info{}, err
	}
	return b.made(told, key, body.Size, m, began), nil
}

// send uploads content, and checks that the service has the same.
func (b *objects) send(ctx context.Context, key string, body content, m Making) (Object, error) {
	out := NewOutgoing(ctx, body.Body)
	out.MD5 = &body.sum
	told, err := b.store.Put(ctx, key, out, m)
	if err := out.end(err); err != nil {
		return Object{}, err
	}
	return told, out.Check(told.MD5)
}

// made records in the index that an object was made, of this size and after began (of the local
// clock), and describes it. The info lacks a Locator.
func (b *objects) made(told Object, key string, size int64, m meta, began time.Time) providers.Info {
	o := &object{told, m.written(key)}
	o.Key, o.Size = key, size
	b.index.wrote(o, began)
	return o.info(providers.Locator{})
}

// remove sends one DELETE, for this ETag alone where the service knows how.
func (b *objects) remove(ctx context.Context, key, etag string) error {
	c := providers.Unconditional()
	if b.honours.Delete && etag != "" {
		c = providers.IfVersion(providers.Version{ETag: etag})
	}
	err := b.store.Delete(ctx, key, c)
	if err == nil {
		b.index.removed(key)
	}
	return err
}

// below is the name of a key in records, and whether it has one: wsmount's own keys, the root's,
// and those whose attributes a listing tells have none.
func (b *objects) below(key string) (string, bool) {
	rest, ok := strings.CutPrefix(key, b.prefix)
	return rest, ok && rest != "" && !b.ownKey(key) && (!b.service.Tells || !b.service.TellsDirs && strings.HasSuffix(key, "/"))
}

// ownKey reports whether a key is wsmount's own.
func (b *objects) ownKey(key string) bool {
	rest, ok := strings.CutPrefix(key, b.prefix+Own)
	return ok && (rest == "" || rest[0] == '/')
}
