package posix

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawSetgroups sets this thread's further groups. list is not empty, so that
// it has an address; n of its elements count.
func rawSetgroups(list []uint32, n int) error {
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(n), uintptr(unsafe.Pointer(&list[0])), 0); e != 0 {
		return e
	}
	return nil
}
