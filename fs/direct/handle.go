package direct

import (
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A handle is a descriptor with references; it is closed with the last one.
type handle struct {
	fd    int
	path  bool // opened with O_PATH
	used  atomic.Bool
	refs  atomic.Int32
	quick atomic.Bool // its last drop is quick, see dropLater
	of    *descriptors
}

// hold takes a reference; the caller must already have one.
func (h *handle) hold() *handle {
	h.refs.Add(1)
	return h
}

// drop gives a reference back. A nil handle has none.
func (h *handle) drop() {
	if h != nil && h.refs.Add(-1) == 0 {
		h.of.open.Add(-1)
		unix.Close(h.fd)
	}
}

// quickBlocks (of 512 bytes) are freed before a goroutine would have started.
const quickBlocks = 1 << 20 / 512

// dropLater gives back a reference that may be the last to a file without a name, which the
// disk then frees: the time that takes grows with the file's size, and no request should wait
// for a large one.
func (h *handle) dropLater() {
	if h == nil {
		return
	}
	if h.refs.Load() > 1 || h.quick.Load() {
		h.drop()
		return
	}
	go h.drop()
}

// procPath is a path that leads to the file behind the descriptor, of any type and name: for
// the calls that have no form for O_PATH.
func (h *handle) procPath() string { return procPath(h.fd) }

func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

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

// reopen opens the file behind an O_PATH descriptor.
func reopen(fd, flags int) (int, error) {
	for {
		got, err := unix.Open(procPath(fd), flags|unix.O_CLOEXEC, 0)
		if err != syscall.EINTR {
			return got, err
		}
	}
}

// hasProc returns an error unless this process sees itself in /proc.
func hasProc() error {
	_, err := os.Stat("/proc/self/fd")
	return err
}
