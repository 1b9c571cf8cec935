package cache

import (
	"cmp"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/quota"
	"github.com/wsmount/wsmount/cache/internal/table"
)

// ErrInUse says that another process has the state directory.
var ErrInUse = errors.New("the working copy is in use by another process")

// stateDir is the directory of a working copy, for this process alone:
//
//	lock      held (flock) while the working copy is open
//	names/    the table
//	data/     content, one file per inode
//	history/  content of versions that were
type stateDir struct {
	dir     string
	lock    *os.File
	table   *table.Table
	content *content.Store
	share   *quota.Share // nil: what all hold is not bounded
	opened  atomic.Bool  // content is
}

func openState(o Options) (s *stateDir, err error) {
	if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := os.Chmod(o.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	s = &stateDir{dir: o.StateDir}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.take(); err != nil {
		return s, err
	}
	if err := s.openTable(table.Options{Log: o.Log, Strict: o.strict, BootID: o.boot, FS: o.names, NoSpace: s.makeRoom(o)}); err != nil {
		return s, err
	}
	if err := s.takeShare(o); err != nil {
		return s, err
	}
	s.content, err = content.Open(o.StateDir, content.Options{Limit: o.CacheSize, Floor: o.KeepFree, Mine: s.mine, BallastFile: o.BallastFile, Budget: o.Fetches, Log: o.Log, Now: o.Now})
	s.opened.Store(true)
	return s, err
}

// makeRoom is for a table that cannot be opened because the disk is full: the ballast
// goes, which content makes again. Once content is open, Relieve does that.
func (s *stateDir) makeRoom(o Options) func() {
	return func() {
		if !s.opened.Load() {
			_ = os.Remove(cmp.Or(o.BallastFile, filepath.Join(o.StateDir, content.BallastName)))
		}
	}
}

// takeShare takes a part of what all working copies may hold, where that is bounded.
func (s *stateDir) takeShare(o Options) (err error) {
	if o.TotalSize == 0 {
		return nil
	}
	s.share, err = quota.Open(o.TotalFile, quota.Options{Total: o.TotalSize, Now: o.Now})
	return err
}

// mine is how many of so many bytes of clean content may stay beside what other
// working copies hold.
func (s *stateDir) mine(clean int64) int64 {
	if s.share == nil {
		return clean
	}
	return s.share.Mine(clean)
}

// openTable opens the table. A new one has no content beside it.
func (s *stateDir) openTable(o table.Options) (err error) {
	if s.table, err = table.Open(filepath.Join(s.dir, "names"), o); err == nil && s.table.Session().First {
		err = contentAlone(s.dir)
	}
	return err
}

// contentAlone is table.ErrDamaged when there is content, though there is no table
// that says whose it is.
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

// take gets the lock.
func (s *stateDir) take() (err error) {
	s.lock, err = os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	err = syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%s: %w", s.dir, ErrInUse)
	}
	return err
}

// close ends it cleanly.
func (s *stateDir) close() error {
	var errs []error
	if s.content != nil {
		errs = append(errs, s.content.Close())
	}
	if s.share != nil {
		errs = append(errs, s.share.Close())
	}
	if s.table != nil {
		errs = append(errs, s.table.Close())
	}
	if s.lock != nil {
		// A child that another goroutine starts has the descriptor too, until it
		// executes its program.
		errs = append(errs, syscall.Flock(int(s.lock.Fd()), syscall.LOCK_UN), s.lock.Close())
	}
	return errors.Join(errs...)
}
