package cache

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// Path implements fs.Pather. An inode with several names has any one of them.
func (v *Volume) Path(ino fs.Ino) (string, bool) {
	locked := v.lock()
	defer locked.unlock()
	l, ok := locked.pathOf(table.Ino(ino))
	return l.String(), ok
}

// pathOf is one path of an inode here.
func (v *View) pathOf(ino table.Ino) (providers.Locator, bool) {
	if ino == table.Root {
		return providers.Locator{}, true
	}
	n := v.table.Inode(ino)
	if n == nil || len(n.Links) == 0 {
		return providers.Locator{}, false
	}
	return v.path(n.Links[0])
}

// path is where a name is in the tree here; false when it is below a directory that was
// removed.
func (v *View) path(l table.Link) (providers.Locator, bool) {
	return v.climb(l, func(n *table.Inode) []table.Link { return n.Links })
}

// pathFor is where a person would look for a name: its path, or, below a directory that
// was removed here, that at the backend.
func (v *View) pathFor(l table.Link) string {
	if at, ok := v.path(l); ok {
		return at.String()
	}
	if at, ok := v.remotePath(l); ok {
		return at.String()
	}
	return l.Name
}

// remotePath is where a name is at the backend; false when the backend does not have the
// directory.
func (v *View) remotePath(l table.Link) (providers.Locator, bool) {
	return v.climb(l, func(n *table.Inode) []table.Link {
		if _, taker := partners(n); taker != 0 && v.table.Inode(taker) != nil {
			return v.table.Inode(taker).RemoteLinks // that is at its place
		}
		return n.RemoteLinks
	})
}

// remotePathOf is where the backend has a directory; false when it does not.
func (v *View) remotePathOf(dir table.Ino) (providers.Locator, bool) {
	if dir == table.Root {
		return providers.Locator{}, true
	}
	n := v.table.Inode(dir)
	if n == nil || len(n.RemoteLinks) == 0 {
		return providers.Locator{}, false
	}
	return v.remotePath(n.RemoteLinks[0])
}

// linksOf are the names that an inode has here, homesOf those at the backend, as they
// are at the moment.

func (v *Volume) linksOf(ino table.Ino) []table.Link {
	return v.namesOf(ino, func(v *View, n *table.Inode) []table.Link { return n.Links })
}

func (v *Volume) remoteLinksOf(ino table.Ino) []table.Link {
	return v.namesOf(ino, func(v *View, n *table.Inode) []table.Link { return n.RemoteLinks })
}

func (v *Volume) namesOf(ino table.Ino, which func(*View, *table.Inode) []table.Link) []table.Link {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(ino)
	if n == nil {
		return nil
	}
	return slices.Clone(which(locked, n))
}

// climb goes from a name to the root, by the names that up gives.
func (v *View) climb(l table.Link, up func(*table.Inode) []table.Link) (providers.Locator, bool) {
	names := []string{l.Name}
	for l.Dir != table.Root {
		n := v.table.Inode(l.Dir)
		if n == nil || len(up(n)) == 0 {
			return providers.Locator{}, false
		}
		l = up(n)[0]
		names = append(names, l.Name)
	}
	slices.Reverse(names)
	at, err := providers.ParseLocator(strings.Join(names, "/"))
	return at, err == nil
}

// stays reports whether what gets a name stays on this machine: excluded, of a kind that
// the backend cannot have, or ignored, until it is not any more.
func (v *Tx) stays(l table.Link, n *table.Inode) bool {
	if !v.sendable(n) {
		return true
	}
	if v.o.Exclude != nil {
		if at, ok := v.path(l); ok && v.o.Exclude.Match(at.String(), isDir(n)) {
			return true
		}
	}
	return v.staysIgnored(l, n)
}

// find walks to a path here. An ino of 0 says that the name is free; the
// directory of the link is 0 when not even that is there.
func (v *Volume) find(ctx context.Context, path string) (l table.Link, ino table.Ino, err error) {
	ino = table.Root
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			return l, ino, nil
		}
		if ino == 0 {
			return table.Link{}, 0, nil
		}
		if err := ctx.Err(); err != nil {
			return l, 0, err
		}
		if err := v.loadDir(nil, ino); err != nil {
			return l, 0, err
		}
		locked := v.lock()
		l = table.Link{Dir: ino, Name: name}
		rec, _ := locked.table.Name(l.Dir, l.Name)
		ino = rec.Ino
		locked.unlock()
	}
	return l, ino, nil
}

func itoa(ino table.Ino) string { return strconv.FormatUint(ino, 10) }

// below reports whether dir is top or lies below it.
func (v *View) below(dir, top table.Ino) bool {
	for dir != top && dir != table.Root {
		n := v.table.Inode(dir)
		if n == nil || len(n.Links) == 0 {
			return false
		}
		dir = n.Links[0].Dir
	}
	return dir == top
}
