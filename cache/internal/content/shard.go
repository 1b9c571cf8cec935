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

const shardCount = 256

// shard is a directory of content files. Neighbouring inodes share one, as they
// are made together.
type shard struct {
	mu sync.Mutex   // held while it is opened
	fd atomic.Int64 // plus 1, so that 0 is none
}

// open opens the directory, the given one of root, and makes it if there is none. An error
// is for this call only: a full disk may have room again.
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

// errNoShard says that a directory does not exist and cannot be made.
var errNoShard = errors.New("no directory for content")

func shardOf(ino uint64) int { return int(ino >> 10 % shardCount) }

func nameOf(ino uint64) string { return strconv.FormatUint(ino, 10) }

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
