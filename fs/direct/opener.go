package direct

import (
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// An opener opens regular files that are in the table.
type opener struct {
	res  *resolver
	hot  *hot
	tell *teller
}

// open opens an inode, by its name if it has one, else by a descriptor that it already has.
func (o *opener) open(ino wsfs.Ino, flags int, st *stat) (h *handle, err error) {
	err = o.res.again(ino, func(was *sighting) (err error) {
		h, err = o.once(ino, was, flags, st)
		was.h.drop()
		return err
	})
	return h, err
}

func (o *opener) once(ino wsfs.Ino, was *sighting, flags int, st *stat) (*handle, error) {
	n, ok := o.res.tab.lock(ino)
	if !ok {
		return nil, syscall.ESTALE
	}
	regular := n.regular()
	*was = n.seen()
	// The name may already lead to another file, by a change of ours that has not returned, or
	// by others after the lookup that this open follows.
	writes := flags&unix.O_ACCMODE != unix.O_RDONLY
	leaving := was.h != nil && (n.ext.leaving > 0 || n.flags&flagHot != 0 && !writes)
	taken := was.name == "" && writes && n.flags&flagTaken != 0
	if taken { // the kernel asks again: the file that has the name, or this one by descriptor
		n.flags &^= flagTaken
	}
	n.unlock()
	if !regular {
		return nil, syscall.ENXIO // the kernel serves special files itself
	}
	if was.name != "" {
		fd, err := o.name(was.parent, was.name, was.ident, flags, st)
		if err != syscall.ESTALE || !leaving {
			if err == syscall.ESTALE && !o.res.overtaken(ino, was) {
				o.displaced(ino, was, !writes)
			}
			return o.handle(fd, err)
		}
	}
	if was.h == nil || taken {
		return nil, syscall.ESTALE
	}
	fd, err := noatime(flags, func(flags int) (int, error) { return reopen(was.h.fd, flags) })
	if err == nil {
		if err = statAt(fd, "", st); err != nil {
			unix.Close(fd)
		}
	}
	return o.handle(fd, err)
}

// displaced handles an inode that others replaced. taken: this open only reads, so the next
// open for writing must still fail with ESTALE.
func (o *opener) displaced(ino wsfs.Ino, was *sighting, taken bool) {
	o.hot.replaced(was.parent, was.name)
	if was.h != nil {
		o.misplaced(ino, was.parent, was.name, taken)
		was.name = "" // which is no reason to try again
	}
}

// misplaced notes that an inode that has a descriptor is no longer at its name, and tells the
// kernel, whose link count is wrong: the watch will not find the inode by that name. The kernel
// looks the name up again; if it comes back with the same inode, from /proc/self/fd or a file
// that is a mount point, it is opened without the name.
func (o *opener) misplaced(ino, parent wsfs.Ino, name string, taken bool) {
	if o.res.tab.unnamed(ino, parent, name, taken) {
		o.tell.attr(ino)
	}
}

func (o *opener) handle(fd int, err error) (*handle, error) {
	if err != nil {
		return nil, err
	}
	return o.res.fds.handle(fd, false), nil
}

// name opens a name that must lead to a certain regular file. O_NONBLOCK is for a FIFO that
// another process put there: opening it must not wait.
func (o *opener) name(parent wsfs.Ino, name string, id ident, flags int, st *stat) (int, error) {
	p, _, err := o.res.holdDir(parent)
	if err != nil {
		return -1, err
	}
	defer p.drop()
	fd, err := noatime(flags, func(flags int) (int, error) {
		return openAt(p.fd, name, flags|unix.O_NONBLOCK, 0)
	})
	if err == syscall.EAGAIN {
		fd, err = o.leased(p.fd, name, id, flags)
	}
	if err != nil {
		return -1, moved(err)
	}
	if err := statAt(fd, "", st); err != nil || o.res.disk.crosses(st) || o.res.disk.identOf(fd, "", st) != id {
		unix.Close(fd)
		return -1, syscall.ESTALE
	}
	return fd, nil
}

// leased opens a regular file on which another process has a lease. The open waits for that, as
// it does on the disk.
func (o *opener) leased(dir int, name string, id ident, flags int) (int, error) {
	h, err := o.res.openIdent(dir, name, id, unix.O_PATH)
	if err != nil {
		return -1, err
	}
	defer h.drop()
	return noatime(flags, func(flags int) (int, error) { return reopen(h.fd, flags) })
}

// noatime tries again without O_NOATIME, which only an owner may use: the kernel has checked
// the caller, not us.
func noatime(flags int, open func(flags int) (int, error)) (int, error) {
	fd, err := open(flags)
	if err == syscall.EPERM && flags&unix.O_NOATIME != 0 {
		return open(flags &^ unix.O_NOATIME)
	}
	return fd, err
}
