package table

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// format is the version of the database's contents: keys, and the meaning of records. The
// encoding of one record has a version of its own. In format 2 an inode may have times of
// any year, and says whether its content came from the remote.
const format = 2

// formatHead is the beginning of the file that holds the format version.
const formatHead = "wsmount table "

// readFormat reads the format version in dir before anything is touched; 0: there is none.
// The file is the last that is written when a table is made.
func readFormat(files vfs.FS, dir string) (found uint64, err error) {
	text, err := readFile(files, files.PathJoin(dir, "format"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	number, ok := strings.CutPrefix(strings.TrimSuffix(text, "\n"), formatHead)
	found, err = strconv.ParseUint(number, 10, 32)
	switch {
	case !ok || err != nil || found == 0:
		return 0, fmt.Errorf("%w: the format version is %.40q", ErrDamaged, text)
	case found > format:
		return 0, fmt.Errorf("%w: it has format %d, and this one knows up to %d", ErrNewer, found, format)
	}
	return found, nil
}

// writeFormat ends the making of a table, and marks one of an earlier format, since from
// now on it may hold records that programs of that format do not know. A database with
// records and without a format version once had one.
func (t *Table) writeFormat(dir string, found uint64) error {
	if found == 0 && len(t.piece(nil, nil, 1)) > 0 {
		return fmt.Errorf("%w: there is a database without a format version", ErrDamaged)
	}
	return writeFile(t.disk, dir, t.disk.PathJoin(dir, "format"), fmt.Sprintf("%s%d\n", formatHead, format))
}

func readFile(files vfs.FS, path string) (string, error) {
	f, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64))
	return string(text), err
}

// writeFile makes a file with its whole content or none, whatever happens.
func writeFile(files vfs.FS, dir, path, text string) error {
	f, err := files.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := files.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(files, dir)
}

func syncDir(files vfs.FS, dir string) error {
	d, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makeDir makes a directory, and missing ones above it, durably.
func makeDir(files vfs.FS, dir string) error {
	if _, err := files.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := files.PathDir(dir)
	if err := makeDir(files, parent); err != nil {
		return err
	}
	if err := files.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(files, parent)
}
