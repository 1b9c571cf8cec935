package devicelocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/localdir"
	"github.com/wsmount/wsmount/providers/seam"
)

// Lock takes the lock that a change of l takes, and unlock gives it back. Where old is not nil
// and the file has other content, or exists although old is seam.None, it is
// providers.ErrConflict. It is for a caller that changes the file another way, as through a
// mount; providers.ErrNotExist where the directory of l is missing. The error has a kind of
// package providers.
func (b *Backend) Lock(ctx context.Context, l seam.Locator, old *seam.ETag) (unlock func(), err error) {
	if err = checkName(l); err == nil {
		var dir *os.Root
		if dir, err = b.enter(nameOf(parentOf(l))); err == nil {
			defer dir.Close()
			unlock, err = b.lock(ctx, dir, l.Name(), old)
		}
	}
	if err != nil && providers.KindOf(err).Err == nil {
		err = fmt.Errorf("%w: %w", kindOf(err), err)
	}
	return unlock, err
}

// lock takes the lock of an open directory, for the file at a name in it, and compares that.
func (b *Backend) lock(ctx context.Context, dir *os.Root, name string, old *seam.ETag) (unlock func(), err error) {
	if err := b.isOneMount(dir); err != nil {
		return nil, err
	}
	if b.mount != nil {
		at, err := realName(dir)
		if err != nil {
			return nil, err
		}
		return b.mount.Lock(ctx, at, name, old)
	}
	unlock, err = lock(ctx, dir)
	if err != nil || old == nil {
		return unlock, err
	}
	if err := b.in(dir).compare(name, *old); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// in is a backend of an open directory of this one.
func (b *Backend) in(dir *os.Root) *Backend {
	in := *b
	in.root = dir
	return &in
}

// compare is seam.Changed if old is not the etag of the file at a name.
func (b *Backend) compare(name string, old seam.ETag) error {
	now := seam.None
	info, err := b.root.Lstat(name)
	if err == nil {
		err = checkKind(info.Mode())
	}
	if err == nil {
		var data []byte
		data, err = b.read(name)
		now = seam.ETagOf(string(data))
	}
	if errors.Is(err, fs.ErrNotExist) {
		now, err = seam.None, nil
	}
	if err == nil && now != old {
		err = seam.Changed(now)
	}
	return err
}

// realName is the kernel's name of an open directory.
func realName(dir *os.Root) (string, error) {
	d, err := dir.Open(".")
	if err != nil {
		return "", err
	}
	defer d.Close()
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", d.Fd()))
}

// timeout is how long to wait for a lock.
const timeout = 30 * time.Second

// TimeoutError says that another process has kept the directory's lock for too long.
type TimeoutError = localdir.TimeoutError

// lock keeps other writers of a directory out, in this process and other ones.
// providers.ErrUnsupported where the file system has no such locks.
func lock(ctx context.Context, dir *os.Root) (unlock func(), err error) {
	d, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	if err := localdir.Lock(ctx, int(d.Fd()), timeout); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return func() { _ = localdir.Unlock(int(d.Fd())); d.Close() }, nil
}
