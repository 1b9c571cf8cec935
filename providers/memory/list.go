package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/providers"
)

// tokenMark begins a page token; the rest is the last Locator of the page.
const tokenMark = "after:"

// List implements providers.Provider. Entries come in the order of
// Locator.Compare.
func (p *Provider) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	return do(ctx, p, providers.MethodList, l, func() (providers.Page, error) {
		n, err := p.tree.look(l)
		if err != nil {
			return providers.Page{}, err
		}
		if !n.isDir() {
			return providers.Page{}, providers.ErrNotDir
		}
		after, err := parseToken(l, opts.Token)
		if err != nil {
			return providers.Page{}, err
		}
		limit := p.opts.PageSize
		if opts.Limit > 0 {
			limit = min(limit, opts.Limit)
		}
		s := scan{recursive: opts.Recursive, limit: limit + 1}
		s.walk(n, l, after)
		return s.page(limit), nil
	})
}

// parseToken gives the segments below l to go on after.
func parseToken(l providers.Locator, token string) ([]string, error) {
	if token == "" {
		return nil, nil
	}
	text, ok := strings.CutPrefix(token, tokenMark)
	last, err := providers.ParseLocator(text)
	if !ok || err != nil || last == l || !l.Contains(last) {
		return nil, fmt.Errorf("page token %q: %w", token, providers.ErrInvalid)
	}
	return last.Parts()[len(l.Parts()):], nil
}

// scan collects entries up to a limit.
type scan struct {
	recursive bool
	limit     int
	found     []providers.Info
}

// walk visits dir, which is at l, from behind the segments of after on. It
// does not look into what lies wholly before.
func (s *scan) walk(dir *node, l providers.Locator, after []string) {
	names := dir.names()
	first := 0
	if len(after) > 0 {
		at, present := slices.BinarySearch(names, after[0])
		first = at
		if present {
			first++
			child := dir.children[after[0]]
			if s.recursive && child.isDir() {
				s.walk(child, below(l, after[0]), after[1:])
			}
		}
	}
	for _, name := range names[first:] {
		if len(s.found) >= s.limit {
			return
		}
		child, at := dir.children[name], below(l, name)
		s.found = append(s.found, child.at(at))
		if s.recursive && child.isDir() {
			s.walk(child, at, nil)
		}
	}
}

// page is what was found, cut to limit.
func (s *scan) page(limit int) providers.Page {
	if len(s.found) <= limit {
		return providers.Page{Entries: s.found}
	}
	entries := s.found[:limit]
	return providers.Page{Entries: entries, Next: tokenMark + entries[limit-1].Locator.String()}
}

// below is the child of l; names in the tree are good ones.
func below(l providers.Locator, name string) providers.Locator {
	child, err := l.Child(name)
	if err != nil {
		panic(err)
	}
	return child
}
