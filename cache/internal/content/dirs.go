package content

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// dirs are the directories of a store, with what the file system under them can do. They
// are held open, so that a name in them costs one component to look up. What changes the
// names of an inode in them needs these locked: see lock.
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

	shardCount = 256
)

// shard is a directory of content files. Neighbouring inodes share one, as they
// are made together.
type shard struct {
	mu sync.Mutex   // held while it is opened
	fd atomic.Int64 // plus 1, so that 0 is none
}

// open opens the directory, the given one of root, and makes it if there is none. An
// error is for this call only: a full disk has room again.
func (sh *shard) open(root string, number int) (int, error) {
	if fd := sh.fd.Load(); fd > 0 {
		return int(fd) - 1, nil
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if fd := sh.fd.Load(); fd > 0 {
		return int(fd) - 1, nil
	}
	path := filepath.Join(root, dataDir, fmt.Sprintf("%02x", number))
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

// init opens what is in root, makes what is not there yet, and removes what an unclean
// end left half-made.
func (d *dirs) init(root string, o *Options) error {
	d.root, d.fsync = root, o.sync
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

// clearParts removes what was on its way here when the last process ended.
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

// probe finds out what the file system can do.
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

// part makes a file for what is on its way here, and says its path.
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

// syncData brings the bytes of an inode's content to the disk, and when it was not
// synced before its name too: fdatasync covers no rename.
func (d *dirs) syncData(ino uint64, fd int, again bool) error {
	if again {
		if err := retry(func() error { return unix.Fdatasync(fd) }); err != nil {
			return err
		}
		return d.syncMaps()
	}
	if err := d.sync(fd); err != nil {
		return err
	}
	if d.syncDir {
		if err := d.syncName(ino); err != nil {
			return err
		}
	}
	return d.syncMaps()
}

func (d *dirs) sync(fd int) error { return retry(func() error { return d.fsync(fd) }) }

// syncMaps returns when the disk knows of every map that was unlinked. A map
// that came back after a loss of power would have written blocks fetched again.
func (d *dirs) syncMaps() error {
	d.unmapped.Lock()
	defer d.unmapped.Unlock()
	if !d.dirty {
		return nil
	}
	err := d.inMaps(0, func(dir int, _ string) error { return retry(func() error { return unix.Fsync(dir) }) })
	d.dirty = err != nil
	return err
}

// syncName returns when the disk knows the name of an inode's content.
func (d *dirs) syncName(ino uint64) error {
	return d.in(ino, func(dir int, _ string) error { return retry(func() error { return unix.Fsync(dir) }) })
}

// quiet asks the kernel by taking a lease for a moment: it is refused while
// somebody has the file open for writing.
func (d *dirs) quiet(fd int) bool {
	if !d.leases {
		return true
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return false
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}

// quietSize is the space that content takes that nobody has open for writing; -1 when
// somebody has. Content that is gone takes none.
func (d *dirs) quietSize(ino uint64) int64 {
	fd, err := d.open(ino, unix.O_RDONLY)
	if err == unix.ENOENT {
		return 0
	}
	if err != nil {
		return -1
	}
	defer unix.Close(fd)
	if !d.quiet(fd) {
		return -1
	}
	return bytesOf(fd)
}
