package s3

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/wsmount/wsmount/providers"
)

const (
	pageMax = 1000 // what a service gives in one page
	// entriesMax bounds what a page tells. A tree must be ten directories deep
	// for each file to reach it.
	entriesMax = 10 * pageMax
)

// item is an entry of the service's own listing.
type item struct {
	key      string
	isDir    bool // a common prefix
	size     int64
	etag     string
	modified time.Time
}

// listing is a page of it, in the order of keys.
type listing struct {
	items []item
	next  string // "" after the last
	more  bool
	// encoded: the service sent keys so that none is mangled.
	encoded bool
	ordered bool // the service sent the keys in their order
}

// list sends one LIST. Keys come percent-encoded, since XML cannot carry all.
func (p *Provider) list(ctx context.Context, in *s3.ListObjectsV2Input) (listing, error) {
	in.Bucket, in.EncodingType = &p.config.bucket, types.EncodingTypeUrl
	out, err := call(ctx, p, p.client.ListObjectsV2, in, nil)
	if err != nil {
		return listing{}, err
	}
	var items []item
	for _, o := range out.Contents {
		items = append(items, item{key: aws.ToString(o.Key), size: aws.ToInt64(o.Size), etag: unquote(o.ETag), modified: aws.ToTime(o.LastModified)})
	}
	for _, c := range out.CommonPrefixes {
		items = append(items, item{key: aws.ToString(c.Prefix), isDir: true})
	}
	for i := range items {
		if items[i].key, err = decodeKey(items[i].key, out.EncodingType); err != nil {
			return listing{}, err
		}
	}
	ordered := slices.IsSortedFunc(items, byKey)
	slices.SortStableFunc(items, byKey)
	return listing{items: items, next: aws.ToString(out.NextContinuationToken), more: aws.ToBool(out.IsTruncated),
		encoded: out.EncodingType == types.EncodingTypeUrl, ordered: ordered}, nil
}

// decodeKey is a key as a listing tells it. A service may ignore the wish for an encoding.
func decodeKey(told string, encoding types.EncodingType) (string, error) {
	if encoding != types.EncodingTypeUrl {
		return told, nil
	}
	key, err := url.QueryUnescape(told)
	if err != nil {
		return "", fmt.Errorf("%w: key %q in a listing", providers.ErrCorrupt, told)
	}
	return key, nil
}

func byKey(a, b item) int { return cmp.Compare(a.key, b.key) }

// List implements providers.Provider.
func (p *Provider) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	return do(ctx, p, providers.MethodList, l, func(at place) (providers.Page, error) {
		if opts.Recursive && p.unordered.Load() {
			return providers.Page{}, errUnordered
		}
		where := fmt.Sprintf("%s\n%s\n%s\n%t", p.config.bucket, p.config.prefix, l, opts.Recursive)
		c, err := p.begins(opts, l, where)
		if err != nil {
			return providers.Page{}, err
		}
		w := &walk{p: p, at: at, limit: opts.Limit, recursive: opts.Recursive, cursor: c}
		if w.limit <= 0 { // directories that keys imply come on top
			w.limit = entriesMax
		}
		more, err := w.page(ctx)
		if err != nil {
			return providers.Page{}, err
		}
		page := providers.Page{Entries: w.told}
		if more {
			page.Next = w.cursor.token(where)
		}
		if opts.Ahead != nil {
			opts.Ahead(page.Next)
		}
		p.describe(ctx, w.told, w.items)
		return page, nil
	})
}

// begins is where a page begins. Directories down to After count as told, and the
// files beside them as passed.
func (p *Provider) begins(opts providers.ListOptions, l providers.Locator, where string) (cursor, error) {
	switch {
	case opts.Token != "" || opts.After.IsRoot():
		return parseToken(opts.Token, where)
	case !opts.Recursive:
		return cursor{}, fmt.Errorf("a listing after a directory is recursive: %w", providers.ErrUnsupported)
	case opts.After == l || !l.Contains(opts.After):
		return cursor{}, fmt.Errorf("%q is not below: %w", opts.After, providers.ErrInvalid)
	}
	at, err := p.find(opts.After)
	if err != nil {
		return cursor{}, err
	}
	c := cursor{After: []byte(at.dir), Dir: []byte(opts.After.String())}
	for _, file := range at.files {
		c.Files = append(c.Files, []byte(file))
	}
	return c, nil
}

// walk makes one page of a listing.
type walk struct {
	p         *Provider
	at        place
	limit     int
	recursive bool
	cursor    cursor
	told      []providers.Info
	items     []item // what told says, in the same order; without key, a directory that keys imply
}

// page tells what one LIST says, and whether there is more. A recursive walk
// goes on behind a key, as the service's own token cannot point between a
// directory and what is in it.
func (w *walk) page(ctx context.Context) (more bool, err error) {
	in := &s3.ListObjectsV2Input{Prefix: &w.at.dir, MaxKeys: aws.Int32(int32(min(w.limit, pageMax)))}
	first := w.cursor.isZero()
	if w.recursive {
		in.StartAfter = nonEmpty(string(w.cursor.After))
	} else {
		in.Delimiter, in.ContinuationToken = aws.String("/"), nonEmpty(w.cursor.Next)
	}
	answer, err := w.p.list(ctx, in)
	if err != nil {
		return false, err
	}
	if err := w.checkOrder(answer); err != nil {
		return false, err
	}
	inside := len(answer.items) > 0 && !w.at.partial
	for _, it := range answer.items {
		full, err := w.tell(it)
		if err != nil || full {
			return true, err
		}
	}
	w.cursor.Next = answer.next
	if answer.more && answer.next == "" && !w.recursive {
		return false, fmt.Errorf("%w: a page that says neither its end nor how to go on", providers.ErrCorrupt)
	}
	if first && !inside && len(w.told) == 0 && !answer.more && !w.at.l.IsRoot() {
		return false, providers.ErrNotExist
	}
	return answer.more, nil
}

// checkOrder refuses a page of a recursive walk that is not in the order of keys, as
// those of S3's directory buckets are: the key where it ends says nothing of what was
// passed. One that holds everything needs no order.
func (w *walk) checkOrder(answer listing) error {
	after := string(w.cursor.After)
	isWhole := after == "" && !answer.more
	isBehind := len(answer.items) == 0 || answer.items[0].key >= after
	if !w.recursive || isWhole || answer.ordered && isBehind {
		return nil
	}
	if !w.p.unordered.Swap(true) {
		w.p.log.Warn("the service does not list keys in their order: each directory is listed by itself")
	}
	return errUnordered
}

var errUnordered = fmt.Errorf("the service does not list keys in their order: %w", providers.ErrUnsupported)

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// tell adds the entries that an item stands for: itself, and directories above
// it that were not told yet. full says that the page ended before.
func (w *walk) tell(it item) (full bool, err error) {
	if w.at.l.IsRoot() && w.p.ownKey(it.key) {
		w.cursor.pass(it.key, false)
		return false, nil
	}
	isDir := it.isDir || isMarker(it.key, it.size)
	l, err := w.locate(it, isDir)
	if err != nil {
		return false, err
	}
	if l != w.at.l && w.at.l.Contains(l) {
		if full = w.tellAbove(l); full {
			return true, nil
		}
		if full = w.tellOne(it, l, isDir); full {
			return true, nil
		}
	}
	w.cursor.pass(it.key, !isDir)
	return false, nil
}

// locate gives an item its Locator.
func (w *walk) locate(it item, isDir bool) (providers.Locator, error) {
	l, base := w.at.l, w.at.dir
	if w.at.partial { // l is no whole key
		l, base = providers.Locator{}, w.p.config.prefix
	}
	rest := strings.TrimPrefix(it.key, base)
	if isDir {
		if rest == "" { // the marker of l itself
			return l, nil
		}
		rest = strings.TrimSuffix(rest, "/")
	}
	return locate(l, base, rest, isDir, w.cursor.isFile)
}

// tellAbove tells the directories between here and l. A walk that is not
// recursive meets them only where a long name takes more than one.
func (w *walk) tellAbove(l providers.Locator) (full bool) {
	parts, depth := l.Parts(), len(w.at.l.Parts())
	for n := depth + 1; n < len(parts); n++ {
		above, _ := providers.Locator{}.Child(parts[:n]...)
		if w.tellDir(item{}, above) {
			return true
		}
		if !w.recursive {
			break
		}
	}
	return false
}

// tellDir tells a directory unless it was told, or is above one that was.
func (w *walk) tellDir(it item, l providers.Locator) (full bool) {
	last, _ := providers.ParseLocator(string(w.cursor.Dir)) // our own words
	if l.Contains(last) {
		return false
	}
	if len(w.told) == w.limit {
		return true
	}
	w.told, w.items = append(w.told, providers.Info{Locator: l, Kind: providers.KindDir}), append(w.items, it)
	w.cursor.Dir = []byte(l.String())
	return false
}

func (w *walk) tellOne(it item, l providers.Locator, isDir bool) (full bool) {
	switch {
	case !w.recursive && len(l.Parts()) > len(w.at.l.Parts())+1:
		return false // the rest of a long name, which tellAbove began
	case isDir:
		return w.tellDir(it, l)
	case len(w.told) == w.limit:
		return true
	}
	o := object{size: it.size, etag: it.etag, modified: it.modified}
	w.told = append(w.told, providers.Info{Locator: l, Kind: providers.KindFile, Size: it.size, Version: o.version()})
	w.items = append(w.items, it)
	return false
}

// ownKey reports whether a key is wsmount's own.
func (p *Provider) ownKey(key string) bool {
	rest, ok := strings.CutPrefix(key, p.config.prefix+reserved)
	return ok && (rest == "" || rest[0] == '/')
}
