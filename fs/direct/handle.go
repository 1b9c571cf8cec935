package direct

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A handle is a descriptor with references; it is closed with the last one.
type handle struct {
	fd    int
	path  bool // opened with O_PATH
	used  atomic.Bool
	refs  atomic.Int32
	quick atomic.Bool // nobody waits for its last drop, see dropLater
}

// handles counts open ones, for Status.
func (v *Volume) newHandle(fd int, path bool) *handle {
	v.handles.Add(1)
	v.lastFD.Store(int32(fd))
	h := &handle{fd: fd, path: path}
	h.refs.Store(1)
	return h
}

// hold takes a reference; the caller knows that there is one already.
func (h *handle) hold() *handle {
	h.refs.Add(1)
	return h
}

// drop gives a reference back. A nil handle is none.
func (v *Volume) drop(h *handle) {
	if h != nil && h.refs.Add(-1) == 0 {
		v.handles.Add(-1)
		unix.Close(h.fd)
	}
}

// procPath is a path that leads to what the descriptor refers to, whatever it
// is and whatever its name: for the calls that have no form for O_PATH.
func (h *handle) procPath() string { return procPath(h.fd) }

func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// A ring keeps the descriptors of directories in use, a bounded number of them:
// one that was not used since the hand last passed is closed.
type ring struct {
	mu    sync.Mutex
	slots []wsfs.Ino
	hand  int
	cap   int
}

// ringSize leaves most descriptors to open files.
func ringSize(limit int) int { return min(max(limit/8, 16), 4096) }

func fileLimit() int {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil {
		return 1024
	}
	return int(min(lim.Cur, 1<<30))
}

// reserve is how many descriptors open files may not take, so that with too many
// of them names can still be looked up, listed, renamed and removed.
func reserve(limit int) int { return min(256, limit/4) }

// spare says EMFILE when a further open file would cut into the reserve. The
// kernel gives the lowest free number, so the last one tells how many
// descriptors the process has; only when it is high is a new one looked at.
func (v *Volume) spare() error {
	top := v.limit - reserve(v.limit)
	if int(v.lastFD.Load()) < top/2 {
		return nil
	}
	fd, err := unix.FcntlInt(uintptr(v.root.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	unix.Close(fd)
	v.lastFD.Store(int32(fd))
	if fd >= top {
		return syscall.EMFILE
	}
	return nil
}

// keep makes h the descriptor of directory ino, unless it has one, and returns
// the one to use, with a reference for the caller. h is given away.
func (v *Volume) keep(ino wsfs.Ino, h *handle) *handle {
	s, n := v.tab.get(ino)
	if n == nil || h.fd >= v.limit-reserve(v.limit) {
		s.mu.Unlock()
		return h // the reserve is for requests, not to be kept
	}
	e := n.more()
	if e.dir != nil {
		got := e.dir.hold()
		s.mu.Unlock()
		v.drop(h)
		return got
	}
	e.dir = h.hold()
	s.mu.Unlock()
	v.enter(ino)
	return h
}

// enter gives a directory a place in the ring, taking it from another.
func (v *Volume) enter(ino wsfs.Ino) {
	r := &v.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.slots) < r.cap {
		r.slots = append(r.slots, ino)
		return
	}
	for range 2 * len(r.slots) {
		if r.hand++; r.hand >= len(r.slots) {
			r.hand = 0
		}
		if v.evict(r.slots[r.hand]) {
			break
		}
	}
	r.slots[r.hand] = ino
}

// evict takes a directory's descriptor away, unless it was used lately.
func (v *Volume) evict(ino wsfs.Ino) bool {
	s, n := v.tab.get(ino)
	if n == nil || n.ext == nil || n.ext.dir == nil {
		s.mu.Unlock()
		return true
	}
	h := n.ext.dir
	if h.used.Swap(false) {
		s.mu.Unlock()
		return false
	}
	n.ext.dir = nil
	n.trim()
	s.mu.Unlock()
	v.drop(h)
	return true
}

// openAt opens one name in a directory; a symbolic link is ELOOP (or itself,
// with O_PATH), never followed.
func openAt(fd int, name string, flags int, mode uint32) (int, error) {
	for {
		got, err := unix.Openat(fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		if err != syscall.EINTR {
			return got, err
		}
	}
}

// reopen opens what an O_PATH descriptor refers to.
func reopen(fd, flags int) (int, error) {
	for {
		got, err := unix.Open(procPath(fd), flags|unix.O_CLOEXEC, 0)
		if err != syscall.EINTR {
			return got, err
		}
	}
}

// hasProc says whether this process sees itself in /proc.
func hasProc() error {
	_, err := os.Stat("/proc/self/fd")
	return err
}
