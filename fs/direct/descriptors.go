package direct

import (
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// descriptors counts the descriptors that a volume has open, and has their limit.
type descriptors struct {
	limit int
	open  atomic.Int64
	last  atomic.Int32 // number of the last opened, see spare
}

// handle takes over a descriptor.
func (d *descriptors) handle(fd int, path bool) *handle {
	d.open.Add(1)
	d.last.Store(int32(fd))
	h := &handle{fd: fd, path: path, of: d}
	h.refs.Store(1)
	return h
}

func fileLimit() int {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil {
		return 1024
	}
	return int(min(lim.Cur, 1<<30))
}

// reserve is the number of descriptors that open files may not take, so that with too many of
// them names can still be looked up, listed, renamed and removed.
func reserve(limit int) int { return min(256, limit/4) }

// spare returns EMFILE when a further open file would cut into the reserve. The kernel gives
// the lowest free number, so the last descriptor tells how many the process has; only when it
// is high is a new one made to see its number.
func (d *descriptors) spare(root *handle) error {
	top := d.limit - reserve(d.limit)
	if int(d.last.Load()) < top/2 {
		return nil
	}
	fd, err := unix.FcntlInt(uintptr(root.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	unix.Close(fd)
	d.last.Store(int32(fd))
	if fd >= top {
		return syscall.EMFILE
	}
	return nil
}
