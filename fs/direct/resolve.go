package direct

import (
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

// hold returns a descriptor of the inode, at least O_PATH, with a reference.
func (v *Volume) hold(ino wsfs.Ino) (*handle, error) {
	s, n := v.tab.get(ino)
	if n == nil {
		s.mu.Unlock()
		return nil, syscall.ESTALE
	}
	if h := n.descriptor(); h != nil {
		s.mu.Unlock()
		return h, nil
	}
	if n.directory() {
		s.mu.Unlock()
		h, _, err := v.holdDir(ino)
		return h, err
	}
	id, parent, name := n.ident(), n.parent, n.name
	s.mu.Unlock()
	return v.holdNamed(id, parent, name, unix.O_PATH)
}

// holdDir is hold for a directory, and says whether it is watched.
func (v *Volume) holdDir(ino wsfs.Ino) (h *handle, watched bool, err error) {
	s, n := v.tab.get(ino)
	if n == nil {
		s.mu.Unlock()
		return nil, false, syscall.ESTALE
	}
	watched = n.flags&flagWatched != 0
	if h := n.descriptor(); h != nil {
		s.mu.Unlock()
		h.used.Store(true)
		return h, watched, nil
	}
	if !n.directory() {
		s.mu.Unlock()
		return nil, false, syscall.ENOTDIR
	}
	id, parent, name := n.ident(), n.parent, n.name
	s.mu.Unlock()
	h, err = v.holdNamed(id, parent, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == syscall.EACCES {
		// Enough for an unprivileged daemon to pass through.
		h, err = v.holdNamed(id, parent, name, unix.O_PATH|unix.O_DIRECTORY)
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
	switch err {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.EXDEV, syscall.EISDIR, syscall.ENXIO:
		return syscall.ESTALE
	}
	return err
}

// stat reads an inode's attributes, in one call when its parent is at hand. It
// says whether a change by others after this moment would be reported.
func (v *Volume) stat(ino wsfs.Ino, st *stat) (covered bool, err error) {
	s, n := v.tab.get(ino)
	if n == nil {
		s.mu.Unlock()
		return false, syscall.ESTALE
	}
	h := n.descriptor()
	id, parent, name := n.ident(), n.parent, n.name
	covered = n.flags&flagWatched != 0 || !n.directory()
	s.mu.Unlock()
	if h != nil {
		covered = covered && name != "" && v.watched(parent)
		err = statAt(h.fd, "", st)
		v.drop(h)
		return covered, err
	}
	if name == "" {
		return false, syscall.ESTALE
	}
	p, watched, err := v.holdDir(parent)
	if err != nil {
		return false, err
	}
	defer v.drop(p)
	if err := statAt(p.fd, name, st); err != nil {
		return false, moved(err)
	}
	if v.crosses(st) || v.identOf(p.fd, name, st) != id {
		return false, syscall.ESTALE
	}
	return covered && watched, nil
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
