// Package localdir has the common functions of providers over a directory of this machine:
// locking a directory, making one so that it survives loss of power, checking beforehand
// whether it can be made, and opening entries in it and nowhere else.
//
// It knows directories, and nothing of their content.
package localdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/providers"
)

// MkdirAll makes a directory and its missing parents, with access for their user alone, and has
// their names on the disk before it returns.
func MkdirAll(dir string) error { return mkdirAll(dir, syncDir) }

func mkdirAll(dir string, sync func(parent string) error) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		if err := mkdirAll(filepath.Dir(dir), sync); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		if info, _ := os.Stat(dir); info != nil && info.IsDir() {
			return nil
		}
		err = &fs.PathError{Op: "mkdir", Path: dir, Err: unix.ENOTDIR}
	}
	if err != nil {
		return err
	}
	return sync(filepath.Dir(dir))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Happened is the error for a failure after a change: the failure's own kind, such as a full
// disk's, would mean that nothing happened. The end of a context is returned unchanged.
func Happened(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("the change was made, and a loss of power may undo it (%v): %w", err, providers.ErrUnavailable)
}

// OpenBeneath opens a name relative to an open directory: never above it, and never in a mount
// below it, which was not granted with it. resolve adds refusals, as flags of openat2(2). The
// error is the kernel's.
func OpenBeneath(dir int, name string, flags int, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV | resolve}
	for {
		fd, err := unix.Openat2(dir, name, &how)
		if err != unix.EINTR && err != unix.EAGAIN { // a name was moved meanwhile
			return fd, err
		}
	}
}

// Create makes a file to be written in an open directory. It has no name until Named gives it one,
// so that a process which is killed before that leaves nothing; where no such file can be made
// (O_TMPFILE), it has the name at once. The error is the kernel's.
func Create(dir int, name string, mode uint32) (*os.File, error) {
	const flags = unix.O_WRONLY | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, ".", flags|unix.O_TMPFILE, mode)
	for err != nil {
		fd, err = unix.Openat(dir, name, flags|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, mode)
		if err != nil && err != unix.EINTR {
			return nil, err
		}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Named gives a file of Create its name, in an open directory of the same file system, and
// reports whether it had none before.
func Named(f *os.File, dir int) (bool, error) {
	var is unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &is); err != nil || is.Nlink > 0 {
		return false, err
	}
	return true, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), dir, f.Name(), unix.AT_SYMLINK_FOLLOW)
}

// Rename is renameat2(2) between open directories, and link with unlink on file systems
// without RENAME_NOREPLACE. The error is the kernel's.
func Rename(fromDir int, from string, toDir int, to string, flags uint) error {
	err := unix.Renameat2(fromDir, from, toDir, to, flags)
	for err == unix.EINTR {
		err = unix.Renameat2(fromDir, from, toDir, to, flags)
	}
	if err != unix.EINVAL || flags != unix.RENAME_NOREPLACE {
		return err
	}
	if err := unix.Linkat(fromDir, from, toDir, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(fromDir, from, 0)
}

// Nearest is the existing part of a directory's path: the directory, or the nearest of its
// parents.
func Nearest(dir string) (string, os.FileInfo, error) {
	for {
		info, err := os.Stat(dir)
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			return dir, info, err
		}
		dir = filepath.Dir(dir)
	}
}

// Real is the path of a directory, with symbolic links resolved as far as the path exists.
func Real(dir string) (string, error) {
	at, _, err := Nearest(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		return "", err
	}
	rest, err := filepath.Rel(at, dir)
	return filepath.Join(real, rest), err
}

// CheckWritable is the reason why no entry can be made in a directory, or why it cannot be
// made; nil where that is possible. It makes nothing.
func CheckWritable(dir string) error {
	at, info, err := Nearest(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "mkdir", Path: at, Err: unix.ENOTDIR}
	}
	if err == nil {
		if errno := unix.Faccessat(unix.AT_FDCWD, at, unix.W_OK|unix.X_OK, unix.AT_EACCESS); errno != nil {
			err = &fs.PathError{Op: "write in", Path: at, Err: errno}
		}
	}
	return err
}
