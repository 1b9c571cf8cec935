package direct

import (
	"errors"
	"log/slog"
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A mapping outlives the descriptor that it was made with, and its stores change times without
// notice. So after a writable passthrough open no attributes are believed until it is certain
// that no mapping is left: the disk grants a read lease (fcntl(2), F_SETLEASE) only while no
// process can write, by descriptor or mapping.

// leases finds out whether a mapping is left.
type leases struct {
	open *opener
	log  *slog.Logger
}

// probing reports whether this request, and no other, has to find out whether the kernel can
// still write to an inode.
func (n *inode) probing() bool {
	if n.flags&(flagMapped|flagProbing) != flagMapped || n.ext.passes() > 0 || !n.regular() {
		return false
	}
	n.flags = n.flags&^flagMapped | flagProbing // an open meanwhile sets it again
	return true
}

// probe finds out, and stats the file once more if the lease is granted: the last store may
// have changed it since the first stat.
func (l *leases) probe(ino wsfs.Ino, st *stat) {
	lease := l.take(ino, st)
	n, ok := l.open.res.tab.lock(ino)
	if !ok {
		return
	}
	defer n.unlock()
	n.flags &^= flagProbing | flagUnsure
	switch {
	case lease == nil:
	case noLeases(lease):
		n.flags |= flagUnsure
		return
	default:
		n.flags |= flagMapped
		return
	}
	if !n.changing() && !n.overtook(st) && n.told != signature(st) {
		n.flags |= flagStale // by the last store, or by others since the first look
		n.observe(st, n.flags&flagMapped == 0)
	}
}

// noLeases reports whether the disk grants no leases, or none to us.
func noLeases(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EACCES)
}

// take takes a read lease and gives it back at once, and stats the file.
func (l *leases) take(ino wsfs.Ino, st *stat) error {
	var now stat
	h, err := l.open.open(ino, unix.O_RDONLY|unix.O_NOATIME, &now)
	if err != nil {
		return err
	}
	defer h.drop()
	if _, err := unix.FcntlInt(uintptr(h.fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(h.fd), unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		l.log.Warn("a lease could not be given back", "err", err)
	}
	return statAt(h.fd, "", st)
}
