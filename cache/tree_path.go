package cache

import (
	"context"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/upload"
)

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
