package hostfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// WriteAtomic replaces the file at path by data, mode 0600: a reader, or a
// crash, finds the old contents or the new ones, never a part. The
// directory must exist and is checked as Read would.
func WriteAtomic(path string, data []byte, o Options) error { return write(path, data, nil, o) }

// ErrChanged matches the refusal to replace a file that is not the one that was read.
var ErrChanged = errors.New("was changed meanwhile")

// Replace is WriteAtomic for a file that was read: it keeps its owner and mode, and refuses
// if the file is another one, or has changed, since.
func (f *File) Replace(data []byte, o Options) error {
	var now unix.Stat_t
	if err := unix.Lstat(f.Path, &now); err != nil {
		return &fs.PathError{Op: "lstat", Path: f.Path, Err: err}
	}
	if now.Dev != f.Stat.Dev || now.Ino != f.Stat.Ino || now.Ctim != f.Stat.Ctim || now.Size != f.Stat.Size {
		return fmt.Errorf("%s %w", f.Path, ErrChanged)
	}
	return write(f.Path, data, &f.Stat, o)
}

// write is WriteAtomic with the owner and the mode of like, unless that is nil.
func write(path string, data []byte, like *unix.Stat_t, o Options) error {
	dir, err := CheckDir(filepath.Dir(path), o)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp") // 0600, O_EXCL
	if err != nil {
		return err
	}
	err = writeTo(f, data, like, o)
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, filepath.Base(path)))
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	if o.NoSync {
		return nil
	}
	return syncDir(dir)
}

func writeTo(f *os.File, data []byte, like *unix.Stat_t, o Options) error {
	_, err := f.Write(data)
	if err == nil && like != nil {
		if err = f.Chown(int(like.Uid), int(like.Gid)); err == nil { // first: it takes bits of the mode away
			err = f.Chmod(fs.FileMode(like.Mode & 0o777))
		}
	}
	if err == nil && !o.NoSync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock takes the exclusive lock file at path, creating it with mode 0600,
// and waits for it. The returned function gives it back. The file stays:
// removing it would let two holders lock two files of one name.
func Lock(path string, o Options) (unlock func(), err error) {
	dir, err := CheckDir(filepath.Dir(path), o)
	if err != nil {
		return nil, err
	}
	path = filepath.Join(dir, filepath.Base(path))
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	for {
		if err = unix.Flock(fd, unix.LOCK_EX); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() {
		_ = unix.Flock(fd, unix.LOCK_UN) // a child that is being started has the descriptor too
		unix.Close(fd)
	}, nil
}
