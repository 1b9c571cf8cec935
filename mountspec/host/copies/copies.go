// Package copies keeps files that were fetched from elsewhere, in a directory of the host's
// own. It promises that a directory has all of its files or, after a crash, perhaps none, never
// some of two states, that only the user can read them, and that no editor changes
// one by mistake.
//
//	err := copies.Replace("/home/ann/.config/wsmount/fetched/acme/site", map[string]string{"WORKSPACE.md": text})
package copies

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Replace gives dir these files, by their paths in it, and nothing else.
func Replace(dir string, files map[string]string) (err error) {
	above := filepath.Dir(dir)
	if err := os.MkdirAll(above, 0o700); err != nil {
		return err
	}
	next, err := os.MkdirTemp(above, "."+filepath.Base(dir)+".") // 0700
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(next)) }() // by then the old files
	for name, text := range files {
		if err := write(next, name, text); err != nil {
			return err
		}
	}
	err = unix.Renameat2(unix.AT_FDCWD, next, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(next, dir)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: next, New: dir, Err: err}
	}
	return syncDir(above)
}

// Remove takes a directory away, and the one above it if that is empty then.
func Remove(dir string) error {
	err := os.RemoveAll(dir)
	_ = os.Remove(filepath.Dir(dir)) // others may be in it
	return err
}

func write(dir, name, text string) error {
	if !filepath.IsLocal(name) {
		return &fs.PathError{Op: "write", Path: name, Err: fs.ErrInvalid}
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close(), syncDir(filepath.Dir(path)))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
