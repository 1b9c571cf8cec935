package content

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Store is the content of one working copy. Its methods may be called at once. Only one
// process may have a directory open; its caller ensures that.
type Store struct {
	o    Options
	dir  string
	work *work

	dirs     dirs
	inodes   inodes
	room     room
	eviction eviction
	released releases
	paths    paths
	history  history
	shutdown sync.Once
}

// Open takes the directory of a store, and makes it if there is none. Half-made files of an
// unclean end are removed.
func Open(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{o: o, dir: dir, work: newWork()}
	s.inodes.init()
	s.eviction.init(s)
	if err := s.dirs.init(dir, &s.o); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	s.room.kick = s.eviction.kick
	s.room.open(dir, &s.o)
	s.paths.init(&s.dirs, s.work)
	s.history.dir = filepath.Join(dir, historyDir)
	return s, nil
}

// Close ends all work under way and waits for it, and writes pending paths. Files that are
// in use can still be read, written and released as far as that needs no fetch; everything
// else is [ErrClosed].
func (s *Store) Close() error {
	s.shutdown.Do(func() {
		s.work.end()
		s.paths.flush()
		s.dirs.close()
	})
	return nil
}

// Remove unlinks the content of an inode, if there is any. Files of it that are in use live
// on without a name. It does not wait for anything but the disk.
func (s *Store) Remove(ino uint64) {
	n := s.dirs.lock(ino)
	defer n.unlock()
	if err := s.displace(n); err != nil {
		s.o.Log.Error("content: unlink", "ino", ino, "error", err)
	}
}

// displace unlinks the content of an inode; a File in use has no name then.
func (s *Store) displace(n names) error {
	if err := n.unlink(); err != nil {
		return err
	}
	s.forget(n)
	return nil
}

// forget takes an inode out of memory: a File in use has no name any more.
func (s *Store) forget(n names) {
	s.inodes.forget(n)
	s.paths.forget(n.ino)
}

// Each visits all content that has a name, with the path that it was last written under (""
// if none was noted) and its size, so that content can be rescued without its table.
// Partial says that some of it was never local.
func (s *Store) Each(visit func(ino uint64, path string, size int64, partial bool)) error {
	s.paths.flush()
	return s.dirs.each(func(ino uint64, path string) error {
		mapped := s.dirs.mapped(ino)
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			if err == unix.ENOENT {
				return nil
			}
			return &fs.PathError{Op: "lstat", Path: path, Err: err}
		}
		visit(ino, readPath(path), st.Size, mapped)
		return nil
	})
}

// Usage is the amount of content in a store.
type Usage struct {
	Clean int64 // bytes that may be evicted
	Dirty int64 // bytes that may not
	Kept  int64 // bytes of history
	Files int   // inodes that the caller told of
	Open  int   // inodes in use
}

// Usage gives the amount of content, as far as [Store.Clean] was told.
func (s *Store) Usage() Usage {
	kept := s.KeptBytes()
	all := s.inodes.lock()
	defer all.unlock()
	return Usage{Clean: all.known.clean, Dirty: all.known.dirty, Kept: kept,
		Files: len(all.known.all), Open: len(all.files)}
}

// Statfs describes the disk that content lies on, or the quota of its directory where the
// disk has one. Available is the space for writes: free space above the floor, and clean
// content, which counts as free.
func (s *Store) Statfs() (unix.Statfs_t, error) { return s.room.forPrograms(s.Usage().Clean) }
