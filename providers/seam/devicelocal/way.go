package devicelocal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/internal/localdir"
)

// The content of a granted directory was granted with it, except other mounts below it: a mount
// of the directory sees it the same way.

// enter opens a directory to change names in it. In a plain backend it is reached through no
// symbolic link.
func (b *Backend) enter(name string) (*os.Root, error) {
	if !b.plain {
		dir, err := b.root.OpenRoot(name)
		if err != nil {
			if info, failed := b.root.Stat(name); failed == nil && !info.IsDir() {
				err = providers.ErrNotDir // for which package os has an error without a number
			}
		}
		return dir, err
	}
	d, err := b.beneath(name, unix.O_PATH|unix.O_DIRECTORY, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", d.Fd()))
}

// open opens the file at a name for reading, through links too.
func (b *Backend) open(name string, flags int) (*os.File, error) {
	if !b.plain {
		return b.root.OpenFile(name, flags, 0)
	}
	return b.beneath(name, flags, 0)
}

func (b *Backend) stat(name string) (fs.FileInfo, error) {
	if !b.plain {
		return b.root.Stat(name)
	}
	f, err := b.beneath(name, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// beneath opens a name of a directory that was granted.
func (b *Backend) beneath(name string, flags int, resolve uint64) (*os.File, error) {
	root, err := b.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fd, err := localdir.OpenBeneath(int(root.Fd()), name, flags, resolve)
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), name), nil
	case errors.Is(err, unix.EXDEV):
		return nil, fmt.Errorf("the way to %s leads outside, or into what is mounted there: %w", name, providers.ErrPermission)
	case errors.Is(err, unix.ELOOP) && resolve&unix.RESOLVE_NO_SYMLINKS != 0:
		return nil, fmt.Errorf("a symbolic link is on the way to %s: %w", name, providers.ErrUnsupported)
	}
	return nil, err
}

// isOneMount is providers.ErrUnsupported where a FUSE file system is mounted on the way from the
// root to an open directory: its locks may differ from those of the directory behind it.
func (b *Backend) isOneMount(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	root, err := b.root.Stat(".")
	if err != nil {
		return err
	}
	var is unix.Stat_t
	var system unix.Statfs_t
	if err := errors.Join(unix.Fstat(int(d.Fd()), &is), unix.Fstatfs(int(d.Fd()), &system)); err != nil {
		return err
	}
	if is.Dev != root.Sys().(*syscall.Stat_t).Dev && system.Type == unix.FUSE_SUPER_MAGIC {
		return fmt.Errorf("what is mounted there has locks of its own, so that nothing keeps writers apart: %w", providers.ErrUnsupported)
	}
	return nil
}
