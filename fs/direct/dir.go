package direct

import (
	"bytes"
	"encoding/binary"
	"sync"
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A dirStream reads a directory with getdents64(2). Its cookies are the disk's.
type dirStream struct {
	h   *handle
	buf *[direntBuf]byte
	pos int // of the next record in buf
	end int
	off uint64 // cookie of the last entry returned
	eof bool
	top bool // of the volume's root
}

// direntBuf is the size of the getdents64(2) buffer, about a thousand entries: a call costs as
// much as some hundred entries.
const direntBuf = 32 << 10

var direntBufs = sync.Pool{New: func() any { return new([direntBuf]byte) }}

var _ wsfs.Dir = (*dirStream)(nil)

// OpenDir opens a stream.
func (v *Volume) OpenDir(_ *wsfs.Op, ino wsfs.Ino) (wsfs.Dir, error) {
	h, _, err := v.holdWatched(ino)
	if err != nil {
		return nil, err
	}
	defer h.drop()
	d, err := openStream(h, 0)
	if err != nil {
		return nil, err
	}
	d.top = ino == wsfs.RootIno
	return d, nil
}

// openStream opens the directory once more: a position of its own.
func openStream(h *handle, flags int) (*dirStream, error) {
	flags |= unix.O_RDONLY | unix.O_DIRECTORY
	fd, err := noatime(flags, func(flags int) (int, error) { return openAt(h.fd, ".", flags, 0) })
	if err == syscall.ENOENT { // removed, and still open
		fd, err = reopen(h.fd, flags&^unix.O_NOATIME)
	}
	if err != nil {
		return nil, err
	}
	return &dirStream{h: h.of.handle(fd, false)}, nil
}

// Seek moves to a cookie. Going back to one in the buffer needs no system call.
func (d *dirStream) Seek(cookie uint64) error {
	if cookie != 0 && cookie == d.off {
		return nil
	}
	if cookie != 0 && d.rewind(cookie) {
		return nil
	}
	d.pos, d.end, d.eof, d.off = 0, 0, false, cookie
	_, err := unix.Seek(d.h.fd, int64(cookie), unix.SEEK_SET)
	return err
}

// rewind makes the entry after a cookie in the buffer the next one.
func (d *dirStream) rewind(cookie uint64) bool {
	for pos := 0; pos < d.end; {
		rec := d.buf[pos:d.end]
		pos += int(binary.NativeEndian.Uint16(rec[16:]))
		if binary.NativeEndian.Uint64(rec[8:]) == cookie {
			d.pos, d.off = pos, cookie
			return true
		}
	}
	return false
}

// Next returns the next entry, without a stat of the file.
func (d *dirStream) Next(*wsfs.Op) (wsfs.DirEntry, bool, error) {
	if d.pos >= d.end {
		if more, err := d.fill(); !more {
			return wsfs.DirEntry{}, false, err
		}
	}
	rec := d.buf[d.pos:d.end]
	size := int(binary.NativeEndian.Uint16(rec[16:]))
	d.pos += size
	d.off = binary.NativeEndian.Uint64(rec[8:])
	name := rec[19:size]
	name = name[:bytes.IndexByte(name, 0)]
	e := wsfs.DirEntry{
		Name:   nameOf(name),
		Ino:    foldIno(binary.NativeEndian.Uint64(rec)),
		Mode:   uint32(rec[18]) << 12,
		Cookie: d.off,
	}
	switch {
	case e.Name == ".." && d.top:
		e.Ino = d.ownIno() // the directory above the root is not disclosed
	case e.Mode == 0:
		e.Mode = d.typeOf(e.Name)
	}
	return e, true, nil
}

// nameOf saves an allocation for the two names that every directory has.
func nameOf(b []byte) string {
	switch string(b) {
	case ".":
		return "."
	case "..":
		return ".."
	}
	return string(b)
}

func (d *dirStream) ownIno() wsfs.Ino {
	var st stat
	if statAt(d.h.fd, "", &st) != nil {
		return 0
	}
	return foldIno(st.Ino)
}

// fill reads the next part of the directory. more is false at the end.
func (d *dirStream) fill() (more bool, err error) {
	if d.eof {
		return false, nil
	}
	if d.buf == nil {
		d.buf = direntBufs.Get().(*[direntBuf]byte)
	}
	d.pos, d.end = 0, 0
	n, err := unix.Getdents(d.h.fd, d.buf[:])
	if err == syscall.ENOENT { // the directory was removed
		n, err = 0, nil
	}
	if err != nil {
		return false, err
	}
	d.end = n
	d.eof = n == 0
	return n > 0, nil
}

// typeOf stats a file whose type the disk does not keep with the name.
func (d *dirStream) typeOf(name string) uint32 {
	var st stat
	if statAt(d.h.fd, name, &st) != nil {
		return 0
	}
	return uint32(st.Mode) & unix.S_IFMT
}

// Fsync makes the names durable.
func (d *dirStream) Fsync(_ *wsfs.Op, dataOnly bool) error {
	if dataOnly {
		return unix.Fdatasync(d.h.fd)
	}
	return unix.Fsync(d.h.fd)
}

// Release closes the stream.
func (d *dirStream) Release() {
	if d.buf != nil {
		direntBufs.Put(d.buf)
		d.buf = nil
	}
	d.h.drop()
}
