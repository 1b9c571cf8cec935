package merge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
)

// maxTries is how often in a row something is tried that others come before.
const maxTries = 4

// readRemoteVersion gives all content of a version at the remote to use.
func (v *Merger) readRemoteVersion(ctx context.Context, p providers.Provider, r providers.Info, use func([]byte)) error {
	return v.o.Volume.Retry(ctx, func(ctx context.Context) error {
		data, _, err := providers.Fetch(ctx, p, r.Locator, providers.ReadOptions{Version: r.Version})
		if err == nil {
			use(data)
		}
		return err
	})
}

// readLocal gives the content of an inode to read, and its size. files.ErrVersionGone says that
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

// readRemote reads content that is not here from where the remote has it,
// without keeping it.
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
