package content

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Store is the content of one working copy. Its methods may be called at once.
// Only one process may have a directory open; its caller holds the lock.
type Store struct {
	o    Options
	dir  string
	work *work

	dirs    dirs
	names   [64]sync.Mutex // by inode: what happens to its names on the disk
	parts   atomic.Uint64  // numbers files that have no name yet
	leases  bool           // the disk's file system has leases
	syncDir bool           // syncing a new file does not sync its name

	mu     sync.Mutex
	files  map[uint64]*File  // in use; guarded by mu
	deltas map[uint64]*delta // accounts of changes, of files not in use too; guarded by mu
	known  known             // guarded by mu

	kicked   atomic.Bool  // an eviction in the background is on its way
	idle     atomic.Int64 // until when, in ns, none is started: the last found nothing
	delayed  atomic.Bool  // it is looked again after a while whether there is too much
	room     room
	released releases
	trust    trust
	paths    paths
	history  history
	shutdown sync.Once
}

const (
	dataDir = "data"
	partDir = "part"
	mapDir  = "map"
)

// Open takes the directory of a store, and makes it if there is none. What an
// unclean end left half-made is removed.
func Open(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	for _, d := range []string{dataDir, partDir, mapDir, historyDir} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("content: %w", err)
		}
	}
	s := &Store{o: o, dir: dir, work: newWork(), files: make(map[uint64]*File), deltas: make(map[uint64]*delta)}
	s.known.init()
	if err := errors.Join(s.dirs.open(dir), s.clearParts(), s.clearMaps(), s.probe()); err != nil {
		s.dirs.close()
		return nil, fmt.Errorf("content: %w", err)
	}
	s.room.kick = s.kick
	s.room.open(dir, &s.o)
	s.openTrust()
	return s, nil
}

// Close ends what is under way and waits for it, and writes what is pending.
// Files that are in use can still be read, written and released as far as that
// needs no fetch; everything else is [ErrClosed].
func (s *Store) Close() error {
	s.shutdown.Do(func() {
		s.work.end()
		s.flushPaths()
		s.flushTrust()
		s.dirs.close()
	})
	return nil
}

// clearParts removes what was on its way here when the last process ended.
func (s *Store) clearParts() error {
	left, err := os.ReadDir(filepath.Join(s.dir, partDir))
	for _, e := range left {
		err = errors.Join(err, os.Remove(filepath.Join(s.dir, partDir, e.Name())))
	}
	return err
}

// clearMaps removes maps whose content is gone: content is unlinked first.
func (s *Store) clearMaps() error {
	found, err := os.ReadDir(filepath.Join(s.dir, mapDir))
	for _, e := range found {
		ino, perr := strconv.ParseUint(e.Name(), 10, 64)
		if perr != nil {
			continue
		}
		if _, serr := s.stampOf(ino); errors.Is(serr, fs.ErrNotExist) {
			err = errors.Join(err, s.unlinkMap(ino))
		}
	}
	return err
}

// probe finds out what the file system under the store can do.
func (s *Store) probe() error {
	fd, err := s.temp()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	rd, err := reopen(fd, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(rd)
	_, err = unix.FcntlInt(uintptr(rd), unix.F_SETLEASE, unix.F_RDLCK)
	s.leases = err == nil || err == unix.EAGAIN // fd is a writer
	if !s.leases {
		s.o.Log.Warn("content: the file system has no leases; writers that are not ours cannot be seen", "error", err)
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
	default:
		s.syncDir = true
	}
	return nil
}

func (s *Store) lockNames(ino uint64) *sync.Mutex {
	m := &s.names[ino%uint64(len(s.names))]
	m.Lock()
	return m
}

// Remove unlinks the content of an inode, if there is any. Files of it that are
// in use live on without a name. It does not wait for anything but the disk.
func (s *Store) Remove(ino uint64) {
	defer s.lockNames(ino).Unlock()
	if err := s.displace(ino); err != nil {
		s.o.Log.Error("content: unlink", "ino", ino, "error", err)
	}
}

// displace unlinks the content of an inode; what is in use has no name then.
// The names of the inode are locked.
func (s *Store) displace(ino uint64) error {
	if err := s.unlink(ino); err != nil {
		return err
	}
	s.forget(ino)
	return nil
}

// forget takes an inode out of all maps: what is in use has no name any more.
// The names of the inode are locked.
func (s *Store) forget(ino uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, ino)
	delete(s.deltas, ino)
	s.known.drop(ino)
	s.paths.forget(ino)
}

// Each visits all content that has a name, with the path that it was last
// written under ("" if none was noted) and its size, for whoever has to rescue
// content without its table. Partial says that some of it was never here.
func (s *Store) Each(visit func(ino uint64, path string, size int64, partial bool)) error {
	s.flushPaths()
	shards, err := os.ReadDir(filepath.Join(s.dir, dataDir))
	for _, sh := range shards {
		dir := filepath.Join(s.dir, dataDir, sh.Name())
		found, derr := os.ReadDir(dir)
		err = errors.Join(err, derr)
		for _, e := range found {
			if ino, perr := strconv.ParseUint(e.Name(), 10, 64); perr == nil {
				err = errors.Join(err, visitOne(filepath.Join(dir, e.Name()), ino, s.mapped(ino), visit))
			}
		}
	}
	return err
}

func visitOne(path string, ino uint64, mapped bool, visit func(uint64, string, int64, bool)) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		if err == unix.ENOENT {
			return nil
		}
		return &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	visit(ino, readPath(path), st.Size, mapped)
	return nil
}

// Usage is what a store holds.
type Usage struct {
	Clean int64 // bytes that may be given up
	Dirty int64 // bytes that may not
	Kept  int64 // bytes of history
	Files int   // inodes that the caller told of
	Open  int   // inodes in use
}

// Usage says what the store holds, as far as [Store.Clean] was told.
func (s *Store) Usage() Usage {
	kept := s.KeptBytes()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Usage{Clean: s.known.clean, Dirty: s.known.dirty, Kept: kept,
		Files: len(s.known.all), Open: len(s.files)}
}

// bootID names this boot, "" if the kernel does not say.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}
