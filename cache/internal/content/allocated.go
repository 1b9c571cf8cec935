package content

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// allocated reports that the disk has given room to all of [off, off+n), so that a write to
// it takes no more.
func (f *lockedFile) allocated(off, n int64) bool {
	fd, err := f.reader()
	if err != nil || off+n > f.size.Load() {
		return false
	}
	end, err := extents(fd, off, n)
	if err == nil {
		return end >= off+n
	}
	// A range that was allocated and not written counts as a hole, too, so that this says
	// no too often.
	hole, err := unix.Seek(fd, off, unix.SEEK_HOLE)
	return err == nil && hole >= off+n
}

// The call FIEMAP of the kernel, from linux/fiemap.h.
const (
	fiemapCall   = 0xc020660b
	fiemapHead   = 32
	fiemapExtent = 56
	fiemapMost   = 16
	fiemapLast   = 0x1
	fiemapShared = 0x2000
)

// extents is how far from off on a file has room on the disk without a gap, up to off+n or more.
// Blocks that it shares with another file do not count: a write to them takes new ones.
func extents(fd int, off, n int64) (int64, error) {
	end := off
	for end < off+n {
		next, last, err := moreExtents(fd, end, off+n-end)
		if err != nil {
			return end, err
		}
		if next == end {
			break
		}
		end = next
		if last {
			break
		}
	}
	return end, nil
}

// moreExtents is extents for as many as one call returns.
func moreExtents(fd int, off, n int64) (end int64, last bool, err error) {
	var buf [fiemapHead + fiemapMost*fiemapExtent]byte
	le := binary.NativeEndian
	le.PutUint64(buf[0:], uint64(off))
	le.PutUint64(buf[8:], uint64(n))
	le.PutUint32(buf[24:], fiemapMost)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), fiemapCall, uintptr(unsafe.Pointer(&buf[0])))
	if errno != 0 {
		return 0, false, errno
	}
	end = off
	for i := range int(le.Uint32(buf[20:])) {
		e := buf[fiemapHead+i*fiemapExtent:]
		start, length, flags := int64(le.Uint64(e)), int64(le.Uint64(e[16:])), le.Uint32(e[40:])
		if start > end || flags&fiemapShared != 0 {
			return end, true, nil
		}
		end = max(end, start+length)
		last = flags&fiemapLast != 0
	}
	return end, last, nil
}
