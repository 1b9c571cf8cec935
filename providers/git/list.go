package git

import (
	"context"
	"fmt"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/trees"
)

const pageSize = 10_000

// pageMissing bounds a page whose content may have to be fetched first: a caller cannot wait for
// it forever.
const pageMissing = 1000

// tokenMark begins a page token. After it comes the place where the page ended: the path of its
// last entry below the directory, with a slash at the end if that is a directory. Trees are in
// this order, so entries that come and go elsewhere do not move it.
const tokenMark = "after:"

func (v *view) list(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	e, f, err := v.look(ctx, l)
	switch {
	case err != nil:
		return providers.Page{}, err
	case e.Mode.IsSubmodule():
		return providers.Page{}, nil
	case !e.Mode.IsDir():
		return providers.Page{}, providers.ErrNotDir
	case !opts.After.IsRoot():
		return providers.Page{}, providers.ErrUnsupported
	}
	s := scan{ctx: ctx, v: v, at: l, deep: opts.Recursive, limit: pageSize}
	if v.repo.partial.MayMiss() {
		s.limit = pageMissing
	}
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
	v.repo.partial.LookedAt(e.ID)
	return s.page, s.describe()
}

// scan makes a page.
type scan struct {
	ctx   context.Context
	v     *view
	at    providers.Locator
	deep  bool
	limit int
	page  providers.Page
	found []scanned
}

// scanned is an entry of a page that was not described yet.
type scanned struct {
	object.Entry
	place   string // below the directory, in its order
	filters *attributes.Filters
}

// walk visits all entries below a directory, whose path ends in a slash or is empty, from behind
// a place on, until the page is full. f are the filters above.
func (s *scan) walk(dir id, path, after string, f *attributes.Filters) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	raw, err := s.v.tree(dir)
	if err == nil {
		f, err = s.v.repo.filters(s.ctx, f, len(s.at.Parts())+strings.Count(path, "/"), raw)
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
		if trees.Hidden(e.Name) || place < after && !strings.HasPrefix(after, place) {
			continue
		}
		if place > after {
			s.visit(place, e, f)
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
func (s *scan) visit(place string, e object.Entry, f *attributes.Filters) {
	if n := len(s.found); n == s.limit {
		s.page.Next = tokenMark + s.found[n-1].place
		return
	}
	s.found = append(s.found, scanned{e, place, f})
}

// describe makes the page of the found entries, and first fetches their missing content together.
func (s *scan) describe() error {
	var blobs []id
	for _, e := range s.found {
		if !e.Mode.IsDir() && !e.Mode.IsSubmodule() {
			blobs = append(blobs, e.ID)
		}
	}
	if err := s.v.repo.partial.Need(s.ctx, blobs...); err != nil {
		return err
	}
	for _, e := range s.found {
		l, err := s.at.Child(e.place)
		if err != nil {
			return err
		}
		info, err := s.v.info(s.ctx, l, e.Entry, e.filters)
		if err != nil {
			return err
		}
		s.page.Entries = append(s.page.Entries, info)
	}
	return nil
}
