package model

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"
)

// do does one operation and tells the answer in a form that is the same for
// two trees that behave the same.
func (t *tree) do(o op) string {
	switch o.Kind {
	case openFile:
		fd, err := unix.Open(t.path(o.A), o.Flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o644)
		return t.keep(o.FD, fd, err)
	case closeFile:
		return t.close(o.FD)
	case readFile, writeFile, truncateFile, statFile, syncFile, allocate, copyRange:
		if t.open[o.FD] == 0 {
			return "none"
		}
		return t.doFile(o, t.open[o.FD]-1)
	case list:
		return t.list(o.A)
	case lookup:
		return t.describe(o.A)
	case getFile:
		return t.content(o.A)
	}
	return t.doName(o)
}

func (t *tree) doFile(o op, fd int) string {
	switch o.Kind {
	case readFile:
		buf := make([]byte, o.Len)
		n, err := unix.Pread(fd, buf, o.Off)
		return digest(buf[:max(n, 0)]) + " " + result(err)
	case writeFile:
		n, err := unix.Pwrite(fd, bytes.Repeat([]byte{o.Byte}, o.Len), o.Off)
		return fmt.Sprint(n, " ", result(err))
	case truncateFile:
		return result(unix.Ftruncate(fd, o.Off))
	case syncFile:
		return result(unix.Fsync(fd))
	case allocate:
		return result(unix.Fallocate(fd, uint32(o.Flags), o.Off, int64(o.Len)))
	case copyRange:
		return t.copyRange(o, fd)
	}
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return fmt.Sprintf("mode %o links %d size %d %s", st.Mode, st.Nlink, st.Size, result(err))
}

// copyRange copies from one open file to another, all that was asked.
func (t *tree) copyRange(o op, fd int) string {
	if t.open[o.To] == 0 {
		return "none"
	}
	from, to, left := o.Off, int64(o.Byte), o.Len
	for left > 0 {
		n, err := unix.CopyFileRange(fd, &from, t.open[o.To]-1, &to, left, 0)
		if err != nil || n == 0 {
			return fmt.Sprint(o.Len-left, " ", result(err))
		}
		left -= n
	}
	return fmt.Sprint(o.Len-left, " ok")
}

func (t *tree) doName(o op) string {
	a, b := t.path(o.A), t.path(o.B)
	switch o.Kind {
	case mapStore:
		return t.mapStore(a, o)
	case putFile:
		return t.put(o.A, bytes.Repeat([]byte{o.Byte}, o.Len))
	case truncatePath:
		return result(unix.Truncate(a, o.Off))
	case mkdir:
		return result(unix.Mkdir(a, uint32(o.Flags)))
	case rmdir:
		return result(unix.Rmdir(a))
	case unlink:
		return result(unix.Unlink(a))
	case rename:
		return result(unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, uint(o.Flags)))
	case link:
		return result(unix.Link(a, b))
	case symlink:
		return result(unix.Symlink(o.B, a))
	case mkfifo:
		return result(unix.Mkfifo(a, 0o644))
	}
	return t.doAttribute(a, o)
}

func (t *tree) doAttribute(a string, o op) string {
	switch o.Kind {
	case chmod:
		return result(unix.Chmod(a, uint32(o.Flags)))
	case utimes:
		return t.utimes(a, o)
	case setXattr:
		return result(unix.Lsetxattr(a, attributeNames[o.Len%2], []byte{o.Byte}, o.Flags%3))
	case removeXattr:
		return result(unix.Lremovexattr(a, attributeNames[o.Len%2]))
	case tmpfile:
		return t.tmpfile(a, o)
	}
	return "no such operation"
}

func (t *tree) utimes(path string, o op) string {
	ts := []unix.Timespec{{Sec: o.Off, Nsec: int64(o.Len)}, {Sec: int64(o.Len), Nsec: o.Off}}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, ts, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return result(err)
	}
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return fmt.Sprint(st.Mtim, " ", result(err))
}

// mapStore stores a byte through a mapping that outlives its descriptor.
func (t *tree) mapStore(path string, o op) string {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return result(err)
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err != nil || st.Size == 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return "nothing to map " + result(err)
	}
	m, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	unix.Close(fd)
	if err != nil {
		return result(err)
	}
	m[o.Off%st.Size] = o.Byte
	return digest(m) + " " + result(unix.Munmap(m))
}

// tmpfile makes a file without a name, fills it and gives it one.
func (t *tree) tmpfile(path string, o op) string {
	fd, err := unix.Open(t.root, unix.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC, uint32(o.Flags))
	if err != nil {
		return result(err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, bytes.Repeat([]byte{o.Byte}, o.Len)); err != nil {
		return result(err)
	}
	return result(unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW))
}
