package vault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

// List implements providers.Provider. Entries come in the order of their
// names' bytes; a page token is the last name.
func (p *Provider) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	return p.list(ctx, l, opts, remembered)
}

// GlanceList implements providers.Glancer.
func (p *Provider) GlanceList(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
	return p.list(ctx, l, opts, unread)
}

func (p *Provider) list(ctx context.Context, l providers.Locator, opts providers.ListOptions, b belief) (providers.Page, error) {
	return do(ctx, p, providers.MethodList, l, func() (providers.Page, error) {
		if opts.Recursive || !opts.After.IsRoot() {
			return providers.Page{}, providers.ErrUnsupported
		}
		after, err := parseToken(opts.Token)
		if err != nil {
			return providers.Page{}, err
		}
		fd, err := p.openDir(l, unix.O_RDONLY)
		if err != nil {
			return providers.Page{}, p.notFile(ctx, l, err)
		}
		dir := file(fd, l)
		defer dir.Close()
		names, err := dir.Readdirnames(-1)
		if err != nil {
			return providers.Page{}, err
		}
		limit := p.opts.PageSize
		if opts.Limit > 0 {
			limit = min(limit, opts.Limit)
		}
		return p.page(ctx, dir, l, p.namesAfter(names, after), limit, b)
	})
}

// notFile gives ErrNotExist for a directory below a file, where the kernel has the same error as
// for the file itself.
func (p *Provider) notFile(ctx context.Context, l providers.Locator, err error) error {
	if err == unix.ENOTDIR || err == unix.ELOOP {
		if _, missing := p.stat(ctx, l, unread); missing != nil {
			return missing
		}
	}
	return err
}

const tokenMark = "after:"

func parseToken(token string) (after string, err error) {
	after, ok := strings.CutPrefix(token, tokenMark)
	if token != "" && (!ok || after == "" || strings.Contains(after, "/")) {
		return "", fmt.Errorf("page token %q: %w", token, providers.ErrInvalid)
	}
	return after, nil
}

// namesAfter sorts names and drops those before after, and this provider's temporary files.
func (p *Provider) namesAfter(names []string, after string) []string {
	slices.Sort(names)
	first, found := slices.BinarySearch(names, after)
	if found {
		first++
	}
	return slices.DeleteFunc(names[first:], p.temps.has)
}

func (p *Provider) page(ctx context.Context, dir *os.File, l providers.Locator, names []string, limit int, b belief) (providers.Page, error) {
	var page providers.Page
	if len(names) > limit {
		names = names[:limit]
		page.Next = tokenMark + names[limit-1]
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return providers.Page{}, err
		}
		child, err := l.Child(name)
		if err != nil {
			return providers.Page{}, err
		}
		info, err := p.look(ctx, int(dir.Fd()), name, child, b)
		switch {
		case errors.Is(err, errSpecial):
			p.opts.Logger.Debug("entry passed over", "name", child.String(), "reason", err)
		case err != nil:
			return providers.Page{}, err
		case info != nil: // nil: gone since the names were read
			page.Entries = append(page.Entries, *info)
		}
	}
	return page, nil
}
