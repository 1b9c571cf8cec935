package cache

import (
	"context"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
)

// linksOf are the local names that an inode has at the moment.
func (v *Volume) linksOf(ino table.Ino) []table.Link {
	return v.namesOf(ino, func(n *table.Inode) []table.Link { return n.Links })
}

// remoteLinksOf are the names that the remote has of an inode at the moment.
func (v *Volume) remoteLinksOf(ino table.Ino) []table.Link {
	return v.namesOf(ino, func(n *table.Inode) []table.Link { return n.RemoteLinks })
}

func (v *Volume) namesOf(ino table.Ino, which func(*table.Inode) []table.Link) []table.Link {
	locked := v.lock()
	defer locked.unlock()
	n := locked.table.Inode(ino)
	if n == nil {
		return nil
	}
	return slices.Clone(which(n))
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

// standsAside reports whether a name that is nothing here is one under which another
// working copy has something stand aside, or had when it was killed: that is not for
// programs here either.
func (v *View) standsAside(l table.Link, rec table.Name) bool {
	return l.Dir == table.Root && strings.HasPrefix(l.Name, upload.Parked) && rec.Ino == 0 && rec.Remote == nil && v.send.Jobs().Of(l) == nil
}
