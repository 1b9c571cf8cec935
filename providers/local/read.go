package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

func describe(st *unix.Statx_t, l providers.Locator) providers.Info {
	info := providers.Info{Locator: l, Kind: kindOf(st.Mode)}
	info.Attr = providers.Attr{
		Valid:   providers.AttrMode | providers.AttrModTime,
		Mode:    uint32(st.Mode) & 0o7777,
		ModTime: time.Unix(st.Mtime.Sec, int64(st.Mtime.Nsec)),
	}
	if info.Kind == providers.KindDir {
		return info
	}
	info.Size = int64(st.Size)
	info.Version = providers.Version{
		// The change time is in Modified, and moves with everything.
		ETag:     fmt.Sprintf("%x.%x.%x", st.Ino, nanos(st.Btime), nanos(st.Mtime)),
		Modified: nanos(st.Ctime),
		Size:     info.Size,
	}
	return info
}

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*int64(time.Second) + int64(t.Nsec) }

func kindOf(mode uint16) providers.Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return providers.KindFile
	case unix.S_IFDIR:
		return providers.KindDir
	case unix.S_IFLNK:
		return providers.KindSymlink
	}
	return providers.KindUnknown
}

// Stat implements providers.Provider.
func (p *Provider) Stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	return do(ctx, p, providers.MethodStat, l, func() (providers.Info, error) { return p.stat(l) })
}

// stat is Stat: below a file there is nothing.
func (p *Provider) stat(l providers.Locator) (info providers.Info, err error) {
	if isTemp(l.Name()) {
		return providers.Info{}, providers.ErrNotExist
	}
	err = p.within(l, func(dir int, name string) error {
		found, err := stat(dir, name, l)
		if err == nil && found == nil {
			return providers.ErrNotExist
		}
		if err == nil {
			info = *found
		}
		return err
	})
	if err == unix.ENOTDIR || err == unix.ELOOP {
		err = providers.ErrNotExist
	}
	return info, err
}

// Read implements providers.Provider. A file that somebody changes in place
// while it is read ends in ErrConflict, not in a mixture.
func (p *Provider) Read(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	return do(ctx, p, providers.MethodRead, l, func() (providers.Content, error) {
		if err := opts.Check(); err != nil {
			return providers.Content{}, err
		}
		info, err := p.stat(l)
		switch {
		case err != nil:
			return providers.Content{}, err
		case info.Kind == providers.KindDir:
			return providers.Content{}, providers.ErrIsDir
		}
		body, info, err := p.open(l, info)
		if err != nil {
			return providers.Content{}, err
		}
		if !opts.Version.IsZero() && !opts.Version.Matches(info.Version) {
			body.Close()
			return providers.Content{}, providers.ErrConflict
		}
		body.ctx = ctx
		body.section = io.NewSectionReader(body.source, opts.Offset, opts.Span(info.Size))
		return providers.Content{Info: info, Body: body}, nil
	})
}

// open opens the entry that info describes, or whatever took its place, which
// it then describes.
func (p *Provider) open(l providers.Locator, info providers.Info) (*body, providers.Info, error) {
	if info.Kind == providers.KindSymlink {
		return p.openLink(l)
	}
	// O_NONBLOCK: a pipe that took the file's place must not keep us waiting.
	fd, err := p.beneath(l.String(), unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, info, err
	}
	f := file(fd, l)
	now, err := statFile(f, l)
	if err == nil && now.Kind != providers.KindFile {
		err = providers.ErrConflict
	}
	if err != nil {
		f.Close()
		return nil, info, err
	}
	return &body{source: f, file: f, info: now}, now, nil
}

// openLink reads a link between two looks at it.
func (p *Provider) openLink(l providers.Locator) (*body, providers.Info, error) {
	before, err := p.stat(l)
	if err != nil {
		return nil, before, err
	}
	target := make([]byte, unix.PathMax)
	var n int
	err = p.within(l, func(dir int, name string) (err error) {
		n, err = unix.Readlinkat(dir, name, target)
		return err
	})
	if err != nil {
		return nil, before, err
	}
	after, err := p.stat(l)
	if err == nil && after.Version != before.Version {
		err = providers.ErrConflict
	}
	return &body{source: bytes.NewReader(target[:n])}, before, err
}

func statFile(f *os.File, l providers.Locator) (providers.Info, error) {
	var st unix.Statx_t
	err := retryErr(func() error {
		return unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	})
	return describe(&st, l), err
}

// body is open content.
type body struct {
	ctx     context.Context
	source  io.ReaderAt
	section *io.SectionReader // of source
	file    *os.File          // nil for a link
	info    providers.Info    // of file when it was opened
}

func (b *body) Read(buf []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.section.Read(buf)
	if err == io.EOF {
		if changed := b.check(); changed != nil {
			err = changed
		}
	}
	if err == io.EOF {
		return n, err
	}
	return n, translate(providers.MethodRead, b.info.Locator, err)
}

// check looks whether the file is still what it was. A rename of another over
// it, or its removal, changes only its links.
func (b *body) check() error {
	if b.file == nil {
		return nil
	}
	now, err := statFile(b.file, b.info.Locator)
	switch {
	case err != nil:
		return err
	case now.Version.ETag != b.info.Version.ETag, now.Size != b.info.Size:
		return providers.ErrConflict
	}
	return nil
}

func (b *body) Close() error {
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}

// List implements providers.Provider. Entries come in the order of their
// names' bytes; a page token is the last name.
func (p *Provider) List(ctx context.Context, l providers.Locator, opts providers.ListOptions) (providers.Page, error) {
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
			return providers.Page{}, p.notFile(l, err)
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
		return p.page(ctx, dir, l, namesAfter(names, after), limit)
	})
}

// notFile says ErrNotExist for a directory below a file, where the kernel says
// the same as for the file itself.
func (p *Provider) notFile(l providers.Locator, err error) error {
	if err == unix.ENOTDIR || err == unix.ELOOP {
		if _, missing := p.stat(l); missing != nil {
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

// namesAfter sorts names and drops what comes before, and temporary files.
func namesAfter(names []string, after string) []string {
	slices.Sort(names)
	first, found := slices.BinarySearch(names, after)
	if found {
		first++
	}
	return slices.DeleteFunc(names[first:], isTemp)
}

func (p *Provider) page(ctx context.Context, dir *os.File, l providers.Locator, names []string, limit int) (providers.Page, error) {
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
		info, err := stat(int(dir.Fd()), name, child)
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
