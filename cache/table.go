package cache

import (
	"syscall"
	"time"

	"github.com/wsmount/wsmount/fs"
)

// table keeps inodes and directory entries. Volume.mu is held over every call.
//
// It is what a database will stand behind: it does no I/O towards the backend,
// every change of a node ends in save, and nothing outside keeps a node past
// the unlock. The present one, memTable, forgets with the process.
type table interface {
	// alloc gives an inode number that was never given before.
	alloc() fs.Ino
	// node is the inode, nil when there is none.
	node(ino fs.Ino) *node
	// save adds an inode or keeps what was changed in it.
	save(ino fs.Ino, n *node)
	// drop forgets an inode and, of a directory, its entries.
	drop(ino fs.Ino)

	// entry finds a name.
	entry(dir fs.Ino, name string) (dirent, bool)
	// setEntry gives a name an inode. A name that is there already keeps its
	// cookie; a new one gets a cookie that this directory never had.
	setEntry(dir fs.Ino, name string, ino fs.Ino)
	dropEntry(dir fs.Ino, name string)
	// next is the first entry behind a cookie.
	next(dir fs.Ino, after uint64) (dirent, bool)
	// count is the number of entries.
	count(dir fs.Ino) int
}

// dirent is a name in a directory.
type dirent struct {
	name   string
	ino    fs.Ino
	cookie uint64
}

// link is a name of an inode.
type link struct {
	dir  fs.Ino
	name string
}

// node is an inode. Its names are only metadata: nothing of the content or of
// what is below a directory changes when one of them does.
type node struct {
	mode     uint32
	uid, gid uint32
	subdirs  uint32 // of a directory
	size     int64
	blocks   int64 // of 512 bytes; of the content file when it was last looked at
	atime    stamp
	mtime    stamp
	ctime    stamp
	links    []link // a directory has one, the root and what was unlinked none
	more     *rare

	// gen counts the states of the content; sent is the one that the backend
	// has under every name. Where they differ the inode is dirty.
	gen, sent uint64
	named     uint32 // counts the names that it ever got
	// shown is the state that the kernel's page cache may hold, from the last
	// open on.
	shown uint64

	loaded   bool // the entries of a directory are all here
	present  bool // the content file is here, whole
	conflict bool // the last attempt to send lost against another writer
	queued   bool // a job that sends the content is still to run
	resent   bool // the content is tried again in the background

	// What holds an inode without a name; never kept across a restart.
	refs uint64 // the kernel's lookups
	pins uint32 // jobs that are still to run
}

// rare is what few inodes have.
type rare struct {
	target   string            // of a symbolic link
	rdev     uint32            // of a device
	xattrs   map[string][]byte // never nil values
	metadata map[string]string // the backend's own, handed back unchanged
	reason   string            // why the content is not safe at the backend
}

// extra is n.more for writing.
func (n *node) extra() *rare {
	if n.more == nil {
		n.more = &rare{}
	}
	return n.more
}

// rare is n.more for reading.
func (n *node) rare() rare {
	if n.more == nil {
		return rare{}
	}
	return *n.more
}

func (n *node) kind() uint32    { return n.mode & syscall.S_IFMT }
func (n *node) isDir() bool     { return n.kind() == syscall.S_IFDIR }
func (n *node) isRegular() bool { return n.kind() == syscall.S_IFREG }
func (n *node) isSymlink() bool { return n.kind() == syscall.S_IFLNK }
func (n *node) dirty() bool     { return n.gen != n.sent && len(n.links) > 0 }

// nlink is 1 for a directory whose entries are not all known, which tells
// programs that the number of subdirectories is not to be relied on.
func (n *node) nlink(ino fs.Ino) uint32 {
	switch {
	case !n.isDir():
		return uint32(len(n.links))
	case len(n.links) == 0 && ino != fs.RootIno:
		return 0
	case !n.loaded:
		return 1
	}
	return 2 + n.subdirs
}

// relink replaces one name of n.
func (n *node) relink(old, now link) {
	for i := range n.links {
		if n.links[i] == old {
			n.links[i] = now
			return
		}
	}
}

// unlink takes one name away from n.
func (n *node) unlink(old link) {
	for i := range n.links {
		if n.links[i] == old {
			n.links = append(n.links[:i:i], n.links[i+1:]...)
			return
		}
	}
}

// stamp is a time in 12 bytes, over the whole range that the kernel knows.
type stamp struct {
	sec  int64
	nsec int32
}

func stampOf(t time.Time) stamp    { return stamp{t.Unix(), int32(t.Nanosecond())} }
func (s stamp) time() time.Time    { return time.Unix(s.sec, int64(s.nsec)) }
func (n *node) changed(now stamp)  { n.ctime = now }
func (n *node) modified(now stamp) { n.mtime, n.ctime = now, now }
