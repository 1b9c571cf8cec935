package git

import (
	"context"
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/object"
)

const pageSize = 10_000

// tokenMark begins a page token. What follows is where the page ended: the path
// of its last entry below the directory, with a slash at the end if that is one.
// Trees are in the order of that, so what comes and goes elsewhere moves nothing.
const tokenMark = "after:"

func (v *view) list(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	e, f, err := v.look(l)
	switch {
	case err != nil:
		return providers.Page{}, err
	case e.Mode.IsSubmodule():
		return providers.Page{}, nil
	case !e.Mode.IsDir():
		return providers.Page{}, providers.ErrNotDir
	}
	s := scan{ctx: ctx, v: v, at: l, deep: opts.Recursive, limit: pageSize}
	if opts.Limit > 0 {
		s.limit = min(s.limit, opts.Limit)
	}
	after, ok := strings.CutPrefix(opts.Token, tokenMark)
	if opts.Token != "" && (!ok || after == "") {
		return providers.Page{}, fmt.Errorf("page token %q: %w", opts.Token, providers.ErrInvalid)
	}
	if err := s.walk(e.ID, "", after, f); err != nil {
		return providers.Page{}, err
	}
	return s.page, nil
}

// scan makes a page.
type scan struct {
	ctx   context.Context
	v     *view
	at    providers.Locator
	deep  bool
	limit int
	page  providers.Page
	last  string // the order of the last entry
}

// walk visits what is below a directory, whose path ends in a slash or is empty,
// from behind a place on, until the page is full. f are the filters above.
func (s *scan) walk(dir id, path, after string, f *filters) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	raw, err := s.v.tree(dir)
	if err == nil {
		f, err = s.v.repo.filters(f, len(s.at.Parts())+strings.Count(path, "/"), raw)
	}
	if err != nil {
		return err
	}
	for len(raw) > 0 && s.page.Next == "" {
		var e object.Entry
		if e, raw, err = object.Next(raw); err != nil {
			return err
		}
		place := path + e.Key()
		if hidden(e.Name) || place < after && !strings.HasPrefix(after, place) {
			continue
		}
		if place > after {
			if err := s.visit(place, e, f); err != nil {
				return err
			}
		}
		if s.deep && e.Mode.IsDir() && s.page.Next == "" {
			if err := s.walk(e.ID, place, after, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// visit adds an entry, or ends a page that is full.
func (s *scan) visit(place string, e object.Entry, f *filters) error {
	if len(s.page.Entries) == s.limit {
		s.page.Next = tokenMark + s.last
		return nil
	}
	l, err := s.at.Child(place)
	if err != nil {
		return err
	}
	info, err := s.v.info(s.ctx, l, e, f)
	if err != nil {
		return err
	}
	s.page.Entries, s.last = append(s.page.Entries, info), place
	return nil
}
