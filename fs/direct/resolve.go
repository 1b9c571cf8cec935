package direct

import (
	"errors"
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A resolver reaches inodes: by a descriptor that it already has (an open file, a pin, the
// ring), else by its name in its parent, which is reached the same way. Each step is one name
// opened relative to a descriptor, without following links, and the result must have the
// identity that the kernel was told; anything else is ESTALE, on which the kernel looks the
// name up again by itself. No step leaves the root, because a chain of ".." is never walked.
//
// A record that was read can be out of date when it is used, because a rename or unlink of ours
// takes the name away meanwhile. The caller must not notice, for the kernel retries only once:
// see overtaken.
type resolver struct {
	tab  *table
	disk *disk
	fds  *descriptors
	ring ring
}

// A sighting is the part of a record that tells how to reach its inode.
type sighting struct {
	ident
	parent wsfs.Ino
	name   string
	h      *handle // with a reference, or nil
}

func (n *inode) seen() sighting {
	return sighting{n.ident(), n.parent, n.name, n.descriptor()}
}

// maxOvertaken bounds how often a request starts over.
const maxOvertaken = 16

// overtaken reports whether ESTALE was caused by a change of our own since the sighting: the
// name is another, or the inode has a descriptor where it had none. It waits for a rename that
// the disk may already have made.
func (r *resolver) overtaken(ino wsfs.Ino, was *sighting) bool {
	n, ok := r.tab.lock(ino)
	if !ok {
		return false
	}
	e := n.ext
	has := e != nil && (e.files != nil || e.pin != nil || e.dir != nil)
	again := n.parent != was.parent || n.name != was.name || was.h == nil && has
	var moved chan struct{}
	if e != nil {
		moved = e.moved
	}
	n.unlock()
	if again || moved == nil {
		return again
	}
	<-moved
	return true
}

// again repeats f while a change of our own overtook it.
func (r *resolver) again(ino wsfs.Ino, f func(was *sighting) error) error {
	var was sighting
	for range maxOvertaken {
		if err := f(&was); err != syscall.ESTALE || !r.overtaken(ino, &was) {
			return err
		}
	}
	return syscall.ESTALE
}

// hold returns a descriptor of the inode, at least O_PATH, with a reference.
func (r *resolver) hold(ino wsfs.Ino) (h *handle, err error) {
	err = r.again(ino, func(was *sighting) (err error) {
		h, err = r.holdOnce(ino, was)
		return err
	})
	return h, err
}

func (r *resolver) holdOnce(ino wsfs.Ino, was *sighting) (*handle, error) {
	n, ok := r.tab.lock(ino)
	if !ok {
		return nil, syscall.ESTALE
	}
	*was = n.seen()
	dir := n.directory()
	n.unlock()
	switch {
	case was.h != nil:
		return was.h, nil
	case dir:
		h, _, err := r.holdDir(ino)
		return h, err
	}
	return r.holdNamed(was.ident, was.parent, was.name, unix.O_PATH)
}

// holdDir is hold for a directory, and returns whether it is watched.
func (r *resolver) holdDir(ino wsfs.Ino) (h *handle, watched bool, err error) {
	var was sighting
	for range maxOvertaken {
		h, watched, err = r.holdDirOnce(ino, &was)
		if err != syscall.ESTALE || !r.overtaken(ino, &was) {
			break
		}
	}
	return h, watched, err
}

func (r *resolver) holdDirOnce(ino wsfs.Ino, was *sighting) (*handle, bool, error) {
	n, ok := r.tab.lock(ino)
	if !ok {
		return nil, false, syscall.ESTALE
	}
	watched, dir := n.flags&flagWatched != 0, n.directory()
	*was = n.seen()
	n.unlock()
	switch {
	case was.h != nil:
		if !was.h.used.Load() {
			was.h.used.Store(true)
		}
		return was.h, watched, nil
	case !dir:
		return nil, false, syscall.ENOTDIR
	}
	h, err := r.holdNamed(was.ident, was.parent, was.name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == syscall.EACCES {
		// Enough for an unprivileged daemon to pass through.
		h, err = r.holdNamed(was.ident, was.parent, was.name, unix.O_PATH|unix.O_DIRECTORY)
	}
	if err != nil {
		return nil, false, err
	}
	return r.ring.keep(ino, h), watched, nil
}

func (r *resolver) holdNamed(id ident, parent wsfs.Ino, name string, flags int) (*handle, error) {
	if name == "" {
		return nil, syscall.ESTALE
	}
	p, _, err := r.holdDir(parent)
	if err != nil {
		return nil, err
	}
	defer p.drop()
	return r.openIdent(p.fd, name, id, flags)
}

// openIdent opens a name that must lead to a certain file.
func (r *resolver) openIdent(dir int, name string, id ident, flags int) (*handle, error) {
	fd, err := openAt(dir, name, flags, 0)
	if err != nil {
		return nil, moved(err)
	}
	var st stat
	if err := statAt(fd, "", &st); err != nil || r.disk.crosses(&st) || r.disk.identOf(fd, "", &st) != id {
		unix.Close(fd)
		return nil, syscall.ESTALE
	}
	return r.fds.handle(fd, flags&unix.O_PATH != 0), nil
}

// moved turns the errors of opening a name that leads to something else now into ESTALE.
func moved(err error) error {
	var e syscall.Errno
	if !errors.As(err, &e) {
		return err
	}
	switch e {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.EXDEV, syscall.EISDIR, syscall.ENXIO:
		return syscall.ESTALE
	}
	return e
}

// stat reads an inode's attributes, in one call if it or its parent has a descriptor. It
// returns whether changes of them reach the watch.
func (r *resolver) stat(ino wsfs.Ino, st *stat) (covered bool, err error) {
	var was sighting
	for range maxOvertaken {
		covered, err = r.statOnce(ino, &was, st)
		if err != syscall.ESTALE || !r.overtaken(ino, &was) {
			break
		}
	}
	return covered, err
}

func (r *resolver) statOnce(ino wsfs.Ino, was *sighting, st *stat) (covered bool, err error) {
	n, ok := r.tab.lock(ino)
	if !ok {
		return false, syscall.ESTALE
	}
	*was = n.seen()
	covered = n.flags&flagWatched != 0 || !n.directory()
	n.unlock()
	if was.h != nil {
		covered = covered && was.name != "" && r.tab.watched(was.parent)
		err = statAt(was.h.fd, "", st)
		was.h.drop()
		return covered, err
	}
	if was.name == "" {
		return false, syscall.ESTALE
	}
	p, watched, err := r.holdDir(was.parent)
	if err != nil {
		return false, err
	}
	defer p.drop()
	if err := statAt(p.fd, was.name, st); err != nil {
		return false, moved(err)
	}
	if r.disk.crosses(st) || r.disk.identOf(p.fd, was.name, st) != was.ident {
		return false, syscall.ESTALE
	}
	return covered && watched, nil
}
