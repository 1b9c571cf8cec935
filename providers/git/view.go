package git

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/git/internal/object"
	"github.com/wsmount/wsmount/providers/git/internal/odb"
)

// view is the tree of one commit. It never changes.
type view struct {
	objects *odb.Store
	commit  id     // zero: there is none yet
	root    id     // zero: without entries
	branch  string // of the head's view: that it is on
}

// viewOf is the tree of a commit, zero for none.
func (r *repository) viewOf(c id) (*view, error) {
	v := &view{objects: r.objects, commit: c}
	if c.IsZero() {
		return v, nil
	}
	commit, err := r.commit(c)
	v.root = commit.Tree
	return v, err
}

// show makes a commit the one that reads show. mu is held, or nobody else is
// there yet.
func (p *Provider) show(c id) error { return p.showOn(p.on(), c) }

// showOn is show for a commit of another branch.
func (p *Provider) showOn(branch string, c id) error {
	v, err := p.repo.viewOf(c)
	if err == nil {
		v.branch = branch
		p.now.Store(v)
		p.tidy()
	}
	return err
}

// hidden reports whether an entry of a tree is not shown.
func hidden(name string) bool {
	return name == "" || name == "." || name == ".." || len(name) > providers.MaxName || strings.Contains(name, "/") || providers.IsDotGit(name)
}

// tree is the entries of a directory, as git keeps them.
func (v *view) tree(dir id) ([]byte, error) {
	if dir.IsZero() {
		return nil, nil
	}
	return v.objects.Get(dir, odb.Tree)
}

// look is the entry at l. The root has the mode of a directory.
func (v *view) look(l providers.Locator) (object.Entry, error) {
	e := object.Entry{Mode: object.ModeDir, ID: v.root}
	for _, name := range l.Parts() {
		if !e.Mode.IsDir() || hidden(name) {
			return e, providers.ErrNotExist
		}
		raw, err := v.tree(e.ID)
		if err != nil {
			return e, err
		}
		var ok bool
		if e, ok, err = object.Find(raw, name); err != nil || !ok {
			return e, firstError(err, providers.ErrNotExist)
		}
	}
	return e, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// info describes an entry.
func (v *view) info(l providers.Locator, e object.Entry) (providers.Info, error) {
	if e.Mode.IsDir() || e.Mode.IsSubmodule() {
		return providers.Info{Locator: l, Kind: providers.KindDir}, nil
	}
	size, err := v.objects.Size(e.ID)
	return describe(l, e, size), err
}

// describe is info of a file or link of a size.
func describe(l providers.Locator, e object.Entry, size int64) providers.Info {
	info := providers.Info{Locator: l, Kind: providers.KindFile, Size: size}
	if e.Mode.IsLink() {
		info.Kind = providers.KindSymlink
	} else {
		info.Attr = providers.Attr{Valid: providers.AttrExec, Mode: 0o644}
		if e.Mode.Executable() {
			info.Attr.Mode = 0o755
		}
	}
	info.Version = providers.Version{ETag: fmt.Sprintf("%s-%s-%o", e.ID, info.Kind, info.Attr.Mode), Size: size}
	return info
}

func (v *view) stat(l providers.Locator) (providers.Info, error) {
	e, err := v.look(l)
	if err != nil {
		return providers.Info{}, err
	}
	return v.info(l, e)
}

// open is read with a body that ends with ctx, and whose errors have kinds.
func (v *view) open(ctx context.Context, l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	c, err := v.read(l, opts)
	if err == nil {
		c.Body = span{failing{ctx, l, providers.WithContext(ctx, c.Body)}, c.Body}
	}
	return c, err
}

func (v *view) read(l providers.Locator, opts providers.ReadOptions) (providers.Content, error) {
	none := providers.Content{}
	if err := opts.Check(); err != nil {
		return none, err
	}
	e, err := v.look(l)
	if err != nil {
		return none, err
	}
	info, err := v.info(l, e)
	switch {
	case err != nil:
		return none, err
	case info.Kind == providers.KindDir:
		return none, providers.ErrIsDir
	case !opts.Version.IsZero() && !opts.Version.Matches(info.Version):
		return none, providers.ErrConflict
	}
	body, err := v.objects.Open(e.ID, opts.Offset)
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
