package direct

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const capXattr = "security.capability"

// privMode returns the bits of a mode that a write by a caller without CAP_FSETID clears:
// set-user-id, and set-group-id where it does not mean mandatory locking.
func privMode(mode uint32) uint32 {
	bits := mode & unix.S_ISUID
	if mode&unix.S_IXGRP != 0 {
		bits |= mode & unix.S_ISGID
	}
	return bits
}

// killPriv clears set-id bits of a file, before a write by a caller that may not keep them: the
// disk does it for its own callers, but its caller is this process, which may keep them.
// Capabilities need no help, for every write clears them, root's too.
func killPriv(h *handle) (took bool, err error) {
	var st stat
	if err := statAt(h.fd, "", &st); err != nil {
		return false, err
	}
	bits := privMode(uint32(st.Mode))
	if bits == 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false, nil
	}
	return true, chmod(h, uint32(st.Mode)&0o7777&^bits)
}

func hasCaps(h *handle) bool {
	n, err := getxattr(h, capXattr, nil)
	return err == nil && n > 0
}

func fchmodat2(fd int, path *byte, mode uint32) error {
	_, _, errno := unix.Syscall6(unix.SYS_FCHMODAT2, uintptr(fd), uintptr(unsafe.Pointer(path)),
		uintptr(mode), unix.AT_EMPTY_PATH, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
