// Package state is the directory of a working copy, for one process alone, or for several that
// read its table:
//
//	lock      held (flock) while the working copy is open
//	names/    the table
//	data/     content, one file per inode
//	history/  content of earlier versions
package state

import (
	"cmp"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/quota"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/providers/flock"
)

// ErrInUse says that another process has the state directory.
var ErrInUse = errors.New("the working copy is in use by another process")

// Dir is a state directory, whose lock is held until Close.
type Dir struct {
	Path    string
	Table   *table.Table
	Content *content.Store
	Share   *quota.Share // nil: no common bound

	lock   *flock.Lock
	opened atomic.Bool // content is
}

// Options say how a working copy opens its state.
type Options struct {
	Table   table.Options   // but for NoSpace
	Content content.Options // but for Mine
	// Total bounds the clean content of all working copies that have the same TotalFile, in
	// bytes; 0: no bound.
	Total     int64
	TotalFile string
}

// Open opens the table and content in a directory, which is made if there is none.
func Open(dir string, o Options) (d *Dir, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if d, err = Lock(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	o.Table.NoSpace = d.makeRoom(o.Content.BallastFile)
	if err := d.OpenTable(o.Table); err != nil {
		return d, err
	}
	if o.Total != 0 {
		if d.Share, err = quota.Open(o.TotalFile, quota.Options{Total: o.Total, Now: o.Content.Now}); err != nil {
			return d, err
		}
		o.Content.Mine = d.Share.Mine
	}
	d.Content, err = content.Open(dir, o.Content)
	d.opened.Store(true)
	return d, err
}

// makeRoom is for a table that cannot be opened because the disk is full: it removes the
// ballast, which content makes again. Once content is open, its Relieve makes room.
func (d *Dir) makeRoom(ballast string) func() {
	return func() {
		if !d.opened.Load() {
			_ = os.Remove(cmp.Or(ballast, filepath.Join(d.Path, content.BallastName)))
		}
	}
}

// IsOne reports whether a directory holds a working copy.
func IsOne(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "lock"))
	return !errors.Is(err, iofs.ErrNotExist)
}

// Names is the path of a working copy's table.
func Names(dir string) string { return filepath.Join(dir, "names") }

// HasTable is nil if there is a table. Content without one is damage.
func HasTable(dir string) error {
	_, err := os.Stat(Names(dir))
	if err == nil {
		return nil
	}
	return cmp.Or(contentAlone(dir), err)
}

// OpenTable opens the table alone. A new one has no content beside it.
func (d *Dir) OpenTable(o table.Options) (err error) {
	if d.Table, err = table.Open(Names(d.Path), o); err == nil && d.Table.Session().First {
		err = contentAlone(d.Path)
	}
	return err
}

// CloseTable closes the table, if it is open, so that another can be.
func (d *Dir) CloseTable() (err error) {
	if d.Table != nil {
		err = d.Table.Close()
		d.Table = nil
	}
	return err
}

// contentAlone is table.ErrDamaged when there is content, but no table that has its inodes.
func contentAlone(dir string) error {
	err := filepath.WalkDir(filepath.Join(dir, "data"), func(path string, d iofs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if _, err := strconv.ParseUint(d.Name(), 10, 64); err == nil {
				return fmt.Errorf("%w: there is content, and no table of names says whose it is", table.ErrDamaged)
			}
		}
		return err
	})
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	return err
}

// Lock locks a directory exclusively, and opens nothing in it.
func Lock(dir string) (*Dir, error) { return lock(dir, flock.Exclusive) }

// Share is Lock for a process that only reads the table; several processes may share it.
func Share(dir string) (*Dir, error) { return lock(dir, flock.Shared) }

func lock(dir string, take func(path string) (*flock.Lock, error)) (*Dir, error) {
	l, err := take(filepath.Join(dir, "lock"))
	switch {
	case errors.Is(err, flock.ErrLocked):
		return nil, fmt.Errorf("%s: %w", dir, ErrInUse)
	case err != nil:
		return nil, fmt.Errorf("state directory: %w", err)
	}
	return &Dir{Path: dir, lock: l}, nil
}

// Close closes the table and the content, and releases the lock.
func (d *Dir) Close() error {
	var errs []error
	if d.Content != nil {
		errs = append(errs, d.Content.Close())
	}
	if d.Share != nil {
		errs = append(errs, d.Share.Close())
	}
	if d.Table != nil {
		errs = append(errs, d.Table.Close())
	}
	return errors.Join(append(errs, d.lock.Close())...)
}
