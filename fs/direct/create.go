package direct

import (
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// Mknod makes a file of any kind but a directory or a link.
func (v *Volume) Mknod(op *wsfs.Op, dir wsfs.Ino, name string, mode, rdev uint32) (wsfs.Entry, error) {
	return v.make(op, dir, name, func(h *handle) error {
		m := masked(op, h, mode)
		return v.ids.as(op, func() error {
			return unix.Mknodat(h.fd, name, m, int(decodeDev(rdev)))
		})
	})
}

// Mkdir makes a directory.
func (v *Volume) Mkdir(op *wsfs.Op, dir wsfs.Ino, name string, mode uint32) (wsfs.Entry, error) {
	return v.make(op, dir, name, func(h *handle) error {
		m := masked(op, h, mode)
		return v.ids.as(op, func() error { return unix.Mkdirat(h.fd, name, m) })
	})
}

// Symlink makes a symbolic link with any target.
func (v *Volume) Symlink(op *wsfs.Op, dir wsfs.Ino, name, target string) (wsfs.Entry, error) {
	return v.make(op, dir, name, func(h *handle) error {
		return v.ids.as(op, func() error { return unix.Symlinkat(target, h.fd, name) })
	})
}

// Link gives an inode a further name, also one from Tmpfile.
func (v *Volume) Link(op *wsfs.Op, ino, dir wsfs.Ino, name string) (wsfs.Entry, error) {
	src, err := v.res.hold(ino)
	if err != nil {
		return wsfs.Entry{}, err
	}
	defer src.drop()
	v.tab.begin(ino)
	e, err := v.make(op, dir, name, func(h *handle) error { return linkFd(src, h.fd, name) })
	var st stat
	_ = v.tab.end(ino, src.fd, &st)
	return e, err
}

// linkFd links the file behind a descriptor. AT_EMPTY_PATH needs CAP_DAC_READ_SEARCH (or the
// opener's credentials, in later kernels).
func linkFd(src *handle, dir int, name string) error {
	err := unix.Linkat(src.fd, "", dir, name, unix.AT_EMPTY_PATH)
	if err != syscall.ENOENT && err != syscall.EPERM {
		return err
	}
	return unix.Linkat(unix.AT_FDCWD, src.procPath(), dir, name, unix.AT_SYMLINK_FOLLOW)
}

// make runs f, which makes a name in a directory, and enters the new file in the table.
func (v *Volume) make(_ *wsfs.Op, dir wsfs.Ino, name string, f func(dir *handle) error) (wsfs.Entry, error) {
	if err := checkName(name); err != nil {
		return wsfs.Entry{}, err
	}
	h, watched, err := v.holdWatched(dir)
	if err != nil {
		return wsfs.Entry{}, err
	}
	defer h.drop()
	own := v.ownBegin(watched, dir, name)
	defer own.end()
	if err := f(h); err != nil {
		return wsfs.Entry{}, err
	}
	own.changed = true
	var st stat
	if err := statAt(h.fd, name, &st); err != nil {
		return wsfs.Entry{}, err
	}
	own.made = v.disk.identOf(h.fd, name, &st)
	e, err := v.enterName(h, own.made, dir, name, &st, watched, true)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		v.tell.wrote(dir, name)
	}
	return e, err
}

// masked applies the caller's umask, which a default ACL of the parent replaces.
func masked(op *wsfs.Op, dir *handle, mode uint32) uint32 {
	if mode&op.Umask&0o777 == 0 || hasDefaultACL(dir) {
		return mode
	}
	return mode &^ (op.Umask & 0o777)
}

func hasDefaultACL(dir *handle) bool {
	n, err := getxattr(dir, "system.posix_acl_default", nil)
	return err == nil && n > 0
}

// Create makes and opens a file in one step.
func (v *Volume) Create(op *wsfs.Op, dir wsfs.Ino, name string, flags, mode uint32) (wsfs.Entry, wsfs.Opened, error) {
	if err := checkName(name); err != nil {
		return wsfs.Entry{}, wsfs.Opened{}, err
	}
	if err := v.fds.spare(v.root); err != nil {
		return wsfs.Entry{}, wsfs.Opened{}, err
	}
	// A name that comes and goes between the two steps is tried again.
	for range 16 {
		e, o, err := v.createNew(op, dir, name, flags, mode)
		if err != syscall.EEXIST || flags&unix.O_EXCL != 0 {
			return e, o, err
		}
		e, o, err = v.openExisting(op, dir, name, flags)
		if err != syscall.ENOENT && err != syscall.ESTALE {
			return e, o, err
		}
	}
	return wsfs.Entry{}, wsfs.Opened{}, syscall.ESTALE
}

func (v *Volume) createNew(op *wsfs.Op, dir wsfs.Ino, name string, flags, mode uint32) (e wsfs.Entry, o wsfs.Opened, err error) {
	h, watched, err := v.holdWatched(dir)
	if err != nil {
		return e, o, err
	}
	defer h.drop()
	own := v.ownBegin(watched, dir, name)
	defer own.end()
	mode = masked(op, h, mode)
	fd := -1
	err = v.ids.as(op, func() (err error) {
		fd, err = openAt(h.fd, name, ownFlags(flags)|unix.O_CREAT|unix.O_EXCL, mode)
		return err
	})
	if err != nil {
		return e, o, err
	}
	own.changed = true
	var st stat
	if err := statAt(fd, "", &st); err != nil {
		unix.Close(fd)
		return e, o, err
	}
	own.made = v.disk.identOf(fd, "", &st)
	e, err = v.enterName(h, own.made, dir, name, &st, watched, true)
	if err != nil {
		unix.Close(fd)
		return e, o, err
	}
	o = v.opened(op, e.Ino, v.fds.handle(fd, false), flags, &st, true)
	if o.PassWrite {
		e.Attr.TTL = newTTL
	}
	return e, o, nil
}

func (v *Volume) openExisting(op *wsfs.Op, dir wsfs.Ino, name string, flags uint32) (wsfs.Entry, wsfs.Opened, error) {
	e, err := v.Lookup(op, dir, name)
	if err != nil {
		return e, wsfs.Opened{}, err
	}
	if e.Ino == 0 {
		return e, wsfs.Opened{}, syscall.ENOENT
	}
	o, err := v.Open(op, e.Ino, flags)
	if err != nil {
		v.Forget(e.Ino, 1)
		return wsfs.Entry{}, wsfs.Opened{}, err
	}
	// O_TRUNC may have changed the attributes since the lookup.
	if e.Attr, err = v.Attr(op, e.Ino, o.File); err != nil {
		o.File.Release()
		v.Forget(e.Ino, 1)
		return wsfs.Entry{}, wsfs.Opened{}, err
	}
	return e, o, nil
}

// Tmpfile makes a file without a name.
func (v *Volume) Tmpfile(op *wsfs.Op, dir wsfs.Ino, flags, mode uint32) (e wsfs.Entry, o wsfs.Opened, err error) {
	if err := v.fds.spare(v.root); err != nil {
		return e, o, err
	}
	h, _, err := v.res.holdDir(dir)
	if err != nil {
		return e, o, err
	}
	defer h.drop()
	mode = masked(op, h, mode)
	fd := -1
	err = v.ids.as(op, func() (err error) {
		fd, err = openAt(h.fd, ".", ownFlags(flags)|int(flags&unix.O_EXCL)|unix.O_TMPFILE, mode)
		return err
	})
	if err != nil {
		return e, o, err
	}
	var st stat
	if err := statAt(fd, "", &st); err != nil {
		unix.Close(fd)
		return e, o, err
	}
	n, _ := v.tab.intern(v.disk.identOf(fd, "", &st))
	n.refs++
	n.typ = unix.S_IFREG
	n.observe(&st, true)
	n.unlock()
	o = v.opened(op, n.ino, v.fds.handle(fd, false), flags, &st, true)
	e = wsfs.Entry{Ino: n.ino, Attr: v.disk.attr(&st, 0)}
	return e, o, nil
}
