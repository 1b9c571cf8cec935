package vault

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

// Read implements providers.Provider. A file that another program changes in place while it is
// read ends in ErrConflict, not in a mixture.
func (p *Provider) Read(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	return do(ctx, p, providers.MethodRead, l, func() (providers.Content, error) {
		if err := opts.Check(); err != nil {
			return providers.Content{}, err
		}
		b, info, err := p.open(ctx, l)
		if err != nil {
			return providers.Content{}, err
		}
		if !opts.Version.IsZero() && !opts.Version.Matches(info.Version) {
			return providers.Content{}, errors.Join(providers.ErrConflict, b.Close())
		}
		b.section = io.NewSectionReader(b.source, opts.Offset, opts.Span(info.Size))
		return providers.Content{Info: *info, Body: b}, nil
	})
}

// open opens the file or link at l.
func (p *Provider) open(ctx context.Context, l providers.Locator) (*body, *providers.Info, error) {
	for range attempts {
		info, err := p.stat(ctx, l, unread)
		if err != nil {
			return nil, nil, err
		}
		b := &body{ctx: ctx, l: l}
		var found *providers.Info
		switch info.Kind {
		case providers.KindDir:
			return nil, nil, providers.ErrIsDir
		case providers.KindSymlink:
			found, err = p.openLink(ctx, l, b)
		default:
			found, err = p.openFile(ctx, l, b)
		}
		if err != errReplaced {
			return b, found, err
		}
	}
	return nil, nil, providers.ErrConflict
}

func (p *Provider) openFile(ctx context.Context, l providers.Locator, b *body) (*providers.Info, error) {
	// O_NONBLOCK: a pipe that took the file's place must not block the open.
	fd, err := p.beneath(l.String(), unix.O_RDONLY|unix.O_NONBLOCK)
	if err == unix.ELOOP || err == unix.ENXIO {
		return nil, errReplaced
	}
	if err != nil {
		return nil, err
	}
	f := file(fd, l)
	sum, st, err := p.sums.of(ctx, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	b.source, b.file, b.mark = f, f, markOf(&st)
	return fileInfo(l, &st, sum), nil
}

// openLink describes a link by its target, which never changes while the link exists.
func (p *Provider) openLink(ctx context.Context, l providers.Locator, b *body) (info *providers.Info, err error) {
	var target string
	err = p.within(l, func(dir int, name string) error {
		if target, err = readLink(dir, name); err == unix.EINVAL {
			return errReplaced
		} else if err != nil {
			return err
		}
		info, err = p.look(ctx, dir, name, l, remembered)
		return err
	})
	if err != nil {
		return nil, err
	}
	if info == nil || info.Version != linkInfo(l, &unix.Statx_t{}, target).Version {
		return nil, errReplaced
	}
	b.source = strings.NewReader(target)
	return info, nil
}

// body is open content.
type body struct {
	ctx     context.Context
	l       providers.Locator
	source  io.ReaderAt
	section *io.SectionReader // of source
	file    *os.File          // nil for a link
	mark    mark              // of file when its version was told
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
	return n, translate(providers.MethodRead, b.l, err)
}

// check compares the file with its state at the beginning.
func (b *body) check() error {
	if b.file == nil {
		return nil
	}
	now, err := statFile(b.file)
	if err == nil && !markOf(&now).isContentOf(b.mark) {
		err = providers.ErrConflict
	}
	return err
}

func (b *body) Close() error {
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}
