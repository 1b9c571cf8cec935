package cache

import (
	"context"
	"errors"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// keepRemote fetches what the backend has into the history: it is about to be
// overwritten there. Content larger than most bytes is only noted.
func (v *Volume) keepRemote(ctx context.Context, l table.Link, at providers.Locator, info providers.Info, most int64) (id string, err error) {
	r := &history.Record{Change: Ended, Why: whyOverwritten, Dir: l.Dir, Name: l.Name, Mode: 0o100644,
		Size: info.Size, Base: history.VersionText(info.Version), Stays: true,
		Past: &history.Past{Path: at.String(), Version: history.VersionText(info.Version), Size: info.Size}}
	var ino table.Ino
	if info.Kind == providers.KindFile && info.Size <= most {
		if ino, err = v.fetchAside(ctx, at, info); err != nil {
			return "", err
		}
	}
	var number uint64
	err = v.update(func(v *Tx) error {
		number = v.addRecord(r)
		if ino != 0 {
			history.Keep(v, number, r, number)
		}
		return nil
	})
	if ino != 0 {
		if err == nil {
			err = v.store.Keep(ino, history.StoreID(number))
		}
		v.store.Remove(ino)
	}
	return idText(number), err
}

// fetchAside brings a version from the backend into a content file of its own.
func (v *Volume) fetchAside(ctx context.Context, at providers.Locator, info providers.Info) (table.Ino, error) {
	c, err := v.p.Read(ctx, at, providers.ReadOptions{Version: info.Version})
	if err != nil {
		return 0, err
	}
	defer c.Body.Close()
	made, err := files.Make(ctx, v.tree, v.store, at.String(), c.Body)
	return made.Ino, err
}

// targetOf is where an item leads, if it is a link; the backend is asked if nobody
// had asked it before.
func (v *Volume) targetOf(ctx context.Context, it item) (string, error) {
	if it.mode&modeType != syscall.S_IFLNK || it.target != "" {
		return it.target, nil
	}
	target, err := v.Readlink(&fs.Op{Cancel: ctx.Done()}, fs.Ino(it.ino))
	if errors.Is(err, fs.ErrStale) {
		err = ErrNotKept
	}
	return target, err
}

// bringHere fetches the content of a file that is about to be replaced or
// removed, if it is not all here: the history takes only what is.
func (v *Volume) bringHere(ctx context.Context, path string) error {
	_, ino, err := v.find(ctx, path)
	locked := v.lock()
	n := locked.table.Inode(ino)
	away := err == nil && n != nil && n.IsRegular() && n.State != table.Whole && n.Size > 0
	locked.unlock()
	if !away {
		return nil
	}
	r, _, err := v.openInode(ctx, ino)
	if err != nil {
		return err
	}
	return r.Close()
}
