package direct

import (
	"syscall"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// SetAttr changes attributes by a descriptor, never by a name that could lead
// to another file meanwhile.
func (v *Volume) SetAttr(op *wsfs.Op, ino wsfs.Ino, f wsfs.File, in *wsfs.SetAttr) (wsfs.Attr, error) {
	h, err := v.holdFor(ino, f)
	if err != nil {
		return wsfs.Attr{}, err
	}
	defer h.drop()
	covered := v.tab.reported(ino) && v.watch.current()
	v.tab.begin(ino)
	if err = v.setID.guard(op, ino, h, in); err == nil {
		err = apply(op, h, in)
	}
	var st stat
	if serr := v.tab.end(ino, h.fd, &st); err == nil {
		err = serr
	}
	if err != nil {
		return wsfs.Attr{}, err
	}
	v.setID.rearm(ino, in, &st)
	if in.Size != nil {
		if fl, ok := f.(*file); ok {
			fl.wrote.Store(true)
		} else {
			v.tell.wroteIno(ino)
		}
	}
	return v.told(ino, &st, covered, true), nil
}

func (v *Volume) holdFor(ino wsfs.Ino, f wsfs.File) (*handle, error) {
	if fl, ok := f.(*file); ok {
		return fl.h.hold(), nil
	}
	return v.res.hold(ino)
}

// apply makes the changes in an order in which none undoes another: a change of owner or size
// clears set-user-id, and a change of mode may set it.
func apply(op *wsfs.Op, h *handle, in *wsfs.SetAttr) error {
	if in.UID != nil || in.GID != nil {
		if err := unix.Fchownat(h.fd, "", idOr(in.UID), idOr(in.GID), unix.AT_EMPTY_PATH); err != nil {
			return err
		}
	}
	if in.Size != nil {
		if op.KillPriv {
			if _, err := killPriv(h); err != nil {
				return err
			}
		}
		if err := truncate(h, *in.Size); err != nil {
			return err
		}
	}
	if in.Mode != nil {
		if err := chmod(h, *in.Mode&0o7777); err != nil {
			return err
		}
	}
	return setTimes(h, in)
}

// idOr is -1, "leave it", for nil.
func idOr(id *uint32) int {
	if id == nil {
		return -1
	}
	return int(*id)
}

// chmod uses fchmodat2(2), of Linux 6.6, which takes descriptors; before that /proc is the only
// way for O_PATH, and must not be followed into a link.
func chmod(h *handle, mode uint32) error {
	var empty [1]byte
	err := fchmodat2(h.fd, &empty[0], mode)
	if err != syscall.ENOSYS {
		return err
	}
	if !h.path {
		return unix.Fchmod(h.fd, mode)
	}
	var st stat
	if err := statAt(h.fd, "", &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return syscall.EOPNOTSUPP
	}
	return unix.Chmod(h.procPath(), mode)
}

func truncate(h *handle, size uint64) error {
	if int64(size) < 0 {
		return syscall.EFBIG
	}
	if !h.path {
		// EINVAL: the descriptor is for reading, and the kernel has checked.
		if err := unix.Ftruncate(h.fd, int64(size)); err != syscall.EINVAL {
			return err
		}
	}
	return unix.Truncate(h.procPath(), int64(size))
}

func setTimes(h *handle, in *wsfs.SetAttr) error {
	ts := [2]unix.Timespec{
		timespec(in.Atime, in.AtimeNow),
		timespec(in.Mtime, in.MtimeNow),
	}
	if ts[0].Nsec == unix.UTIME_OMIT && ts[1].Nsec == unix.UTIME_OMIT {
		return nil
	}
	return unix.UtimesNanoAt(h.fd, "", ts[:], unix.AT_EMPTY_PATH)
}

func timespec(t *time.Time, now bool) unix.Timespec {
	switch {
	case now:
		return unix.Timespec{Nsec: unix.UTIME_NOW}
	case t == nil:
		return unix.Timespec{Nsec: unix.UTIME_OMIT}
	}
	return unix.Timespec{Sec: t.Unix(), Nsec: int64(t.Nanosecond())}
}
