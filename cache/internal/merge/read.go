package merge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strconv"
	"strings"

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

// readRemoteVersion passes all content of a version at the remote to use.
func (v *Merger) readRemoteVersion(ctx context.Context, p providers.Provider, r providers.Info, use func([]byte)) error {
	return v.o.Volume.Retry(ctx, func(ctx context.Context) error {
		data, _, err := providers.Fetch(ctx, p, r.Locator, providers.ReadOptions{Version: r.Version})
		if err == nil {
			use(data)
		}
		return err
	})
}

// readLocal passes the content of an inode to read, and returns its size. files.ErrVersionGone:
// some of it is nowhere any more.
func (v *Merger) readLocal(ctx context.Context, x table.Ino, read func(io.Reader) error) (int64, error) {
	for try := 1; ; try++ {
		size, err := v.tryReadLocal(ctx, x, read)
		if !errors.Is(err, files.ErrVersionGone) {
			return size, err
		}
		switch gone, cause := v.isGone(ctx, x); {
		case gone:
			return 0, err
		case cause != nil || try == maxTries: // it is not known to be gone
			return 0, errors.Join(fs.ErrUnavailable, cause)
		}
	}
}

// tryReadLocal is readLocal with the errors of [files.Hydrator.Fetch].
func (v *Merger) tryReadLocal(ctx context.Context, x table.Ino, read func(io.Reader) error) (int64, error) {
	locked := v.lock()
	n := locked.Inode(x)
	if n == nil {
		locked.unlock()
		return 0, fs.ErrStale
	}
	link, target, state, version := n.IsSymlink(), n.Target, n.State, tree.MissingVersion(n)
	locked.unlock()
	switch {
	case link && target == "":
		if err := v.o.Remote.FetchTarget(ctx, x); err != nil {
			return 0, err
		}
		locked = v.lock()
		if n := locked.Inode(x); n != nil {
			target = n.Target
		}
		locked.unlock()
		fallthrough
	case link:
		return int64(len(target)), read(strings.NewReader(target))
	case state == table.None:
		return v.readRemote(ctx, x, read)
	}
	f, err := v.o.Store.Open(x)
	if err != nil {
		return 0, fmt.Errorf("content: %w", err)
	}
	defer f.Release()
	if !f.Whole() {
		f.SetSource(v.o.Hydrator.Source(x, version))
	}
	s, err := f.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return s.Size(), read(s.Reader())
}

// readRemote reads content that is not local from its remote place, without keeping it.
func (v *Merger) readRemote(ctx context.Context, x table.Ino, read func(io.Reader) error) (int64, error) {
	was := v.o.Hydrator.Whereabouts(x)
	if !was.Known {
		return 0, fs.ErrStale
	}
	var data []byte
	err := v.readRemoteVersion(ctx, v.o.Provider, providers.Info{Locator: was.At, Version: was.Version}, func(b []byte) { data = b })
	if files.IsElsewhere(err) {
		return 0, &files.GoneError{Ino: x, Was: was, Cause: err}
	}
	if err != nil {
		return 0, err
	}
	return int64(len(data)), read(bytes.NewReader(data))
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
	c, err := v.o.Provider.Read(ctx, at, providers.ReadOptions{Version: version})
	if errors.Is(err, providers.ErrConflict) {
		return nil, fmt.Errorf("%w: %w", iofs.ErrNotExist, err)
	}
	if err != nil {
		return nil, errno.Translate(err)
	}
	return c.Body, nil
}
