package content

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// dirs are the directories of a store, and the abilities of their file system. They are
// held open, so that a name in them costs one component to look up. A change of an inode's
// names in them needs these locked: see lock.
type dirs struct {
	root    string
	parts   atomic.Uint64      // numbers files that have no name yet
	fsync   func(fd int) error // may fail in tests
	leases  bool               // the file system has leases
	syncDir bool               // syncing a new file does not sync its name

	mu     sync.RWMutex // held over every use of a descriptor
	closed bool
	maps   int
	shards [shardCount]shard
	locks  [64]sync.Mutex // on names, by inode

	unmapped sync.Mutex
	dirty    bool // a map was unlinked and the disk may not know; guarded by unmapped
}

const (
	dataDir = "data"
	partDir = "part"
	mapDir  = "map"
)

// init opens the directories in root, makes missing ones, and removes half-made files of an
// unclean end.
func (d *dirs) init(root string, o *Options) error {
	d.root, d.fsync = root, o.Fsync
	for _, name := range []string{dataDir, partDir, mapDir, historyDir} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			return err
		}
	}
	spread(filepath.Join(root, dataDir))
	var err error
	if d.maps, err = openDir(filepath.Join(root, mapDir)); err != nil {
		return err
	}
	if err := errors.Join(d.clearParts(), d.clearMaps(), d.probe(o.Log)); err != nil {
		d.close()
		return err
	}
	return nil
}

// clearParts removes the parts that were being fetched when the last process ended.
func (d *dirs) clearParts() error {
	left, err := os.ReadDir(filepath.Join(d.root, partDir))
	for _, e := range left {
		err = errors.Join(err, os.Remove(filepath.Join(d.root, partDir, e.Name())))
	}
	return err
}

// clearMaps removes maps whose content is gone: content is unlinked first.
func (d *dirs) clearMaps() error {
	found, err := os.ReadDir(filepath.Join(d.root, mapDir))
	for _, e := range found {
		ino, perr := strconv.ParseUint(e.Name(), 10, 64)
		if perr != nil {
			continue
		}
		if _, serr := d.stat(ino); errors.Is(serr, fs.ErrNotExist) {
			n := d.lock(ino)
			err = errors.Join(err, n.unlinkMap())
			n.unlock()
		}
	}
	return err
}

// probe finds out the abilities of the file system.
func (d *dirs) probe(log *slog.Logger) error {
	fd, err := d.temp()
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
	d.leases = err == nil || err == unix.EAGAIN // fd is a writer
	if !d.leases {
		log.Warn("content: the file system has no leases; writers that are not ours cannot be seen", "error", err)
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
	default:
		d.syncDir = true
	}
	return nil
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

// in calls do with the open directory of an inode's content, and its name in that directory.
func (d *dirs) in(ino uint64, do func(dir int, name string) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return ErrClosed
	}
	n := shardOf(ino)
	dir, err := d.shards[n].open(d.root, n)
	if err != nil {
		return err
	}
	return do(dir, nameOf(ino))
}

// inMaps is in for the map of an inode.
func (d *dirs) inMaps(ino uint64, do func(dir int, name string) error) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return ErrClosed
	}
	return do(d.maps, nameOf(ino))
}

// open opens the content of an inode.
func (d *dirs) open(ino uint64, flags int) (fd int, err error) {
	err = d.in(ino, func(dir int, name string) (err error) {
		fd, err = openAt(dir, name, flags)
		return err
	})
	return fd, err
}

// openMap opens the map of an inode.
func (d *dirs) openMap(ino uint64, flags int) (fd int, err error) {
	err = d.inMaps(ino, func(dir int, name string) (err error) {
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

// stat asks the disk for the content of an inode.
func (d *dirs) stat(ino uint64) (st unix.Stat_t, err error) {
	err = d.in(ino, func(dir int, name string) error {
		return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	return st, err
}

// allocated is the space that the content of an inode takes, if it has a file.
func (d *dirs) allocated(ino uint64) (n int64, there bool) {
	st, err := d.stat(ino)
	return st.Blocks * 512, err == nil
}

// mapped reports that an inode has a map.
func (d *dirs) mapped(ino uint64) bool {
	return d.inMaps(ino, func(dir int, name string) error {
		return unix.Faccessat(dir, name, unix.F_OK, 0)
	}) == nil
}

// each visits all content that has a name, with its path on the disk.
func (d *dirs) each(visit func(ino uint64, path string) error) error {
	shards, err := os.ReadDir(filepath.Join(d.root, dataDir))
	for _, sh := range shards {
		dir := filepath.Join(d.root, dataDir, sh.Name())
		found, derr := os.ReadDir(dir)
		err = errors.Join(err, derr)
		for _, e := range found {
			if ino, perr := strconv.ParseUint(e.Name(), 10, 64); perr == nil {
				err = errors.Join(err, visit(ino, filepath.Join(dir, e.Name())))
			}
		}
	}
	return err
}

// part makes a file for content that is being fetched, and gives its path.
func (d *dirs) part() (string, int, error) {
	path := filepath.Join(d.root, partDir, strconv.FormatUint(d.parts.Add(1), 10))
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return "", -1, err
	}
	return path, fd, nil
}

// temp makes a file without a name.
func (d *dirs) temp() (int, error) {
	path, fd, err := d.part()
	if err != nil {
		return -1, err
	}
	return fd, os.Remove(path)
}

// reopen opens a file again, whether or not it still has a name.
func reopen(fd, flags int) (int, error) {
	return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), flags|unix.O_CLOEXEC, 0)
}
