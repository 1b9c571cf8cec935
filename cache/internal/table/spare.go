package table

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// spare is the next log before it is one: an empty file among the logs, for which the disk
// has set blocks aside. Pebble begins a log in the middle of a commit, whenever its memory
// is full, and a log that cannot be written is the end of the table; so the room that the
// commit may need in that log is reserved before it begins.
type spare struct{ held lockedSpare }

// lockedSpare is the spare for the holder of its lock, from spare.lock until unlock.
type lockedSpare struct {
	mu   sync.Mutex
	file vfs.File // nil: there is none
	room int64
}

func (s *spare) lock() *lockedSpare {
	s.held.mu.Lock()
	return &s.held
}

func (s *lockedSpare) unlock() { s.mu.Unlock() }

// grow gives the spare room for n bytes; create makes its file.
func (s *lockedSpare) grow(n int64, create func() (vfs.File, error)) (err error) {
	if s.file == nil {
		if s.file, err = create(); err != nil {
			return err
		}
	}
	if err = s.file.Preallocate(0, n); err == nil {
		s.room = n
	}
	return err
}

// take gives the spare's room, and closes its file, if there is one.
func (s *lockedSpare) take() (room int64, err error) {
	room = s.room
	if s.file != nil {
		err = s.file.Close()
	}
	s.file, s.room = nil, 0
	return room, err
}

func (d *disk) sparePath() string { return d.PathJoin(d.logs, "spare") }

// reserveNext makes sure that n bytes can be written to a log that is not begun yet.
func (d *disk) reserveNext(n int64) error {
	s := d.spare.lock()
	defer s.unlock()
	if s.room >= n || d.frozen.Load() {
		return nil
	}
	return d.setAside(n, func(n int64) error {
		return s.grow(n, func() (vfs.File, error) { return d.FS.Create(d.sparePath(), vfs.WriteCategoryUnspecified) })
	})
}

// beginLog makes a log out of the spare, or with create if there is none.
func (d *disk) beginLog(name string, c vfs.DiskWriteCategory, create func() (vfs.File, error)) (f vfs.File, room int64, err error) {
	s := d.spare.lock()
	defer s.unlock()
	if s.file == nil {
		f, err = create()
		return f, 0, err
	}
	if room, err = s.take(); err != nil {
		return nil, 0, err
	}
	f, err = d.FS.ReuseForWrite(d.sparePath(), name, c)
	return f, room, err
}

// dropSpare gives the reserved blocks back, also those of a run that was killed.
func (d *disk) dropSpare() error {
	s := d.spare.lock()
	defer s.unlock()
	_, err := s.take()
	if gone := d.Remove(d.sparePath()); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
