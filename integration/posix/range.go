package posix

import (
	"strings"

	"golang.org/x/sys/unix"
)

const (
	keepSize  = unix.FALLOC_FL_KEEP_SIZE
	punchHole = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
)

var allocateCases = []Case{
	{"fallocate/grows the file with zeros", anyone, func(t *T) {
		fd := t.open(t.file("f", "abc"), unix.O_RDWR, 0)
		t.ok("fallocate", unix.Fallocate(fd, 0, 0, 10_000))
		t.eq("size", t.fstat(fd).Size, int64(10_000))
		t.content(t.p("f"), "abc"+zeros(9997))
		if got := t.fstat(fd).Blocks * 512; got < 10_000 {
			t.errorf("allocated %d bytes, want 10000", got)
		}
		t.ok("smaller", unix.Fallocate(fd, 0, 0, 100))
		t.eq("size", t.fstat(fd).Size, int64(10_000))
	}},
	{"fallocate/KEEP_SIZE leaves the size", anyone, func(t *T) {
		fd := t.open(t.file("f", "abc"), unix.O_RDWR, 0)
		t.ok("fallocate", unix.Fallocate(fd, keepSize, 0, 100_000))
		t.eq("size", t.fstat(fd).Size, int64(3))
		t.content(t.p("f"), "abc")
	}},
	{"fallocate/PUNCH_HOLE makes zeros of what was there", anyone, func(t *T) {
		x := strings.Repeat("x", 20_000)
		fd := t.open(t.file("f", x), unix.O_RDWR, 0)
		t.eq("warm", t.pread(fd, 20_000, 0), x)
		t.ok("punch", unix.Fallocate(fd, punchHole, 5000, 10_000))
		t.content(t.p("f"), x[:5000]+zeros(10_000)+x[:5000])
		t.eq("size", t.fstat(fd).Size, int64(20_000))
		t.is("without KEEP_SIZE", unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE, 0, 10), unix.EOPNOTSUPP)
	}},
	{"fallocate/ZERO_RANGE", anyone, func(t *T) {
		x := strings.Repeat("x", 10_000)
		fd := t.open(t.file("f", x), unix.O_RDWR, 0)
		t.ok("zero", unix.Fallocate(fd, unix.FALLOC_FL_ZERO_RANGE, 1000, 2000))
		t.content(t.p("f"), x[:1000]+zeros(2000)+x[:7000])
		t.ok("zero past the end", unix.Fallocate(fd, unix.FALLOC_FL_ZERO_RANGE, 9000, 3000))
		t.eq("size", t.fstat(fd).Size, int64(12_000))
	}},
	{"fallocate/errors", anyone, func(t *T) {
		f := t.file("f", "abc")
		fd := t.open(f, unix.O_RDWR, 0)
		t.is("no length", unix.Fallocate(fd, 0, 0, 0), unix.EINVAL)
		t.is("negative", unix.Fallocate(fd, 0, -1, 10), unix.EINVAL)
		t.is("O_RDONLY", unix.Fallocate(t.open(f, unix.O_RDONLY, 0), 0, 0, 10), unix.EBADF)
		t.is("far too long", unix.Fallocate(fd, 0, 1<<62, 1<<62), unix.EFBIG)
		t.is("unknown mode", unix.Fallocate(fd, 1<<20, 0, 10), unix.EOPNOTSUPP)
	}},
	{"fallocate/is seen by stat and an open reader", anyone, func(t *T) {
		f := t.file("f", "abc")
		r := t.open(f, unix.O_RDONLY, 0)
		t.eq("before", t.pread(r, 10, 0), "abc")
		t.ok("fallocate", unix.Fallocate(t.open(f, unix.O_RDWR, 0), 0, 0, 6))
		t.eq("after", t.pread(r, 10, 0), "abc"+zeros(3))
		t.eq("size", t.stat(f).Size, int64(6))
	}},
}

var seekCases = []Case{
	{"lseek/finds data and holes", anyone, func(t *T) {
		fd := t.open(t.p("f"), unix.O_RDWR|unix.O_CREAT, 0o644)
		const mib = 1 << 20
		_, err := unix.Pwrite(fd, []byte(strings.Repeat("x", mib)), mib)
		t.ok("pwrite", err)
		t.ok("ftruncate", unix.Ftruncate(fd, 4*mib))
		t.ok("fsync", unix.Fsync(fd))
		for _, c := range []struct {
			name   string
			off    int64
			whence int
			want   int64
		}{
			{"data from 0", 0, unix.SEEK_DATA, mib}, {"hole from 0", 0, unix.SEEK_HOLE, 0},
			{"hole from data", mib + 10, unix.SEEK_HOLE, 2 * mib}, {"data from data", mib + 10, unix.SEEK_DATA, mib + 10},
			{"hole at the end", 3 * mib, unix.SEEK_HOLE, 3 * mib},
		} {
			got, err := unix.Seek(fd, c.off, c.whence)
			t.ok(c.name, err)
			t.eq(c.name, got, c.want)
		}
		_, err = unix.Seek(fd, 3*mib, unix.SEEK_DATA)
		t.is("no more data", err, unix.ENXIO)
		_, err = unix.Seek(fd, 4*mib, unix.SEEK_HOLE)
		t.is("past the end", err, unix.ENXIO)
	}},
	{"lseek/a full file has its hole at the end", anyone, func(t *T) {
		fd := t.open(t.file("f", strings.Repeat("x", 5000)), unix.O_RDONLY, 0)
		got, err := unix.Seek(fd, 100, unix.SEEK_HOLE)
		t.ok("seek", err)
		t.eq("hole", got, int64(5000))
	}},
	{"lseek/SEEK_END and SEEK_CUR", anyone, func(t *T) {
		f := t.file("f", "abcdef")
		fd := t.open(f, unix.O_RDWR, 0)
		got, err := unix.Seek(fd, -2, unix.SEEK_END)
		t.ok("seek", err)
		t.eq("end", got, int64(4))
		t.ok("truncate", unix.Truncate(f, 100))
		got, _ = unix.Seek(fd, 0, unix.SEEK_END)
		t.eq("end after truncate", got, int64(100))
		got, _ = unix.Seek(fd, 5, unix.SEEK_CUR)
		t.eq("current", got, int64(105))
	}},
}

var copyCases = []Case{
	{"copy_file_range/copies bytes and moves offsets", anyone, func(t *T) {
		want := strings.Repeat("0123456789", 10_000)
		src := t.open(t.file("a", want), unix.O_RDONLY, 0)
		dst := t.open(t.p("b"), unix.O_RDWR|unix.O_CREAT, 0o644)
		for left := len(want); left > 0; {
			n, err := unix.CopyFileRange(src, nil, dst, nil, left, 0)
			t.ok("copy_file_range", err)
			if n == 0 {
				break
			}
			left -= n
		}
		t.content(t.p("b"), want)
		n, err := unix.CopyFileRange(src, nil, dst, nil, 10, 0)
		t.ok("at the end", err)
		t.eq("copied", n, 0)
	}},
	{"copy_file_range/into the middle, seen by readers", anyone, func(t *T) {
		src := t.open(t.file("a", "ABCDEF"), unix.O_RDONLY, 0)
		f := t.file("b", strings.Repeat("x", 5000))
		r := t.open(f, unix.O_RDONLY, 0)
		t.eq("warm", t.pread(r, 3, 2000), "xxx")
		in, out := int64(1), int64(2000)
		n, err := unix.CopyFileRange(src, &in, t.open(f, unix.O_RDWR, 0), &out, 3, 0)
		t.ok("copy_file_range", err)
		t.eq("copied and offsets", [3]int64{int64(n), in, out}, [3]int64{3, 4, 2003})
		t.eq("read", t.pread(r, 5, 1999), "xBCDx")
	}},
	{"copy_file_range/takes what was just written or mapped", anyone, func(t *T) {
		f := t.file("a", strings.Repeat("x", 8192))
		m := t.mmap(f, 8192, unix.O_RDWR, rdwr, unix.MAP_SHARED)
		copy(m[4096:], "mapped")
		src := t.open(f, unix.O_RDWR, 0)
		t.write(src, "written")
		in := int64(0)
		dst := t.open(t.p("b"), unix.O_RDWR|unix.O_CREAT, 0o644)
		n, err := unix.CopyFileRange(src, &in, dst, nil, 8192, 0)
		t.ok("copy_file_range", err)
		t.eq("copied", n, 8192)
		t.eq("written", t.pread(dst, 8, 0), "writtenx")
		t.eq("mapped", t.pread(dst, 6, 4096), "mapped")
	}},
	{"copy_file_range/errors", anyone, func(t *T) {
		f := t.file("a", "0123456789")
		r, w := t.open(f, unix.O_RDONLY, 0), t.open(f, unix.O_RDWR, 0)
		_, err := unix.CopyFileRange(r, nil, t.open(t.file("b", ""), unix.O_RDONLY, 0), nil, 5, 0)
		t.is("to O_RDONLY", err, unix.EBADF)
		_, err = unix.CopyFileRange(t.open(f, unix.O_WRONLY, 0), nil, w, nil, 5, 0)
		t.is("from O_WRONLY", err, unix.EBADF)
		in, out := int64(0), int64(2)
		_, err = unix.CopyFileRange(r, &in, w, &out, 5, 0)
		t.is("overlap", err, unix.EINVAL)
		_, err = unix.CopyFileRange(r, nil, t.open(f, unix.O_WRONLY|unix.O_APPEND, 0), nil, 5, 0)
		t.is("to O_APPEND", err, unix.EBADF)
	}},
	{"sendfile and splice/from a file", anyone, func(t *T) {
		want := strings.Repeat("0123456789", 5000)
		src := t.open(t.file("a", want), unix.O_RDONLY, 0)
		dst := t.open(t.p("b"), unix.O_RDWR|unix.O_CREAT, 0o644)
		for sent := 0; sent < len(want); {
			n, err := unix.Sendfile(dst, src, nil, len(want))
			t.ok("sendfile", err)
			if n == 0 {
				t.fatalf("sendfile stopped at %d of %d", sent, len(want))
			}
			sent += n
		}
		t.content(t.p("b"), want)
	}},
}
