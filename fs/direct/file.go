package direct

import (
	"sync/atomic"
	"syscall"

	wsfs "github.com/wsmount/wsmount/fs"
	"golang.org/x/sys/unix"
)

// A file is an open file.
type file struct {
	v          *Volume
	h          *handle
	ino        wsfs.Ino
	flags      uint32
	pass       bool   // the kernel may write by itself; guarded by the inode's shard
	root       bool   // opened by a caller whose writes leave set-id bits
	since      uint64 // contentSignature at open
	wrote      atomic.Bool
	prev, next *file // of the same inode; guarded by its shard
}

var (
	_ wsfs.File     = (*file)(nil)
	_ wsfs.Unpassed = (*file)(nil)
)

// Unpassed notes that the kernel sends writes after all: any other difference is another
// process's change, and the kernel may have pages of it.
func (f *file) Unpassed() {
	n, _ := f.v.tab.lock(f.ino) // an open file keeps the inode
	defer n.unlock()
	if f.pass {
		f.pass = false
		n.ext.pass--
	}
}

// Read reads into buf.
func (f *file) Read(_ *wsfs.Op, buf []byte, off int64) (wsfs.Data, error) {
	total, err := preadFull(f.h.fd, buf, off)
	if total == 0 && err != nil {
		return wsfs.Data{}, err
	}
	return wsfs.Data{Bytes: buf[:total]}, nil // an error after the first bytes is for the next call
}

func preadFull(fd int, buf []byte, off int64) (total int, err error) {
	for total < len(buf) {
		n, err := unix.Pread(fd, buf[total:], off+int64(total))
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return total, err
		}
		total += n
	}
	return total, nil
}

// Write writes all of data, or fails. Bytes written before a failure are reported as a short
// write, and the failure to the next call.
func (f *file) Write(op *wsfs.Op, data []byte, off int64) (int, error) {
	total := 0
	err := f.change(op.KillPriv, func() error {
		for total < len(data) {
			n, err := unix.Pwrite(f.h.fd, data[total:], off+int64(total))
			if err == syscall.EINTR {
				continue
			}
			if err != nil {
				return err
			}
			total += n
		}
		return nil
	})
	if total > 0 {
		return total, nil
	}
	return total, err
}

// change runs do, which changes the content.
func (f *file) change(kill bool, do func() error) error {
	f.wrote.Store(true)
	f.v.tab.begin(f.ino)
	var err error
	if kill {
		var took bool
		if took, err = killPriv(f.h); took {
			f.v.setID.noteUnset(f.ino)
		}
	}
	if err == nil {
		err = do()
	}
	var st stat
	_ = f.v.tab.end(f.ino, f.h.fd, &st)
	return err
}

// mayNotKeep is Op.KillPriv for the calls in which the kernel cannot send it: true for any
// caller but root then.
func mayNotKeep(op *wsfs.Op) bool { return op.KillPriv || op.UID != 0 }

// Flush has nothing to do: a local disk reports no further errors at close.
func (f *file) Flush(*wsfs.Op) error { return nil }

// Fsync makes the file durable as far as the disk does.
func (f *file) Fsync(_ *wsfs.Op, dataOnly bool) error {
	if dataOnly {
		return unix.Fdatasync(f.h.fd)
	}
	return unix.Fsync(f.h.fd)
}

// Allocate is fallocate(2), with every mode that the disk knows.
func (f *file) Allocate(op *wsfs.Op, off, size int64, mode uint32) error {
	return f.change(mayNotKeep(op), func() error {
		for {
			err := unix.Fallocate(f.h.fd, mode, off, size)
			if err != syscall.EINTR {
				return err
			}
		}
	})
}

// Seek finds data or a hole. No caller sees the position of the descriptor.
func (f *file) Seek(_ *wsfs.Op, off int64, whence uint32) (int64, error) {
	if whence != unix.SEEK_DATA && whence != unix.SEEK_HOLE {
		return 0, syscall.EINVAL
	}
	return unix.Seek(f.h.fd, off, int(whence))
}

// CopyRange copies within the disk, sharing blocks where the disk can.
func (f *file) CopyRange(op *wsfs.Op, off int64, dst wsfs.File, dstOff, n int64) (int64, error) {
	d, ok := dst.(*file)
	if !ok || d.v != f.v {
		return 0, syscall.EXDEV
	}
	var copied int
	err := d.change(mayNotKeep(op), func() (err error) {
		copied, err = unix.CopyFileRange(f.h.fd, &off, d.h.fd, &dstOff, int(n), 0)
		return err
	})
	return int64(max(copied, 0)), err
}

// Release closes the file. If the file has no name, the inode keeps its descriptor for as long
// as the kernel knows it.
func (f *file) Release() {
	v := f.v
	var st stat
	seen := (f.pass || f.wrote.Load()) && statAt(f.h.fd, "", &st) == nil
	if seen {
		v.setID.disarm(f.ino, &st)
	}
	n, _ := v.tab.lock(f.ino)
	f.unlink(n.inode)
	e := n.ext
	if e.unset != 0 && f.writes() {
		e.unset = v.now().UnixNano() // its last writes have overtaken answers until now
	}
	if f.pass {
		e.pass--
		if !e.unseenWriter() {
			e.setID = 0
		}
	}
	if seen && e.busy == 0 {
		n.observe(&st, f.pass)
	}
	if f.pass {
		n.overtakes() // by the writes of the kernel
	}
	changed := f.wrote.Load() || f.pass && seen && contentSignature(&st) != f.since
	dir, name := n.parent, n.name
	if name == "" && n.refs > 0 && e.files == nil && e.pin == nil {
		e.pin = f.h.hold()
	}
	n.trim()
	n.settle()
	v.files.Add(-1)
	if name == "" {
		f.h.dropLater()
		return
	}
	f.h.drop()
	if changed {
		v.tell.wrote(dir, name)
	}
}

func (f *file) writes() bool { return f.flags&unix.O_ACCMODE != unix.O_RDONLY }
func (f *file) runs() bool   { return f.flags&fmodeExec != 0 }

// unlink takes f out of its inode's list.
func (f *file) unlink(n *inode) {
	if f.next != nil {
		f.next.prev = f.prev
	}
	if f.prev != nil {
		f.prev.next = f.next
		return
	}
	n.ext.files = f.next
}
