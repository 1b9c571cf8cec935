package content

import "golang.org/x/sys/unix"

// Quiet reports that only the users of this File can change the content: there is no other
// descriptor for writing and no other mapping of it, such as those that outlived a daemon
// before this one.
func (f *File) Quiet() bool {
	l := f.lock()
	defer l.unlock()
	if l.blank {
		return true
	}
	fd, err := l.reader()
	if err != nil {
		return false
	}
	l.shutWriter() // our own would count as well
	return f.s.dirs.quiet(fd)
}

// quiet asks the kernel by taking a lease for a moment: it is refused while the file is
// open for writing.
func (d *dirs) quiet(fd int) bool {
	if !d.leases {
		return true
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return false
	}
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}

// quietSize is the space that content takes that is not open for writing; -1 when it is.
// Content that is gone takes none.
func (d *dirs) quietSize(ino uint64) int64 {
	fd, err := d.open(ino, unix.O_RDONLY)
	if err == unix.ENOENT {
		return 0
	}
	if err != nil {
		return -1
	}
	defer unix.Close(fd)
	if !d.quiet(fd) {
		return -1
	}
	return bytesOf(fd)
}
