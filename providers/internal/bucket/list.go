package bucket

import (
	"context"
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

const (
	pageMax = 1000 // the most that a service gives in one page
	// entriesMax bounds the entries of a page. A tree must be ten directories deep for each file
	// to reach it.
	entriesMax = 10 * pageMax
)

// List implements providers.Provider.
func (p *Provider) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	return do(ctx, p, providers.MethodList, l, func(at place) (providers.Page, error) {
		if opts.Recursive && p.unordered.Load() {
			return providers.Page{}, errUnordered
		}
		where := fmt.Sprintf("%s\n%s\n%s\n%t", p.name, p.prefix, l, opts.Recursive)
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
		p.index.describe(ctx, w.told, w.items)
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
	case p.service.ListStart == Nowhere:
		return cursor{}, fmt.Errorf("a listing cannot begin after a key: %w", providers.ErrUnsupported)
	case opts.After == l || !l.Contains(opts.After):
		return cursor{}, fmt.Errorf("%q is not below: %w", opts.After, providers.ErrInvalid)
	}
	at, err := p.find(opts.After)
	if err != nil {
		return cursor{}, err
	}
	c := cursor{Cut: p.service.ListStart == NearKey, After: []byte(at.dir), Dir: []byte(opts.After.String())}
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
	items     []Item // of the entries in told; without key: a directory that keys imply
}

// page adds the entries of one LIST, and reports whether there is more. A recursive walk goes on
// behind a key, as the service's own token cannot point between a directory and its content.
// Where a listing cannot begin behind a key, the page that holds the key comes once more.
func (w *walk) page(ctx context.Context) (more bool, err error) {
	q := Query{Prefix: w.at.dir, Limit: min(w.limit, pageMax)}
	first := w.cursor.isZero()
	byKeys := w.recursive && w.p.service.ListStart == BehindKey
	q.Grouped, q.Token = !w.recursive, w.cursor.Next
	if byKeys || w.recursive && w.p.service.ListStart == NearKey && q.Token == "" {
		q.After, q.Token = string(w.cursor.After), ""
	}
	answer, err := w.p.list(ctx, q)
	if err != nil {
		return false, err
	}
	if err := w.checkOrder(answer); err != nil {
		return false, err
	}
	inside := len(answer.Items) > 0 && !w.at.partial
	w.told, w.items = make([]providers.Info, 0, len(answer.Items)), make([]Item, 0, len(answer.Items))
	cut, after := w.cursor.Cut, string(w.cursor.After)
	w.cursor.Cut = w.recursive && !byKeys
	for _, it := range answer.Items {
		if cut && it.Key <= after {
			continue
		}
		full, err := w.tell(it)
		if err != nil || full {
			return true, err
		}
	}
	w.cursor.Next, w.cursor.Cut = answer.Next, cut && string(w.cursor.After) == after // all of it was done
	if answer.More && answer.Next == "" && !byKeys {
		return false, fmt.Errorf("%w: a page that says neither its end nor how to go on", providers.ErrCorrupt)
	}
	if first && !inside && len(w.told) == 0 && !answer.More && !w.at.l.IsRoot() {
		return false, providers.ErrNotExist
	}
	return answer.More, nil
}

// checkOrder refuses a page of a recursive walk that is not in the order of keys, as
// those of S3's directory buckets are: its last key does not tell which keys were passed. A page
// that holds everything needs no order.
func (w *walk) checkOrder(answer listing) error {
	after := string(w.cursor.After)
	isWhole := after == "" && !answer.More
	isBehind := w.cursor.Cut || len(answer.Items) == 0 || answer.Items[0].Key >= after
	if !w.recursive || isWhole || answer.ordered && isBehind {
		return nil
	}
	if !w.p.unordered.Swap(true) {
		w.p.log.Warn("the service does not list keys in their order: each directory is listed by itself")
	}
	return errUnordered
}

var errUnordered = fmt.Errorf("the service does not list keys in their order: %w", providers.ErrUnsupported)

// tell adds the entries that an item stands for: itself, and directories above it that were not
// told yet. full reports that the page ended before.
func (w *walk) tell(it Item) (full bool, err error) {
	if w.at.l.IsRoot() && w.p.ownKey(it.Key) {
		w.cursor.pass(it.Key, false)
		return false, nil
	}
	isDir := it.IsDir || isMarker(it.Key, it.Size)
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
	w.cursor.pass(it.Key, !isDir)
	return false, nil
}

// locate gives an item its Locator.
func (w *walk) locate(it Item, isDir bool) (providers.Locator, error) {
	l, base := w.at.l, w.at.dir
	if w.at.partial { // l is no whole key
		l, base = providers.Locator{}, w.p.prefix
	}
	rest := strings.TrimPrefix(it.Key, base)
	if isDir {
		if rest == "" { // the marker of l itself
			return l, nil
		}
		rest = strings.TrimSuffix(rest, "/")
	}
	return locate(l, base, rest, isDir, w.cursor.isFile)
}

// tellAbove tells the directories between w.at and l. A walk that is not
// recursive meets them only where a long name takes more than one.
func (w *walk) tellAbove(l providers.Locator) (full bool) {
	parts, depth := l.Parts(), len(w.at.l.Parts())
	for n := depth + 1; n < len(parts); n++ {
		above, _ := providers.Locator{}.Child(parts[:n]...)
		if w.tellDir(Item{}, above) {
			return true
		}
		if !w.recursive {
			break
		}
	}
	return false
}

// tellDir tells a directory unless it was told, or is above one that was.
func (w *walk) tellDir(it Item, l providers.Locator) (full bool) {
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

func (w *walk) tellOne(it Item, l providers.Locator, isDir bool) (full bool) {
	switch {
	case !w.recursive && len(l.Parts()) > len(w.at.l.Parts())+1:
		return false // the rest of a long name, which tellAbove began
	case isDir:
		return w.tellDir(it, l)
	case len(w.told) == w.limit:
		return true
	}
	w.told = append(w.told, providers.Info{Locator: l, Kind: providers.KindFile, Size: it.Size, Version: it.Version()})
	w.items = append(w.items, it)
	return false
}
