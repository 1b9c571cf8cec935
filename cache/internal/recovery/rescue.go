package recovery

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/providers"
)

// Dir, in the state directory, has content whose inode the table has lost: after a loss of
// power the table may be older than the content. Files in it are never removed.
const Dir = "recovered"

// Rescued lists the files of Dir, by path below the state directory.
func Rescued(stateDir string) (list []string, err error) {
	err = filepath.WalkDir(filepath.Join(stateDir, Dir), func(path string, d iofs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(stateDir, path)
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	})
	if errors.Is(err, iofs.ErrNotExist) {
		err = nil
	}
	return list, err
}

// SafePath is a path that stays below a directory, made of any path noted beside content.
func SafePath(at string) string {
	l, err := providers.ParseLocator(at)
	if err != nil || l.String() == "" {
		return "unknown"
	}
	return l.String()
}

// WriteOut makes a new file below a directory, synced. It overwrites nothing,
// and follows no link.
func WriteOut(dir, name string, r io.Reader) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Sync(), f.Close())
}

// Raw reads the content file from disk, with zeros for missing ranges. It is valid until the
// caller's Release.
func Raw(f *content.File) *io.SectionReader {
	return io.NewSectionReader(descriptor(f.Fd()), 0, f.Size())
}

// descriptor is a file descriptor that its owner closes.
type descriptor int

func (fd descriptor) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := unix.Pread(int(fd), p[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return n, err
		case m == 0:
			return n, io.EOF
		}
		n += m
	}
	return n, nil
}
