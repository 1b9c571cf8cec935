package past

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// findCommit finds the revision that a person named, by a sufficient part of its name.
func (h *Past) findCommit(ctx context.Context, name string) (providers.Found, error) {
	s, ok := providers.As[providers.Snapshotter](h.o.Remote)
	if !ok {
		return providers.Found{}, fmt.Errorf("commit %q: the store keeps none: %w", name, ErrNoVersion)
	}
	found, err := s.Find(ctx, name)
	if isNotThere(err) || errors.Is(err, providers.ErrInvalid) {
		return found, fmt.Errorf("%w: %w", err, ErrNoVersion)
	}
	return found, err
}

// planToCommit finds the differences of a commit, or of its parent, from the present, at a path
// and below. It looks only at paths that differ from the head, in the commit or locally. Entries
// that never go to the store are no part of it.
func (h *Past) planToCommit(ctx context.Context, path string, s State) (Plan, error) {
	found, err := h.findCommit(ctx, s.Commit)
	if err != nil {
		return Plan{}, err
	}
	c := &committed{h: h, ctx: ctx, scope: path, seen: map[string]bool{}, revision: found.Revision}
	if s.Before {
		if c.revision = ""; len(found.Parents) > 0 {
			c.revision = found.Parents[0]
		}
	}
	if c.revision != "" {
		if c.tree, err = h.treeAt(ctx, c.revision); err != nil {
			return Plan{}, err
		}
		defer c.tree.Close()
	}
	paths, err := h.o.Volume.Differing(ctx, c.revision)
	for _, at := range paths {
		if err == nil {
			err = c.lookAt(at)
		}
	}
	if err != nil {
		return Plan{}, err
	}
	return c.plan(), nil
}

func (h *Past) treeAt(ctx context.Context, r providers.Revision) (providers.Provider, error) {
	s, ok := providers.As[providers.Snapshotter](h.o.Remote)
	if !ok {
		return nil, providers.ErrUnsupported
	}
	return s.At(ctx, r)
}

// committed compares the tree of a commit with the present.
type committed struct {
	h        *Past
	ctx      context.Context
	scope    string
	revision providers.Revision
	tree     providers.Provider // nil: there is nothing in it

	seen   map[string]bool
	items  []Item
	remove []Item
}

// lookAt compares a path, with all below it.
func (c *committed) lookAt(path string) error {
	at, err := providers.ParseLocator(strings.TrimSuffix(path, "/"))
	if err != nil {
		return nil // no store has such a name
	}
	path = at.String()
	switch {
	case history.Below(path, c.scope) || path == c.scope:
	case history.Below(c.scope, path):
		path, at = c.scope, providers.MustLocator(c.scope)
	default:
		return nil
	}
	if c.seen[path] {
		return nil
	}
	c.seen[path] = true
	want, err := c.then(at)
	if err != nil {
		return err
	}
	l, ino, err := c.h.o.Volume.Find(c.ctx, path)
	if err != nil && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	n, shared := c.now(l, ino)
	if !shared {
		return nil
	}
	if err := c.compare(path, at, want, ino, n); err != nil {
		return err
	}
	return c.lookBelow(at, want, ino, n)
}

// then is the commit's entry; nil for none.
func (c *committed) then(at providers.Locator) (*providers.Info, error) {
	if c.tree == nil {
		return nil, nil
	}
	info, err := c.tree.Stat(c.ctx, at)
	switch {
	case isNotThere(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &info, nil
}

// now is the local inode; shared is false for one that never goes to the store.
func (c *committed) now(l table.Link, ino table.Ino) (n *table.Inode, shared bool) {
	v := c.h.o.Tree.Lock()
	defer c.h.o.Tree.Unlock()
	if n = v.Inode(ino); n == nil || ino == table.Root {
		return n, true
	}
	had := *n
	return &had, !c.h.o.Volume.StaysLocal(v, l, n)
}

// compare notes the change that one path would need.
func (c *committed) compare(path string, at providers.Locator, want *providers.Info, ino table.Ino, n *table.Inode) error {
	switch {
	case want == nil && n == nil:
	case want == nil:
		c.remove = append(c.remove, Item{Path: path, Ino: ino, Mode: n.Mode})
	case want.Kind == providers.KindDir:
		if n == nil || !n.IsDir() {
			c.items = append(c.items, Item{Path: path, Mode: syscall.S_IFDIR | 0o755})
		}
	case n != nil && n.Origin.ContentVersion == n.ContentVersion && n.Origin.Version.Matches(want.Version) && !n.Writing && attrs.TakeMode(n.Mode, want.Attr) == n.Mode:
	default:
		it := Item{Path: path, Mode: attrs.TakeMode(syscall.S_IFREG|0o644, want.Attr), Attr: want.Attr,
			src: source{kind: contentPast, revision: c.revision, at: at, size: want.Size}}
		if want.Kind == providers.KindSymlink {
			target, err := ReadTarget(c.ctx, c.tree, at)
			if err != nil {
				return err
			}
			it = Item{Path: path, Mode: syscall.S_IFLNK | 0o777, Target: target}
		}
		c.items = append(c.items, it)
	}
	return nil
}

// lookBelow compares all entries that either side has in a directory, where one of them differs as
// a whole.
func (c *committed) lookBelow(at providers.Locator, want *providers.Info, ino table.Ino, n *table.Inode) error {
	var names []string
	if n != nil && n.IsDir() {
		if err := c.h.o.Volume.Load(c.ctx, ino); err != nil {
			return err
		}
		v := c.h.o.Tree.Lock()
		v.Names(ino, "", func(name string, rec table.Name) bool {
			if rec.Ino != 0 {
				names = append(names, name)
			}
			return true
		})
		c.h.o.Tree.Unlock()
	}
	if want != nil && want.Kind == providers.KindDir {
		for info, err := range providers.All(c.ctx, c.tree, at, providers.ListOptions{}) {
			if err != nil {
				return err
			}
			names = append(names, info.Locator.Name())
		}
	}
	for _, name := range names {
		below, err := at.Child(name)
		if err != nil {
			continue // no store has such a name
		}
		if err := c.lookAt(below.String()); err != nil {
			return err
		}
	}
	return nil
}

// plan is the result. A directory is removed when one of its files is: a directory that was empty
// before is in no commit.
func (c *committed) plan() (pl Plan) {
	goes := map[string]bool{}
	for _, it := range c.remove {
		if it.Mode&syscall.S_IFMT == syscall.S_IFDIR {
			continue
		}
		for dir, _ := Split(it.Path); dir != "" && !goes[dir]; dir, _ = Split(dir) {
			goes[dir] = true
		}
	}
	pl.Items = c.items
	for _, it := range c.remove {
		if it.Mode&syscall.S_IFMT != syscall.S_IFDIR || goes[it.Path] {
			pl.Remove = append(pl.Remove, it)
		}
	}
	pl.sort()
	return pl
}

// ReadTarget reads a symbolic link of the remote.
func ReadTarget(ctx context.Context, p providers.Provider, l providers.Locator) (string, error) {
	c, err := p.Read(ctx, l, providers.ReadOptions{})
	if err != nil {
		return "", err
	}
	defer c.Body.Close()
	target, err := io.ReadAll(io.LimitReader(c.Body, syscall.PathMax))
	return string(target), err
}
