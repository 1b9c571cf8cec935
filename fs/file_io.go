package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// file returns the open file behind a handle.
func (f *front) file(fh uint64) (*handle, error) {
	if h := f.handles.get(fh); h != nil && h.file != nil {
		return h, nil
	}
	return nil, syscall.EBADF
}

// written is the open file behind a handle, for a change of its content: the part may have
// become read-only since it was opened.
func (f *front) written(fh uint64) (*handle, error) {
	h, err := f.file(fh)
	if err == nil {
		err = h.s.guardPart()
	}
	return h, err
}

func (f *front) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	c := f.begin(opRead, cancel, &in.InHeader)
	h, err := f.file(in.Fh)
	if err != nil {
		return nil, c.end(err)
	}
	d, err := h.file.Read(&c.Op, buf, int64(in.Offset))
	if err != nil {
		return nil, c.end(err)
	}
	f.stats.readBytes.Add(uint64(max(len(d.Bytes), d.N)))
	if d.Bytes == nil && d.N > 0 {
		return fuse.ReadResultFd(uintptr(d.FD), d.Off, d.N), c.end(nil)
	}
	return fuse.ReadResultData(d.Bytes), c.end(nil)
}

func (f *front) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	c := f.begin(opWrite, cancel, &in.InHeader)
	c.KillPriv = in.WriteFlags&fuse.WRITE_KILL_SUIDGID != 0
	h, err := f.written(in.Fh)
	if err != nil {
		return 0, c.end(err)
	}
	n, err := h.file.Write(&c.Op, data, int64(in.Offset))
	f.stats.writtenBytes.Add(uint64(n))
	return uint32(n), c.end(err)
}

// Writev lets the library hand the data over in one piece, through Write.
func (f *front) Writev(<-chan struct{}, *fuse.WriteIn, [][]byte) (uint32, fuse.Status) {
	return 0, fuse.ENOSYS
}

// maxCopy keeps the count of a copy_file_range within the 32 bits of its
// answer, and one request short enough to be interrupted.
const maxCopy = 1 << 30

func (f *front) CopyFileRange(cancel <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	c := f.begin(opCopy, cancel, &in.InHeader)
	src, err := f.file(in.FhIn)
	if err != nil {
		return 0, c.end(err)
	}
	dst, err := f.written(in.FhOut)
	if err != nil {
		return 0, c.end(err)
	}
	if src.s != dst.s {
		return 0, c.end(syscall.EXDEV) // the kernel copies by reading and writing
	}
	n, err := src.file.CopyRange(&c.Op, int64(in.OffIn), dst.file, int64(in.OffOut), int64(min(in.Len, maxCopy)))
	return uint32(n), c.end(err)
}

func (f *front) Lseek(cancel <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	c := f.begin(opLseek, cancel, &in.InHeader)
	h, err := f.file(in.Fh)
	if err != nil {
		return c.end(err)
	}
	off, err := h.file.Seek(&c.Op, int64(in.Offset), in.Whence)
	out.Offset = uint64(off)
	return c.end(err)
}

func (f *front) Flush(cancel <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	c := f.begin(opFlush, cancel, &in.InHeader)
	h, err := f.file(in.Fh)
	if err == nil {
		err = h.file.Flush(&c.Op)
	}
	return c.end(err)
}

// fdatasync is the bit of FsyncIn.FsyncFlags that leaves attributes out.
const fdatasync = 1

func (f *front) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	c := f.begin(opFsync, cancel, &in.InHeader)
	h, err := f.file(in.Fh)
	if err == nil {
		err = h.file.Fsync(&c.Op, in.FsyncFlags&fdatasync != 0)
	}
	return c.end(err)
}

func (f *front) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	c := f.begin(opFallocate, cancel, &in.InHeader)
	h, err := f.written(in.Fh)
	if err == nil {
		err = h.file.Allocate(&c.Op, int64(in.Offset), int64(in.Length), in.Mode)
	}
	return c.end(err)
}
