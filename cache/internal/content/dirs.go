package content

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// dirs holds the directories of the store open, so that a name in them costs
// one component to look up.
type dirs struct {
	data   string
	mu     sync.RWMutex // held over every use of a descriptor
	closed bool
	maps   int
	shards [shardCount]shard

	unmapped sync.Mutex
	dirty    bool // a map was unlinked and the disk may not know; guarded by unmapped
}

const shardCount = 256

// shard is a directory of content files. Neighbouring inodes share one, as they
// are made together.
type shard struct {
	mu sync.Mutex   // held while it is opened
	fd atomic.Int64 // plus 1, so that 0 is none
}

// open opens the directory, the given one in data, and makes it if there is none. An
// error is for this call only: a full disk has room again.
func (sh *shard) open(data string, number int) (int, error) {
	if fd := sh.fd.Load(); fd > 0 {
		return int(fd) - 1, nil
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if fd := sh.fd.Load(); fd > 0 {
		return int(fd) - 1, nil
	}
	path := filepath.Join(data, fmt.Sprintf("%02x", number))
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return -1, fmt.Errorf("%w: %w", errNoShard, err)
	}
	fd, err := openDir(path)
	sh.fd.Store(int64(fd) + 1)
	return fd, err
}

// errNoShard says that a directory is not there and cannot be made.
var errNoShard = errors.New("no directory for content")

func shardOf(ino uint64) int { return int(ino >> 10 % shardCount) }

func nameOf(ino uint64) string { return strconv.FormatUint(ino, 10) }

func (d *dirs) open(dir string) (err error) {
	d.data = filepath.Join(dir, dataDir)
	spread(d.data)
	d.maps, err = openDir(filepath.Join(dir, mapDir))
	d.closed = err != nil
	return err
}

// topDir is FS_TOPDIR_FL of linux/fs.h, the T of chattr(1).
const topDir = 0x00020000

// spread asks ext4 to put each directory in one into another block group. A group
// in which files have just been removed is slow to make files in: for seconds
// ext4 goes past each inode number that is free again (recently_deleted in
// fs/ext4/ialloc.c), and all of our shards would be in the group of their parent.
// Other file systems know no such flag, and do not need it.
func spread(dir string) {
	fd, err := openDir(dir)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS); err == nil && flags&topDir == 0 {
		_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|topDir)
	}
}

func openDir(path string) (int, error) {
	return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

func (d *dirs) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.closed = true
	unix.Close(d.maps)
	for i := range d.shards {
		if fd := d.shards[i].fd.Load(); fd > 0 {
			unix.Close(int(fd) - 1)
		}
	}
}

// in calls do with the open directory of an inode's content, and the name that
// it has there.
func (s *Store) in(ino uint64, do func(dir int, name string) error) error {
	d := &s.dirs
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return ErrClosed
	}
	n := shardOf(ino)
	dir, err := d.shards[n].open(d.data, n)
	if err != nil {
		return err
	}
	return do(dir, nameOf(ino))
}

// inMaps is in for the map of an inode.
func (s *Store) inMaps(ino uint64, do func(dir int, name string) error) error {
	d := &s.dirs
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return ErrClosed
	}
	return do(d.maps, nameOf(ino))
}

// open opens a content file, or with O_CREAT makes it.
func (s *Store) open(ino uint64, flags int) (fd int, err error) {
	err = s.in(ino, func(dir int, name string) (err error) {
		fd, err = openAt(dir, name, flags)
		return err
	})
	return fd, err
}

// openMap opens or makes the map of an inode.
func (s *Store) openMap(ino uint64, flags int) (fd int, err error) {
	err = s.inMaps(ino, func(dir int, name string) (err error) {
		fd, err = openAt(dir, name, flags)
		return err
	})
	return fd, err
}

func openAt(dir int, name string, flags int) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
		return err
	})
	return fd, err
}

// mapped reports that an inode has a map.
func (s *Store) mapped(ino uint64) bool {
	return s.inMaps(ino, func(dir int, name string) error {
		return unix.Faccessat(dir, name, unix.F_OK, 0)
	}) == nil
}

// unlink removes the names of an inode's content, if there are any: the map
// last, since content without one counts as whole. The names are locked.
func (s *Store) unlink(ino uint64) error {
	err := s.in(ino, func(dir int, name string) error {
		return ignoreMissing(unix.Unlinkat(dir, name, 0))
	})
	if err != nil && !errors.Is(err, errNoShard) {
		return err
	}
	return s.unlinkMap(ino)
}

// unlinkMap makes content count as whole. The names of the inode are locked.
func (s *Store) unlinkMap(ino uint64) error {
	s.dirs.unmapped.Lock()
	defer s.dirs.unmapped.Unlock()
	err := s.inMaps(ino, func(dir int, name string) error { return unix.Unlinkat(dir, name, 0) })
	if err == nil {
		s.dirs.dirty = true
	}
	return ignoreMissing(err)
}

// syncMaps returns when the disk knows of every map that was unlinked. A map
// that came back after a loss of power would have written blocks fetched again.
func (s *Store) syncMaps() error {
	s.dirs.unmapped.Lock()
	defer s.dirs.unmapped.Unlock()
	if !s.dirs.dirty {
		return nil
	}
	err := s.inMaps(0, func(dir int, _ string) error { return retry(func() error { return unix.Fsync(dir) }) })
	s.dirs.dirty = err != nil
	return err
}

// syncName returns when the disk knows the name of an inode's content.
func (s *Store) syncName(ino uint64) error {
	return s.in(ino, func(dir int, _ string) error { return retry(func() error { return unix.Fsync(dir) }) })
}

func ignoreMissing(err error) error {
	if err == unix.ENOENT {
		return nil
	}
	return err
}

// named reports that a file is still the content of its inode. The names of
// the inode are locked.
func (s *Store) named(f *File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[f.ino] == f
}

// name gives a file that was on its way its name. The names of the inode are
// locked.
func (s *Store) name(f *File) error {
	err := s.in(f.ino, func(dir int, name string) error {
		return unix.Renameat(unix.AT_FDCWD, f.part, dir, name)
	})
	if err == nil {
		f.part = ""
	}
	return err
}

// part makes a file for what is on its way here, and says its path.
func (s *Store) part() (string, int, error) {
	path := filepath.Join(s.dir, partDir, strconv.FormatUint(s.parts.Add(1), 10))
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return "", -1, err
	}
	return path, fd, nil
}

// temp makes a file without a name.
func (s *Store) temp() (int, error) {
	path, fd, err := s.part()
	if err != nil {
		return -1, err
	}
	return fd, os.Remove(path)
}

// reopen opens a file again, whether or not it still has a name.
func reopen(fd, flags int) (int, error) {
	return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), flags|unix.O_CLOEXEC, 0)
}
