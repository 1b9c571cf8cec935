package git

import (
	"context"
	"fmt"
	"io"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/attributes"
	"github.com/wsmount/wsmount/providers/git/internal/lfs"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
	"github.com/wsmount/wsmount/providers/git/internal/trees"
)

// view is the tree of one commit. It never changes.
type view struct {
	repo   *repository
	commit id     // zero: there is none yet
	root   id     // zero: without entries
	branch string // of the head's view: the current one
}

// viewOf is the tree of a commit, zero for none.
func (r *repository) viewOf(c id) (*view, error) {
	v := &view{repo: r, commit: c}
	if c.IsZero() {
		return v, nil
	}
	commit, err := r.commit(c)
	v.root = commit.Tree
	return v, err
}

// tree is the entries of a directory, as git keeps them.
func (v *view) tree(dir id) ([]byte, error) {
	if dir.IsZero() {
		return nil, nil
	}
	return v.repo.objects.Get(dir, odb.Tree)
}

// look is the entry at l, and the filters of its directory. The root has the mode of a directory.
func (v *view) look(ctx context.Context, l providers.Locator) (e object.Entry, f *attributes.Filters, err error) {
	e = object.Entry{Mode: object.ModeDir, ID: v.root}
	for depth, name := range l.Parts() {
		if !e.Mode.IsDir() || trees.Hidden(name) {
			return e, nil, providers.ErrNotExist
		}
		raw, err := v.tree(e.ID)
		if err != nil {
			return e, nil, err
		}
		if f, err = v.repo.filters(ctx, f, depth, raw); err != nil {
			return e, nil, err
		}
		var ok bool
		if e, ok, err = object.Find(raw, name); err != nil || !ok {
			return e, nil, firstError(err, providers.ErrNotExist)
		}
	}
	return e, f, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// info describes an entry of a directory with filters.
func (v *view) info(ctx context.Context, l providers.Locator, e object.Entry, f *attributes.Filters) (providers.Info, error) {
	info, _, err := v.pointed(ctx, l, e, f)
	return info, err
}

// pointed is info with the pointer to the content, if that is in LFS.
func (v *view) pointed(ctx context.Context, l providers.Locator, e object.Entry, f *attributes.Filters) (providers.Info, *lfs.Pointer, error) {
	if e.Mode.IsDir() || e.Mode.IsSubmodule() {
		return providers.Info{Locator: l, Kind: providers.KindDir}, nil, nil
	}
	if err := v.repo.partial.Need(ctx, e.ID); err != nil {
		return providers.Info{}, nil, err
	}
	size, err := v.repo.objects.Size(e.ID)
	if err != nil || f == nil {
		return describe(l, e, size, nil), nil, err
	}
	p, err := v.repo.large.pointer(ctx, f, l.Parts(), e, size)
	info := describe(l, e, size, p)
	info.Opaque = !e.Mode.IsLink() && f.IsLFS(l.Parts())
	return info, p, err
}

// describe is info of a file or link of a size, or whose content is in LFS.
func describe(l providers.Locator, e object.Entry, size int64, p *lfs.Pointer) providers.Info {
	info := providers.Info{Locator: l, Kind: providers.KindFile, Size: size}
	as := info.Kind.String()
	if e.Mode.IsLink() {
		info.Kind = providers.KindSymlink
		as = info.Kind.String()
	} else {
		info.Attr = providers.Attr{Valid: providers.AttrExec, Mode: 0o644}
		if e.Mode.Executable() {
			info.Attr.Mode = 0o755
		}
	}
	if p != nil {
		info.Size, info.Digest, as = p.Size, p.Digest(), attributes.FilterLFS
	}
	info.Version = providers.Version{ETag: fmt.Sprintf("%s-%s-%o", e.ID, as, info.Attr.Mode), Size: info.Size}
	return info
}

func (v *view) stat(ctx context.Context, l providers.Locator) (providers.Info, error) {
	e, f, err := v.look(ctx, l)
	if err != nil {
		return providers.Info{}, err
	}
	return v.info(ctx, l, e, f)
}

// open is read with a body that ends with ctx, and whose errors have kinds.
func (v *view) open(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	c, err := v.read(ctx, l, opts)
	if err == nil {
		c.Body = span{failing{ctx, l, providers.WithContext(ctx, c.Body)}, c.Body}
	}
	return c, err
}

func (v *view) read(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	none := providers.Content{}
	if err := opts.Check(); err != nil {
		return none, err
	}
	e, f, err := v.look(ctx, l)
	if err != nil {
		return none, err
	}
	info, p, err := v.pointed(ctx, l, e, f)
	switch {
	case err != nil:
		return none, err
	case info.Kind == providers.KindDir:
		return none, providers.ErrIsDir
	case !opts.Version.IsZero() && !opts.Version.Matches(info.Version):
		return none, providers.ErrConflict
	}
	if p != nil {
		body, err := v.repo.large.open(ctx, *p, opts.Offset, opts.Span(info.Size))
		return providers.Content{Info: info, Body: body}, err
	}
	body, err := v.repo.objects.Open(e.ID, opts.Offset)
	if err != nil {
		return none, err
	}
	return providers.Content{Info: info, Body: span{io.LimitReader(body, opts.Span(info.Size)), body}}, nil
}

// span is a part of a body.
type span struct {
	io.Reader
	io.Closer
}

// failing gives the errors of a body their kinds.
type failing struct {
	ctx context.Context
	l   providers.Locator
	r   io.Reader
}

func (f failing) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err != nil && err != io.EOF {
		err = fail(f.ctx, providers.MethodRead, f.l, err)
	}
	return n, err
}
