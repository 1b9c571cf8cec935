package direct

import (
	"errors"
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// How an inode is reached: by a descriptor that is there already (an open file,
// a pin, the ring), else by its name in its parent, which is reached the same
// way. Each step is one name opened relative to a descriptor, without following
// links, and what it gives must have the identity that the kernel was told;
// anything else is ESTALE, on which the kernel looks the name up again by
// itself. No step leaves the root, because a chain of ".." is never walked.

//
// What is read of the record can be out of date when it is used, because a
// rename or unlink of ours takes the name away meanwhile. That must not show, for
// the kernel retries only once: see overtaken.

// A sighting is what a record said about how to reach its inode.
type sighting struct {
	ident
	parent wsfs.Ino
	name   string
	h      *handle // with a reference, or nil
}

// seen needs the shard.
func (n *inode) seen() sighting {
	return sighting{n.ident(), n.parent, n.name, n.descriptor()}
}

// maxOvertaken bounds how often a request begins anew.
const maxOvertaken = 16

// overtaken says whether ESTALE came of a change of our own since the sighting:
// the name is another, or there is a descriptor where there was none.
func (v *Volume) overtaken(ino wsfs.Ino, was *sighting) bool {
	s, n := v.tab.get(ino)
	defer s.mu.Unlock()
	if n == nil {
		return false
	}
	e := n.ext
	has := e != nil && (e.files != nil || e.pin != nil || e.dir != nil)
	return n.parent != was.parent || n.name != was.name || was.h == nil && has
}

// again repeats f while a change of our own overtook it.
func (v *Volume) again(ino wsfs.Ino, f func(was *sighting) error) error {
	var was sighting
	for range maxOvertaken {
		if err := f(&was); err != syscall.ESTALE || !v.overtaken(ino, &was) {
			return err
		}
	}
	return syscall.ESTALE
}

// hold returns a descriptor of the inode, at least O_PATH, with a reference.
func (v *Volume) hold(ino wsfs.Ino) (h *handle, err error) {
	err = v.again(ino, func(was *sighting) (err error) {
		h, err = v.holdOnce(ino, was)
		return err
	})
	return h, err
}

func (v *Volume) holdOnce(ino wsfs.Ino, was *sighting) (*handle, error) {
	s, n := v.tab.get(ino)
	if n == nil {
		s.mu.Unlock()
		return nil, syscall.ESTALE
	}
	*was = n.seen()
	dir := n.directory()
	s.mu.Unlock()
	switch {
	case was.h != nil:
		return was.h, nil
	case dir:
		h, _, err := v.holdDir(ino)
		return h, err
	}
	return v.holdNamed(was.ident, was.parent, was.name, unix.O_PATH)
}

// holdDir is hold for a directory, and says whether it is watched.
func (v *Volume) holdDir(ino wsfs.Ino) (h *handle, watched bool, err error) {
	var was sighting
	for range maxOvertaken {
		h, watched, err = v.holdDirOnce(ino, &was)
		if err != syscall.ESTALE || !v.overtaken(ino, &was) {
			break
		}
	}
	return h, watched, err
}

func (v *Volume) holdDirOnce(ino wsfs.Ino, was *sighting) (*handle, bool, error) {
	s, n := v.tab.get(ino)
	if n == nil {
		s.mu.Unlock()
		return nil, false, syscall.ESTALE
	}
	watched, dir := n.flags&flagWatched != 0, n.directory()
	*was = n.seen()
	s.mu.Unlock()
	switch {
	case was.h != nil:
		if !was.h.used.Load() {
			was.h.used.Store(true)
		}
		return was.h, watched, nil
	case !dir:
		return nil, false, syscall.ENOTDIR
	}
	h, err := v.holdNamed(was.ident, was.parent, was.name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == syscall.EACCES {
		// Enough for an unprivileged daemon to pass through.
		h, err = v.holdNamed(was.ident, was.parent, was.name, unix.O_PATH|unix.O_DIRECTORY)
	}
	if err != nil {
		return nil, false, err
	}
	return v.keep(ino, h), watched, nil
}

func (v *Volume) holdNamed(id ident, parent wsfs.Ino, name string, flags int) (*handle, error) {
	if name == "" {
		return nil, syscall.ESTALE
	}
	p, _, err := v.holdDir(parent)
	if err != nil {
		return nil, err
	}
	defer v.drop(p)
	return v.openIdent(p.fd, name, id, flags)
}

// openIdent opens a name that must lead to a certain file.
func (v *Volume) openIdent(dir int, name string, id ident, flags int) (*handle, error) {
	fd, err := openAt(dir, name, flags, 0)
	if err != nil {
		return nil, moved(err)
	}
	var st stat
	if err := statAt(fd, "", &st); err != nil || v.crosses(&st) || v.identOf(fd, "", &st) != id {
		unix.Close(fd)
		return nil, syscall.ESTALE
	}
	return v.newHandle(fd, flags&unix.O_PATH != 0), nil
}

// moved turns what opening a name says when something else lies there into
// ESTALE.
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

// stat reads an inode's attributes, in one call when its parent is at hand. It
// says whether a change by others after this moment would be reported.
func (v *Volume) stat(ino wsfs.Ino, st *stat) (covered bool, err error) {
	var was sighting
	for range maxOvertaken {
		covered, err = v.statOnce(ino, &was, st)
		if err != syscall.ESTALE || !v.overtaken(ino, &was) {
			break
		}
	}
	return covered, err
}

func (v *Volume) statOnce(ino wsfs.Ino, was *sighting, st *stat) (covered bool, err error) {
	s, n := v.tab.get(ino)
	if n == nil {
		s.mu.Unlock()
		return false, syscall.ESTALE
	}
	*was = n.seen()
	covered = n.flags&flagWatched != 0 || !n.directory()
	s.mu.Unlock()
	if was.h != nil {
		covered = covered && was.name != "" && v.watched(was.parent)
		err = statAt(was.h.fd, "", st)
		v.drop(was.h)
		return covered, err
	}
	if was.name == "" {
		return false, syscall.ESTALE
	}
	p, watched, err := v.holdDir(was.parent)
	if err != nil {
		return false, err
	}
	defer v.drop(p)
	if err := statAt(p.fd, was.name, st); err != nil {
		return false, moved(err)
	}
	if v.crosses(st) || v.identOf(p.fd, was.name, st) != was.ident {
		return false, syscall.ESTALE
	}
	return covered && watched && !v.watch.behind.Load(), nil
}

// watched says whether a directory's names are watched.
func (v *Volume) watched(dir wsfs.Ino) bool {
	if v.watch == nil {
		return false
	}
	s, n := v.tab.get(dir)
	defer s.mu.Unlock()
	return n != nil && n.flags&flagWatched != 0 && !v.watch.behind.Load()
}

// begin and end bracket a change of an inode by ourselves. Between them no
// difference is taken for someone else's, and end notes what the change left.
func (v *Volume) begin(ino wsfs.Ino) {
	s, n := v.tab.get(ino)
	if n != nil {
		n.more().busy++
	}
	s.mu.Unlock()
}

// end returns the attributes after the change. fd is a descriptor of the inode,
// O_PATH at least, or -1 when it cannot be looked at any more.
func (v *Volume) end(ino wsfs.Ino, fd int, st *stat) error {
	s, n := v.tab.get(ino)
	var err error = syscall.ESTALE
	if fd >= 0 {
		err = statAt(fd, "", st)
	}
	if n == nil {
		s.mu.Unlock()
		return err
	}
	n.ext.busy--
	if err == nil && n.ext.busy == 0 {
		n.observe(st, true)
	}
	n.trim()
	v.settle(s, n, ino)
	return err
}
