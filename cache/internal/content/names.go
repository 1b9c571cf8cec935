package content

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// names are the content and the map of one inode on the disk, for the caller that may
// change them. They are locked from dirs.lock until unlock.
type names struct {
	d   *dirs
	ino uint64
	mu  *sync.Mutex
}

// lock waits for the names of an inode.
func (d *dirs) lock(ino uint64) names {
	n := names{d: d, ino: ino, mu: &d.locks[ino%uint64(len(d.locks))]}
	n.mu.Lock()
	return n
}

func (n names) unlock() { n.mu.Unlock() }

// create makes empty content. The error is EEXIST when there is some.
func (n names) create() (fd int, err error) {
	return n.d.open(n.ino, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
}

// createMap makes an empty map. The error is EEXIST when there is one.
func (n names) createMap() (fd int, err error) {
	return n.d.openMap(n.ino, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
}

// exists reports that there is content.
func (n names) exists() bool {
	return n.d.in(n.ino, func(dir int, name string) error { return unix.Faccessat(dir, name, unix.F_OK, 0) }) == nil
}

// whole reports that no block of the content is missing.
func (n names) whole() bool {
	fd, err := n.d.openMap(n.ino, unix.O_RDONLY)
	if err != nil {
		return err == unix.ENOENT
	}
	defer unix.Close(fd)
	b, err := readBlocks(fd)
	return err == nil && b.firstMissing(0, len(b.state)) == len(b.state)
}

// take makes a file that had no name yet the content.
func (n names) take(part string) error {
	return n.d.in(n.ino, func(dir int, name string) error {
		return unix.Renameat(unix.AT_FDCWD, part, dir, name)
	})
}

// move gives the content another name, which is not one of an inode.
func (n names) move(to string) error {
	return n.d.in(n.ino, func(dir int, name string) error {
		return unix.Renameat(dir, name, unix.AT_FDCWD, to)
	})
}

// unlink removes the content, if there is any, and the map: that last, since content
// without one counts as whole.
func (n names) unlink() error {
	err := n.d.in(n.ino, func(dir int, name string) error {
		return ignoreMissing(unix.Unlinkat(dir, name, 0))
	})
	if err != nil && !errors.Is(err, errNoShard) {
		return err
	}
	return n.unlinkMap()
}

// unlinkMap makes the content count as whole.
func (n names) unlinkMap() error {
	n.d.unmapped.Lock()
	defer n.d.unmapped.Unlock()
	err := n.d.inMaps(n.ino, func(dir int, name string) error { return unix.Unlinkat(dir, name, 0) })
	if err == nil {
		n.d.dirty = true
	}
	return ignoreMissing(err)
}

func ignoreMissing(err error) error {
	if err == unix.ENOENT {
		return nil
	}
	return err
}
