package cache

import (
	"context"
	"errors"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

var _ fs.Sided = (*Volume)(nil)

// Aside implements fs.Sided with the files that the provider shows to its service's own programs,
// if it shows any.
func (v *Volume) Aside(root string, covered []string) fs.Aside {
	inspector, ok := providers.As[providers.Inspector](v.p)
	if !ok {
		return fs.Aside{}
	}
	in := inspector.Inspect(root, covered, v.differing)
	return fs.Aside{Names: in.Names, Tree: &inspected{v, in}}
}

// differing implements providers.Changes.
func (v *Volume) differing(ctx context.Context) (head providers.Revision, paths []string, err error) {
	held, err := v.follower.Hold(ctx)
	if err != nil {
		return "", nil, err
	}
	defer held.Release()
	if c, ok := providers.As[providers.Committer](v.p); ok {
		if head, err = c.Head(ctx); err != nil {
			return "", nil, err
		}
	}
	locked := v.lock()
	defer locked.unlock()
	add := func(l table.Link) bool {
		if at, ok := locked.LocalPath(l); ok { // else it is in a removed directory, which is listed
			paths = append(paths, at.String(), at.String()+"/")
		}
		return true
	}
	locked.Dirty(0, func(_ uint64, l table.Link) bool { return add(l) })
	locked.Local(locked.IsShared, add)
	for _, ino := range files.DirtyIntents(locked.View) { // changes that no close reported yet
		if n := locked.Inode(ino); n != nil {
			for _, l := range n.Links {
				add(l)
			}
		}
	}
	return head, paths, locked.Err()
}

// inspected shows an Inspection to the front. It belongs to the owner of the mount's files: git
// refuses a repository of another user.
type inspected struct {
	v  *Volume
	in providers.Inspection
}

func (i *inspected) Show(op *fs.Op, path string) (fs.Shown, error) {
	w := i.v.waits.For(op, i.v.o.Patience)
	defer w.Close()
	e, err := i.in.Show(w, path)
	if errors.Is(err, providers.ErrNotExist) {
		return fs.Shown{}, syscall.ENOENT
	}
	if err != nil {
		return fs.Shown{}, errno.Translate(err)
	}
	s := fs.Shown{Names: e.Names, Size: e.Size, Mtime: e.Time, Version: e.Version, Lasting: e.Lasting,
		Mode: 0o444, UID: i.v.o.Owner.UID, GID: i.v.o.Owner.GID}
	if e.Names != nil {
		s.Mode = 0o555
		return s, nil
	}
	s.Open = func(*fs.Op) (fs.ShownFile, error) {
		f, err := e.Open()
		switch {
		case errors.Is(err, providers.ErrConflict): // a newer one exists: look again
			return nil, fs.ErrStale
		case err != nil:
			return nil, errno.Translate(err)
		}
		return f, nil
	}
	return s, nil
}
