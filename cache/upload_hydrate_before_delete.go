package cache

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// hydrateBeforeDelete brings content here in whole that a program still reads although
// its file has lost the name, before the backend loses it too. It is called
// before a change at the backend of what has the name l there. What cannot be
// had any more keeps nobody from going on; only what may come later does.
func (v *Volume) hydrateBeforeDelete(ctx context.Context, l table.Link) error {
	v.mu.Lock()
	rec, _ := v.table.Name(l.Dir, l.Name)
	var oi *openInode
	if b := rec.Remote; b != nil && b.Ino != rec.Ino {
		n := v.table.Inode(b.Ino)
		if oi = v.open[b.Ino]; oi != nil && (oi.f == nil || oi.f.Whole() || n == nil || len(n.Links) > 0 || len(n.RemoteLinks) > 1) {
			oi = nil
		}
	}
	if oi != nil {
		oi.opens++
	}
	v.mu.Unlock()
	if oi == nil {
		return nil
	}
	defer v.release(oi)
	err := oi.f.FetchAll(ctx)
	if err != nil && (ctx.Err() != nil || errors.Is(err, fs.ErrUnavailable)) {
		return err
	}
	if err != nil {
		v.o.Log.Warn("a file that was removed while it is read cannot be read to its end", "name", l.Name, "err", err)
	}
	return nil
}
