package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strconv"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/errno"
	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// maxTries bounds the tries in a row of a step that other changes may overtake.
const maxTries = 4

// NotThere reports whether the remote has nothing at a place: no entry, or not even a directory
// for it.
func NotThere(err error) bool {
	return errors.Is(err, providers.ErrNotExist) || errors.Is(err, providers.ErrNotDir)
}

// A use of content of so many bytes closes it. When it was broken off it is called anew, with the
// content from its beginning.
type use func(body io.ReadCloser, size int64) error

// readRemoteVersion passes the content of a version at the remote to read, as a use.
func (v *Merger) readRemoteVersion(ctx context.Context, p providers.Provider, r providers.Info, read func(io.Reader) error) error {
	return v.useRemoteVersion(ctx, p, r, func(body io.ReadCloser, _ int64) error {
		return errors.Join(read(body), body.Close())
	})
}

// useRemoteVersion opens a version at the remote.
func (v *Merger) useRemoteVersion(ctx context.Context, p providers.Provider, r providers.Info, do use) error {
	return v.o.Volume.Retry(ctx, func(context.Context) error { // which may end before the body does
		c, err := providers.Stream(ctx, p, r.Locator, providers.ReadOptions{Version: r.Version})
		if err != nil {
			return err
		}
		return do(c.Body, c.Info.Size)
	})
}

// readLocal passes the content of an inode to read, as a use, and returns its size.
// files.ErrVersionGone: some of it is nowhere any more.
func (v *Merger) readLocal(ctx context.Context, x table.Ino, read func(io.Reader) error) (size int64, err error) {
	err = v.useLocal(ctx, x, func(body io.ReadCloser, n int64) error {
		size = n
		return errors.Join(read(body), body.Close())
	})
	return size, err
}

// useLocal opens the content of an inode, with the errors of readLocal.
func (v *Merger) useLocal(ctx context.Context, x table.Ino, do use) error {
	for try := 1; ; try++ {
		err := v.tryUseLocal(ctx, x, do)
		if !errors.Is(err, files.ErrVersionGone) {
			return err
		}
		switch gone, cause := v.isGone(ctx, x); {
		case gone:
			return err
		case cause != nil || try == maxTries: // it is not known to be gone
			return errors.Join(fs.ErrUnavailable, cause)
		}
	}
}

// tryUseLocal is useLocal with the errors of [files.Hydrator.Fetch].
func (v *Merger) tryUseLocal(ctx context.Context, x table.Ino, do use) error {
	locked := v.lock()
	n := locked.Inode(x)
	if n == nil {
		locked.unlock()
		return fs.ErrStale
	}
	link, target, state, version := n.IsSymlink(), n.Target, n.State, tree.MissingVersion(n)
	locked.unlock()
	switch {
	case link && target == "":
		if err := v.o.Remote.FetchTarget(ctx, x); err != nil {
			return err
		}
		locked = v.lock()
		if n := locked.Inode(x); n != nil {
			target = n.Target
		}
		locked.unlock()
		fallthrough
	case link:
		return do(io.NopCloser(strings.NewReader(target)), int64(len(target)))
	case state == table.None:
		return v.useRemote(ctx, x, do)
	}
	f, err := v.o.Store.Open(x)
	if err != nil {
		return fmt.Errorf("content: %w", err)
	}
	defer f.Release()
	if !f.Whole() {
		f.SetSource(v.o.Hydrator.Source(x, version))
	}
	s, err := f.Snapshot(ctx)
	if err != nil {
		return err
	}
	return do(&snapshotReader{s.Reader(), s}, s.Size())
}

// snapshotReader reads content as it was when it was opened.
type snapshotReader struct {
	io.Reader
	s *content.Snapshot
}

func (r *snapshotReader) Close() error {
	r.s.Close()
	return nil
}

// useRemote opens content that is not local at its remote place, without keeping it.
func (v *Merger) useRemote(ctx context.Context, x table.Ino, do use) error {
	was := v.o.Hydrator.Whereabouts(x)
	if !was.Known {
		return fs.ErrStale
	}
	err := v.useRemoteVersion(ctx, v.o.Provider, providers.Info{Locator: was.At, Version: was.Version}, do)
	if files.IsElsewhere(err) {
		return &files.GoneError{Ino: x, Was: was, Cause: err}
	}
	return err
}

// restIsGone asks the remote whether it lost the missing part of an inode's content. It reads past
// the content file, and revalidates no name: it is called during revalidations.
func (v *Merger) restIsGone(ctx context.Context, x table.Ino) (bool, error) {
	if here, err := v.isAllHere(x); here || err != nil {
		return false, err
	}
	return v.isGone(ctx, x)
}

// isGone is restIsGone for content that is not all local, or the target of a symbolic link.
func (v *Merger) isGone(ctx context.Context, x table.Ino) (bool, error) {
	for {
		o := v.o.Hydrator.Whereabouts(x)
		if !o.Known {
			return true, nil
		}
		err := v.o.Volume.Retry(ctx, func(ctx context.Context) error {
			c, err := v.o.Provider.Read(ctx, o.At, providers.ReadOptions{Version: o.Version, Length: 1})
			if err != nil {
				return err
			}
			return c.Body.Close()
		})
		if !files.IsElsewhere(err) {
			return false, err
		}
		if !v.o.Remote.AwaitPlace(ctx, x) {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
	}
}

// isAllHere reports whether no part of an inode's content is missing locally, or it has no content
// file of its own.
func (v *Merger) isAllHere(x table.Ino) (bool, error) {
	locked := v.lock()
	n := locked.Inode(x)
	partial := n != nil && n.State == table.Partial
	locked.unlock()
	if !partial {
		return true, nil
	}
	f, err := v.o.Store.Open(x)
	if errors.Is(err, iofs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Release()
	return f.Whole(), nil
}

// baseOfConflict reads the version that ours began from: at the remote, if it has it again or in
// an earlier revision, else in the history.
func (v *Merger) baseOfConflict(ctx context.Context, l table.Link, rec table.Name) (io.ReadCloser, error) {
	if rec.Remote == nil {
		return nil, fmt.Errorf("there was nothing before: %w", iofs.ErrNotExist)
	}
	locked := v.lock()
	path, _ := locked.LocalPath(l)
	at, ok := locked.RemotePath(l)
	if !ok { // its directory is nowhere at the remote any more
		at = path
	}
	locked.unlock()
	body, err := v.readVersion(ctx, at, rec.Remote.Version)
	if errors.Is(err, iofs.ErrNotExist) {
		body, err = v.o.Past.PreviousHead(ctx, at, rec.Remote.Version)
	}
	if err == nil || !errors.Is(err, iofs.ErrNotExist) {
		return body, err
	}
	versions, lerr := v.o.Versions.Log(ctx, past.LogFilter{Path: path.String()})
	if lerr != nil {
		return nil, errors.Join(err, lerr)
	}
	for _, old := range versions {
		if old.Kept && (old.Path == path.String() && old.Base == history.VersionText(rec.Remote.Version) && old.Change == history.Ended ||
			v.isVersion(old.ID, rec.Remote)) {
			content, _, err := v.o.Versions.Content(old.ID)
			return content, err
		}
	}
	return nil, err
}

// isVersion reports whether a version of the history is the content that the remote was known to
// have.
func (v *Merger) isVersion(id string, b *table.Remote) bool {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return false
	}
	locked := v.lock()
	defer locked.unlock()
	r := history.Get(locked, n)
	return r != nil && r.Change == history.Written && r.Ino == b.Ino && r.Gen == b.ContentVersion
}

// readVersion reads a version at the remote; io/fs.ErrNotExist if it is not there.
func (v *Merger) readVersion(ctx context.Context, at providers.Locator, version providers.Version) (io.ReadCloser, error) {
	c, err := providers.Stream(ctx, v.o.Provider, at, providers.ReadOptions{Version: version})
	if errors.Is(err, providers.ErrConflict) {
		return nil, fmt.Errorf("%w: %w", iofs.ErrNotExist, err)
	}
	if err != nil {
		return nil, errno.Translate(err)
	}
	return c.Body, nil
}
