package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers"
)

// source of a version's content.
type contentSource struct {
	kind contentKind
	id   uint64    // in the store's history; of what is here, its record
	ino  table.Ino // whose content it is still
	gen  uint64
	size int64

	revision providers.Revision // that has it, at a path
	at       providers.Locator
	version  string // that it must have there; "": any
}

type contentKind uint8

// contentOf finds the content of a record.
func (v *View) contentOf(id uint64, r *history.Record) contentSource {
	switch {
	case r.Kept:
		return contentSource{kind: contentKept, id: r.KeptID(id), ino: r.Ino, size: r.Size}
	case r.Mode&modeType != modeRegular:
		return contentSource{}
	case r.Size == 0:
		return contentSource{kind: contentEmpty}
	}
	n := v.table.Inode(r.Ino)
	if n != nil && n.ContentVersion == r.Gen && n.State == table.Whole && !n.Writing {
		return contentSource{kind: contentHere, id: id, ino: r.Ino, gen: r.Gen, size: n.Size}
	}
	if of := history.Get(v, r.Of); of != nil && of.Gen == r.Gen {
		return v.contentOf(r.Of, of)
	}
	return pastSource(r.Past, r.Size)
}

// Content opens the content of a version. It fails with ErrNoVersion and
// ErrNotKept. The caller closes it.
func (v *Volume) Content(id string) (r io.ReadCloser, size int64, err error) {
	src, err := v.sourceOf(id)
	if err != nil {
		return nil, 0, err
	}
	return v.openSource(src)
}

// sourceOf is where the content of a version is.
func (v *Volume) sourceOf(id string) (src contentSource, err error) {
	number, ok := parseID(id)
	err = v.view(func(v *View) error {
		r := history.Get(v, number)
		if !ok || r == nil {
			return fmt.Errorf("%q: %w", id, ErrNoVersion)
		}
		src = v.contentOf(number, r)
		if src.kind == contentGone {
			return fmt.Errorf("%s of %s: %w", id, r.Path, ErrNotKept)
		}
		return nil
	})
	return src, err
}

func (v *Volume) openSource(src contentSource) (io.ReadCloser, int64, error) {
	switch src.kind {
	case contentEmpty:
		return io.NopCloser(strings.NewReader("")), 0, nil
	case contentHere:
		r, size, err := v.openHere(src)
		if err == nil {
			return r, size, nil
		}
		now, moved := v.movedOn(src)
		if !moved {
			return nil, 0, err
		}
		return v.openSource(now)
	case contentAway:
		return v.openAway(src)
	case contentPast:
		return v.openPast(src)
	case contentGone:
		return nil, 0, ErrNotKept
	}
	f, err := v.openKept(src)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// movedOn is where content is that the working copy had, if it has it no more:
// its file was removed or changed meanwhile, and the history took it, or nobody.
func (v *Volume) movedOn(src contentSource) (now contentSource, moved bool) {
	locked := v.lock()
	defer locked.unlock()
	if r := history.Get(locked, src.id); r != nil {
		now = locked.contentOf(src.id, r)
	}
	return now, now.kind != contentHere
}

// openKept opens kept content. It may be that the table says already that it is
// there, and that it is about to be moved.
func (v *Volume) openKept(src contentSource) (*os.File, error) {
	f, err := v.store.OpenKept(history.StoreID(src.id))
	if !errors.Is(err, iofs.ErrNotExist) {
		return f, err
	}
	locked := v.lock()
	queued := string(locked.table.Get(history.QueueKey(src.ino))) == history.StoreID(src.id)
	locked.unlock()
	if queued && v.tree.Sync() == nil {
		_ = v.store.Keep(src.ino, history.StoreID(src.id)) // whoever comes first
	}
	f, err = v.store.OpenKept(history.StoreID(src.id)) // the move may have ended meanwhile
	if errors.Is(err, iofs.ErrNotExist) {
		err = ErrNotKept
	}
	return f, err
}

// openHere opens content that the working copy still has, as it is now.
func (v *Volume) openHere(src contentSource) (io.ReadCloser, int64, error) {
	f, err := v.store.Open(src.ino)
	if err != nil {
		return nil, 0, err
	}
	snap, err := f.Snapshot(v.ctx)
	if err != nil {
		f.Release()
		return nil, 0, err
	}
	if !v.isQuietly(src.ino, src.gen) {
		snap.Close()
		f.Release()
		return nil, 0, ErrNotKept // just now
	}
	return &snapshotReader{snap.Reader(), snap, f}, snap.Size(), nil
}

// openAway opens content of which the backend has what is not here.
func (v *Volume) openAway(src contentSource) (io.ReadCloser, int64, error) {
	r, size, err := v.openInode(v.ctx, src.ino)
	if err == nil && !v.isQuietly(src.ino, src.gen) {
		r.Close()
		return nil, 0, ErrNotKept
	}
	return r, size, err
}

// openInode opens the content that an inode has now, all of it.
func (v *Volume) openInode(ctx context.Context, ino table.Ino) (io.ReadCloser, int64, error) {
	oi, err := v.acquire(ino)
	if err != nil {
		return nil, 0, err
	}
	var snap *content.Snapshot
	err = v.hydrator.Follow(ctx, func() (err error) {
		snap, err = oi.Content().Snapshot(ctx)
		return err
	})
	if err != nil {
		v.opener.Release(oi)
		return nil, 0, err
	}
	return &openReader{snap.Reader(), func() { snap.Close(); v.opener.Release(oi) }}, snap.Size(), nil
}

type openReader struct {
	io.Reader
	done func()
}

func (r *openReader) Close() error {
	r.done()
	return nil
}

// snapshotReader reads content as it was when it was opened.
type snapshotReader struct {
	*io.SectionReader
	snap *content.Snapshot
	f    *content.File
}

func (r *snapshotReader) Close() error {
	r.snap.Close()
	r.f.Release()
	return nil
}
