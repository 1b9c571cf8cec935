package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// findCommit is a revision that a person named, with enough of its name.
func (v *Volume) findCommit(ctx context.Context, name string) (providers.Found, error) {
	s, ok := providers.As[providers.Snapshotter](v.p)
	if !ok {
		return providers.Found{}, fmt.Errorf("commit %q: the store keeps none: %w", name, ErrNoVersion)
	}
	found, err := s.Find(ctx, name)
	if notThere(err) || errors.Is(err, providers.ErrInvalid) {
		return found, fmt.Errorf("%w: %w", err, ErrNoVersion)
	}
	return found, err
}

// planToCommit finds out how a commit, or what it was made of, differs from the
// present, at a path and below. Looked at is only what differs from the head, in
// the commit or here. What never goes to the store is no part of it.
func (v *Volume) planToCommit(ctx context.Context, path string, s State) (plan, error) {
	found, err := v.findCommit(ctx, s.Commit)
	if err != nil {
		return plan{}, err
	}
	c := &committed{v: v, ctx: ctx, scope: path, seen: map[string]bool{}, revision: found.Revision}
	if s.Before {
		if c.revision = ""; len(found.Parents) > 0 {
			c.revision = found.Parents[0]
		}
	}
	if c.revision != "" {
		if c.tree, err = v.treeAt(ctx, c.revision); err != nil {
			return plan{}, err
		}
		defer c.tree.Close()
	}
	paths, err := c.candidates()
	for _, at := range paths {
		if err == nil {
			err = c.lookAt(at)
		}
	}
	if err != nil {
		return plan{}, err
	}
	return c.plan(), nil
}

func (v *Volume) treeAt(ctx context.Context, r providers.Revision) (providers.Provider, error) {
	s, ok := providers.As[providers.Snapshotter](v.p)
	if !ok {
		return nil, providers.ErrUnsupported
	}
	return s.At(ctx, r)
}

// committed compares the tree of a commit with the present.
type committed struct {
	v        *Volume
	ctx      context.Context
	scope    string
	revision providers.Revision
	tree     providers.Provider // nil: there is nothing in it

	seen   map[string]bool
	items  []item
	remove []item
}

// candidates are the paths at which something may differ.
func (c *committed) candidates() ([]string, error) {
	s, ok := c.v.syncer()
	if !ok {
		return nil, fmt.Errorf("the store keeps no commits: %w", ErrNoVersion)
	}
	head, paths, err := c.v.differing(c.ctx)
	if err != nil {
		return nil, err
	}
	w := c.v.wait(&fs.Op{Cancel: c.ctx.Done()}, c.v.o.Patience)
	defer w.close()
	diffs, err := c.v.differences(w, s, c.revision, head)
	for _, d := range diffs {
		paths = append(paths, d.Locator.String())
	}
	return paths, err
}

// lookAt compares what a path has, with all below it.
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
	l, ino, err := c.v.find(c.ctx, path)
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

// then is what the commit has; nil for nothing.
func (c *committed) then(at providers.Locator) (*providers.Info, error) {
	if c.tree == nil {
		return nil, nil
	}
	info, err := c.tree.Stat(c.ctx, at)
	switch {
	case notThere(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &info, nil
}

// now is what is here; shared is false for what never goes to the store.
func (c *committed) now(l table.Link, ino table.Ino) (n *table.Inode, shared bool) {
	v := c.v
	locked := v.lock()
	defer locked.unlock()
	if n = locked.table.Inode(ino); n == nil || ino == table.Root {
		return n, true
	}
	had := *n
	rec, _ := locked.table.Name(l.Dir, l.Name)
	if rec.Local {
		return &had, false
	}
	if rec.Remote == nil && v.ignoring() {
		is, _ := locked.ignores.Ignored(locked, l, n.IsDir())
		return &had, !is
	}
	return &had, true
}

// compare notes what would have to be done about one path.
func (c *committed) compare(path string, at providers.Locator, want *providers.Info, ino table.Ino, n *table.Inode) error {
	switch {
	case want == nil && n == nil:
	case want == nil:
		c.remove = append(c.remove, item{path: path, ino: ino, mode: n.Mode})
	case want.Kind == providers.KindDir:
		if n == nil || !n.IsDir() {
			c.items = append(c.items, item{path: path, mode: modeDir | 0o755})
		}
	case n != nil && n.Origin.ContentVersion == n.ContentVersion && n.Origin.Version.Matches(want.Version) && !n.Writing && attrs.TakeMode(n.Mode, want.Attr) == n.Mode:
	default:
		it := item{path: path, mode: attrs.TakeMode(modeRegular|0o644, want.Attr), attr: want.Attr,
			src: contentSource{kind: contentPast, revision: c.revision, at: at, size: want.Size}}
		if want.Kind == providers.KindSymlink {
			target, err := targetOf(c.ctx, c.tree, at)
			if err != nil {
				return err
			}
			it = item{path: path, mode: syscall.S_IFLNK | 0o777, target: target}
		}
		c.items = append(c.items, it)
	}
	return nil
}

// lookBelow looks at all that either side has in a directory, where one of them
// differs as a whole.
func (c *committed) lookBelow(at providers.Locator, want *providers.Info, ino table.Ino, n *table.Inode) error {
	var names []string
	if n != nil && n.IsDir() {
		if err := c.v.loadDir(&fs.Op{Cancel: c.ctx.Done()}, ino); err != nil {
			return err
		}
		locked := c.v.lock()
		locked.table.Names(ino, "", func(name string, rec table.Name) bool {
			if rec.Ino != 0 {
				names = append(names, name)
			}
			return true
		})
		locked.unlock()
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

// plan is what was found out. A directory goes when something in it does: one that
// was empty before is in no commit.
func (c *committed) plan() (pl plan) {
	goes := map[string]bool{}
	for _, it := range c.remove {
		if it.mode&modeType == modeDir {
			continue
		}
		for dir, _ := splitPath(it.path); dir != "" && !goes[dir]; dir, _ = splitPath(dir) {
			goes[dir] = true
		}
	}
	pl.items = c.items
	for _, it := range c.remove {
		if it.mode&modeType != modeDir || goes[it.path] {
			pl.remove = append(pl.remove, it)
		}
	}
	pl.sort()
	return pl
}

// openPast opens content of a revision, or that a store without revisions may keep.
func (v *Volume) openPast(src contentSource) (io.ReadCloser, int64, error) {
	if src.revision == "" {
		body, err := v.p.Read(v.ctx, src.at, providers.ReadOptions{Version: providers.Version{ETag: src.version, Size: src.size}, Past: true})
		return body.Body, body.Info.Size, src.notKept(err)
	}
	tree, err := v.treeAt(v.ctx, src.revision)
	if err != nil {
		return nil, 0, src.notKept(err)
	}
	body, err := tree.Read(v.ctx, src.at, providers.ReadOptions{})
	if err != nil {
		return nil, 0, errors.Join(src.notKept(err), tree.Close())
	}
	if src.version != "" && src.version != history.VersionText(body.Info.Version) {
		return nil, 0, errors.Join(ErrNotKept, body.Body.Close(), tree.Close())
	}
	return &pastBody{body.Body, tree}, body.Info.Size, nil
}

// hasPast reports whether a file has the content of a revision, and may be
// executed as that one.
func (v *Volume) hasPast(ctx context.Context, it item, ino table.Ino, n table.Inode) (bool, error) {
	if it.src.size != n.Size || attrs.TakeMode(n.Mode, it.attr) != n.Mode {
		return false, nil
	}
	theirs, _, err := v.openSource(it.src)
	if err != nil {
		return false, err
	}
	defer theirs.Close()
	ours, _, err := v.openInode(ctx, ino) // which may have to be fetched, for nothing without theirs
	if err != nil {
		return false, err
	}
	defer ours.Close()
	return content.Equal(ours, theirs)
}
