package memory

import (
	"context"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// tokenMark begins a page token; the rest is the last Locator of the page.
const tokenMark = "after:"

// List implements providers.Provider. Entries come in the order of
// Locator.Compare.
func (p *Provider) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	page, err := do(ctx, p, providers.MethodList, l, func() (providers.Page, error) {
		n, err := p.tree.look(l)
		switch {
		case err != nil:
			return providers.Page{}, err
		case !n.isDir():
			return providers.Page{}, providers.ErrNotDir
		case opts.Recursive && !p.mint.caps.RecursiveList:
			return providers.Page{}, providers.ErrUnsupported
		case !opts.After.IsRoot() && !(opts.Recursive && p.mint.caps.ListAfter):
			return providers.Page{}, providers.ErrUnsupported
		}
		after, err := begins(l, opts)
		if err != nil {
			return providers.Page{}, err
		}
		limit := p.opts.PageSize
		if opts.Limit > 0 {
			limit = min(limit, opts.Limit)
		}
		return p.page(n, l, after, opts.Recursive, limit), nil
	})
	if err == nil && opts.Ahead != nil {
		opts.Ahead(page.Next)
	}
	return page, err
}

// begins returns the segments below l after which the page begins.
func begins(l providers.Locator, opts providers.ListOptions) ([]string, error) {
	if opts.Token != "" {
		return parseToken(l, opts.Token)
	}
	if opts.After.IsRoot() {
		return nil, nil
	}
	return partsBelow(l, opts.After)
}

func parseToken(l providers.Locator, token string) ([]string, error) {
	text, ok := strings.CutPrefix(token, tokenMark)
	last, err := providers.ParseLocator(text)
	if !ok || err != nil {
		return nil, fmt.Errorf("page token %q: %w", token, providers.ErrInvalid)
	}
	return partsBelow(l, last)
}

// partsBelow are the segments of m below l.
func partsBelow(l, m providers.Locator) ([]string, error) {
	if m == l || !l.Contains(m) {
		return nil, fmt.Errorf("%q is not below: %w", m, providers.ErrInvalid)
	}
	return m.Parts()[len(l.Parts()):], nil
}

// page is up to limit entries of n, which is at l.
func (p *Provider) page(n *node, l providers.Locator, after []string, recursive bool, limit int) providers.Page {
	var page providers.Page
	s := scan{recursive: recursive, limit: limit + 1, visit: func(l providers.Locator, n *node) {
		page.Entries = append(page.Entries, p.listed(n.at(l)))
	}}
	s.walk(n, l, after)
	if len(page.Entries) > limit {
		page.Entries = page.Entries[:limit]
		page.Next = tokenMark + page.Entries[limit-1].Locator.String()
	}
	return page
}

// listed is the part of an entry's description that a listing has.
func (p *Provider) listed(info providers.Info) providers.Info {
	if p.mint.caps.ListComplete {
		return info
	}
	kind := info.Kind
	if kind == providers.KindSymlink {
		kind = providers.KindFile
	}
	listed := providers.Info{Locator: info.Locator, Kind: kind, Size: info.Size, Version: info.Version}
	if len(info.Attr.Xattrs) > 0 && kind == info.Kind {
		// As a store that knows which attributes of an entry its listing has no room for.
		listed.Attr, listed.Untold = info.Attr.Keep(info.Attr.Valid&^providers.AttrXattrs), untold(info.Attr)
	}
	return listed
}

// untold is another number for other extended attributes.
func untold(a providers.Attr) uint32 {
	h := crc32.NewIEEE()
	for _, name := range slices.Sorted(maps.Keys(a.Xattrs)) {
		fmt.Fprintf(h, "%q %q\n", name, a.Xattrs[name])
	}
	return max(1, h.Sum32())
}

// scan visits entries in order, up to a limit; a negative one is none.
type scan struct {
	recursive bool
	limit     int
	visit     func(l providers.Locator, n *node)
}

// walk visits the entries below dir, which is at l, that come after the segments of after. It
// skips directories that lie wholly before. It reports whether to go on.
func (s *scan) walk(dir *node, l providers.Locator, after []string) bool {
	first := ""
	if len(after) > 0 {
		first = after[0]
	}
	return dir.entries.from(first, func(name string, n *node) bool {
		at := below(l, name)
		if name != first || len(after) == 0 {
			if s.limit == 0 {
				return false
			}
			s.limit--
			s.visit(at, n)
		}
		if !s.recursive || !n.isDir() {
			return true
		}
		var rest []string
		if name == first {
			rest = after[min(1, len(after)):]
		}
		return s.walk(n, at, rest)
	})
}

// below is the child of l; names in the tree are valid.
func below(l providers.Locator, name string) providers.Locator {
	child, err := l.Child(name)
	if err != nil {
		panic(err)
	}
	return child
}
