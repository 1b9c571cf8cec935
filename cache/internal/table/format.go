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

// format is the version of what the database holds: keys, and what records
// mean. How one record is encoded has a version of its own. In format 2 an inode may
// have times of any year, and says whether its content came from the remote.
const format = 2

// formatHead is how the file that holds the format version begins.
const formatHead = "wsmount table "

// readFormat reads the format version in dir before anything is touched; 0: there is
// none. It is the last thing that is written when a table is made.
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

// writeFormat ends the making of a table, and says of one of an earlier format that it
// may hold from here on what programs of then do not know. One without a format version
// that holds something once had one.
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

// writeFile makes a file whose content is there or not, whatever happens.
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

// makeDir makes a directory, and what is missing above it, to last.
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
