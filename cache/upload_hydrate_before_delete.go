package cache

import (
	"context"
	"errors"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// HydrateBeforeDelete implements upload.Content. It brings content here in whole that a
// program still reads although its file has lost the name, before the remote loses it too.
// It is called before a change at the remote of what has the name l there.
func (u uploading) HydrateBeforeDelete(ctx context.Context, l table.Link) error {
	v := u.v
	locked := v.lock()
	rec, _ := locked.table.Name(l.Dir, l.Name)
	nameless := false
	if b := rec.Remote; b != nil && b.Ino != rec.Ino {
		n := locked.table.Inode(b.Ino)
		nameless = n != nil && len(n.Links) == 0 && len(n.RemoteLinks) < 2
	}
	locked.unlock()
	if !nameless {
		return nil
	}
	return v.hydrateNameless(ctx, rec.Remote.Ino, l.Name, func(do func() error) error { return v.hydrator.Follow(ctx, do) })
}

// hydrateNameless fetches all content of a file without a local name that a program has
// open, by a call of fetching. Content that is gone on the remote is no error; content that
// may come later is.
func (v *Volume) hydrateNameless(ctx context.Context, x table.Ino, name string, fetching func(func() error) error) error {
	oi := v.opener.IfOpen(x)
	if oi == nil {
		return nil
	}
	defer v.opener.Release(oi)
	locked := v.lock()
	f := oi.Content()
	locked.unlock()
	if f == nil || f.Whole() {
		return nil
	}
	err := fetching(func() error { return f.FetchAll(ctx) })
	isGone := errors.Is(err, files.ErrVersionGone)
	if err != nil && (ctx.Err() != nil || errors.Is(err, fs.ErrUnavailable) && !isGone) {
		return err
	}
	if err != nil {
		v.o.Log.Warn("a file that was removed while it is read cannot be read to its end", "name", name, "err", err)
	}
	return nil
}
