package direct

import (
	"runtime"
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// kept are the open(2) flags that matter to a descriptor of our own. O_DIRECT is
// not among them: the front's buffers are not aligned, and with passthrough the
// kernel opens the file again with the caller's flags.
const kept = unix.O_ACCMODE | unix.O_APPEND | unix.O_SYNC | unix.O_DSYNC | unix.O_NOATIME

func ownFlags(flags uint32) int { return int(flags) & kept }

// Open opens a file.
func (v *Volume) Open(op *wsfs.Op, ino wsfs.Ino, flags uint32) (wsfs.Opened, error) {
	trunc := flags&unix.O_TRUNC != 0
	if trunc {
		v.begin(ino)
	}
	var st stat
	h, err := v.openFile(ino, ownFlags(flags), &st)
	if err != nil {
		if trunc {
			_ = v.end(ino, -1, &st)
		}
		return wsfs.Opened{}, err
	}
	mode := uint32(st.Mode)
	if trunc {
		err = v.openTrunc(op, ino, h, &st)
	}
	if err != nil {
		v.drop(h)
		return wsfs.Opened{}, err
	}
	o := v.opened(op, ino, h, flags, &st, trunc)
	if err := v.admit(ino, flags, mode); err != nil {
		o.File.Release()
		return wsfs.Opened{}, err
	}
	return o, nil
}

// openTrunc empties a file once it is known to be the right one: O_TRUNC in the
// flags would empty whatever lies under the name.
func (v *Volume) openTrunc(op *wsfs.Op, ino wsfs.Ino, h *handle, st *stat) error {
	if privMode(uint32(st.Mode)) != 0 {
		v.noteUnset(ino)
	}
	err := apply(op, h, &wsfs.SetAttr{Size: new(uint64)})
	if serr := v.end(ino, h.fd, st); err == nil {
		err = serr
	}
	return err
}

func (v *Volume) openFile(ino wsfs.Ino, flags int, st *stat) (*handle, error) {
	if err := v.spare(); err != nil {
		return nil, err
	}
	return v.openIno(ino, flags, st)
}

// openIno opens an inode, by its name where it has one, else by a descriptor
// that is there already.
func (v *Volume) openIno(ino wsfs.Ino, flags int, st *stat) (h *handle, err error) {
	err = v.again(ino, func(was *sighting) (err error) {
		h, err = v.openOnce(ino, was, flags, st)
		v.drop(was.h)
		return err
	})
	return h, err
}

func (v *Volume) openOnce(ino wsfs.Ino, was *sighting, flags int, st *stat) (*handle, error) {
	s, n := v.tab.get(ino)
	if n == nil {
		s.mu.Unlock()
		return nil, syscall.ESTALE
	}
	regular := n.regular()
	*was = n.seen()
	// The name may lead elsewhere already, by a change of ours that has not
	// returned, or of others after the lookup that this open follows.
	leaving := was.h != nil && (n.ext.leaving > 0 || n.flags&flagHot != 0)
	s.mu.Unlock()
	if !regular {
		return nil, syscall.ENXIO // the kernel serves special files itself
	}
	if was.name != "" {
		fd, err := v.openName(was.parent, was.name, was.ident, flags, st)
		if err != syscall.ESTALE || !leaving {
			if err == syscall.ESTALE && !v.overtaken(ino, was) {
				v.displaced(ino, was)
			}
			return v.asHandle(fd, err)
		}
	}
	if was.h == nil {
		return nil, syscall.ESTALE
	}
	fd, err := noatime(flags, func(flags int) (int, error) { return reopen(was.h.fd, flags) })
	if err == nil {
		if err = statAt(fd, "", st); err != nil {
			unix.Close(fd)
		}
	}
	return v.asHandle(fd, err)
}

// displaced is told of an inode in whose place others put something else.
func (v *Volume) displaced(ino wsfs.Ino, was *sighting) {
	v.replaced(was.parent, was.name)
	if was.h != nil {
		v.misplaced(ino, was.parent, was.name)
		was.name = "" // which is no reason to try again
	}
}

// misplaced notes that an inode, which is reached otherwise, does not lie under
// its name any more, and tells the kernel, whose link count is wrong: the watch
// will not find the inode by that name. The kernel looks the name up again; where it comes back
// with the same inode, from /proc/self/fd or a file that is a mount point, it
// is opened without the name.
func (v *Volume) misplaced(ino, parent wsfs.Ino, name string) {
	s, n := v.tab.get(ino)
	lost := n != nil && n.parent == parent && n.name == name
	if lost {
		v.tab.setName(n, ino, parent, "")
	}
	s.mu.Unlock()
	if lost {
		v.tellAttr(ino)
	}
}

func (v *Volume) asHandle(fd int, err error) (*handle, error) {
	if err != nil {
		return nil, err
	}
	return v.newHandle(fd, false), nil
}

// openName opens a name that must lead to a certain regular file. O_NONBLOCK is
// for a FIFO that another process put there: opening it must not wait.
func (v *Volume) openName(parent wsfs.Ino, name string, id ident, flags int, st *stat) (int, error) {
	p, _, err := v.holdDir(parent)
	if err != nil {
		return -1, err
	}
	defer v.drop(p)
	fd, err := noatime(flags, func(flags int) (int, error) {
		return openAt(p.fd, name, flags|unix.O_NONBLOCK, 0)
	})
	if err == syscall.EAGAIN {
		fd, err = v.openLeased(p.fd, name, id, flags)
	}
	if err != nil {
		return -1, moved(err)
	}
	if err := statAt(fd, "", st); err != nil || v.crosses(st) || v.identOf(fd, "", st) != id {
		unix.Close(fd)
		return -1, syscall.ESTALE
	}
	return fd, nil
}

// openLeased opens a regular file on which somebody has a lease, which the open
// waits for, as it does on the disk.
func (v *Volume) openLeased(dir int, name string, id ident, flags int) (int, error) {
	h, err := v.openIdent(dir, name, id, unix.O_PATH)
	if err != nil {
		return -1, err
	}
	defer v.drop(h)
	return noatime(flags, func(flags int) (int, error) { return reopen(h.fd, flags) })
}

// noatime tries again without O_NOATIME, which only an owner may use: the kernel
// has asked the caller, not us.
func noatime(flags int, open func(flags int) (int, error)) (int, error) {
	fd, err := open(flags)
	if err == syscall.EPERM && flags&unix.O_NOATIME != 0 {
		return open(flags &^ unix.O_NOATIME)
	}
	return fd, err
}

// opened enters an open file. own says that its content is what this very
// request made of it, and no page of the kernel can be wrong.
func (v *Volume) opened(op *wsfs.Op, ino wsfs.Ino, h *handle, flags uint32, st *stat, own bool) wsfs.Opened {
	f := &file{v: v, h: h, ino: ino, flags: flags, root: !mayNotKeep(op)}
	f.wrote.Store(own)
	writable := flags&unix.O_ACCMODE != unix.O_RDONLY
	pass := v.pass && st.Mode&unix.S_IFMT == unix.S_IFREG
	passWrite := pass && writable && privMode(uint32(st.Mode)) == 0 && (own || !hasCaps(h))
	s, n := v.tab.get(ino)
	for passWrite && n.flags&flagProbing != 0 {
		// The kernel opens the file once more, and would find the lease.
		s.mu.Unlock()
		runtime.Gosched()
		s, n = v.tab.get(ino)
	}
	n.observe(st, own)
	keep := n.flags&flagStale == 0 && !own
	n.flags &^= flagStale
	e := n.more()
	f.next, e.files = e.files, f
	if f.next != nil {
		f.next.prev = f
	}
	if f.pass = passWrite; f.pass {
		e.pass++
		n.flags |= flagMapped
	}
	f.since = contentSignature(st)
	s.mu.Unlock()
	v.files.Add(1)
	return wsfs.Opened{
		File:      f,
		KeepCache: keep,
		Direct:    flags&unix.O_DIRECT != 0,
		Backing:   h.fd,
		PassRead:  pass,
		PassWrite: passWrite,
		NoFlush:   true,
	}
}
