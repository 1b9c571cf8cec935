package posix

import (
	"math"
	"strings"

	"golang.org/x/sys/unix"
)

var readWriteCases = []Case{
	{"read/ends at the end of the file", anyone, func(t *T) {
		fd := t.open(t.file("f", "abcdef"), unix.O_RDONLY, 0)
		t.eq("all", t.pread(fd, 100, 0), "abcdef")
		t.eq("tail", t.pread(fd, 100, 4), "ef")
		t.eq("at the end", t.pread(fd, 100, 6), "")
		t.eq("far behind", t.pread(fd, 100, 1<<40), "")
	}},
	{"write/past the end leaves zeros", anyone, func(t *T) {
		fd := t.open(t.p("f"), unix.O_RDWR|unix.O_CREAT, 0o644)
		_, err := unix.Pwrite(fd, []byte("x"), 100_000)
		t.ok("pwrite", err)
		t.eq("size", t.fstat(fd).Size, int64(100_001))
		t.content(t.p("f"), zeros(100_000)+"x")
	}},
	{"write/is seen through every descriptor at once", anyone, func(t *T) {
		w := t.open(t.p("f"), unix.O_WRONLY|unix.O_CREAT, 0o644)
		r := t.open(t.p("f"), unix.O_RDONLY, 0)
		for i, s := range []string{"one", "two", strings.Repeat("3", 70_000)} {
			off := t.fstat(r).Size
			t.write(w, s)
			t.eq("read", t.pread(r, len(s)+10, off), s)
			t.eq("size by path", t.stat(t.p("f")).Size, off+int64(len(s)))
			_ = i
		}
	}},
	{"write/O_APPEND goes to the end, wherever that is", anyone, func(t *T) {
		f := t.file("f", "one")
		a := t.open(f, unix.O_WRONLY|unix.O_APPEND, 0)
		b := t.open(f, unix.O_WRONLY|unix.O_APPEND, 0)
		t.write(a, "two")
		t.write(b, "three")
		t.write(a, "four")
		t.content(f, "onetwothreefour")
		t.ok("truncate", unix.Truncate(f, 3))
		t.write(b, "five")
		t.content(f, "onefive")
		_, err := unix.Seek(a, 0, unix.SEEK_SET)
		t.ok("seek", err)
		t.write(a, "six")
		t.content(f, "onefivesix")
	}},
	{"write/O_APPEND set by fcntl", anyone, func(t *T) {
		f := t.file("f", "one")
		fd := t.open(f, unix.O_RDWR, 0)
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_APPEND)
		t.ok("fcntl", err)
		t.write(fd, "two")
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, 0)
		t.ok("fcntl", err)
		_, err = unix.Seek(fd, 0, unix.SEEK_SET)
		t.ok("seek", err)
		t.write(fd, "O")
		t.content(f, "Onetwo")
	}},
	{"write/O_APPEND by many writers loses nothing", anyone, func(t *T) {
		f := t.file("f", "")
		done := make(chan error)
		const writers, each = 4, 200
		for range writers {
			go func() { done <- appendLines(f, each) }()
		}
		for range writers {
			t.ok("append", <-done)
		}
		t.eq("size", t.stat(f).Size, int64(writers*each*len(appendLine)))
		t.content(f, strings.Repeat(appendLine, writers*each))
	}},
	{"write/across pages and unaligned", anyone, func(t *T) {
		want := []byte(strings.Repeat("abcdefg", 3000))
		fd := t.open(t.file("f", string(want)), unix.O_RDWR, 0)
		for _, off := range []int{4090, 8191, 1, 12_288, 20_000} {
			_, err := unix.Pwrite(fd, []byte("0123456789"), int64(off))
			t.ok("pwrite", err)
			copy(want[off:], "0123456789")
		}
		t.content(t.p("f"), string(want))
	}},
	{"write/vectors and big requests", anyone, func(t *T) {
		fd := t.open(t.p("f"), unix.O_RDWR|unix.O_CREAT, 0o644)
		big := []byte(strings.Repeat("0123456789abcdef", 3<<16)) // 3 MiB
		n, err := unix.Pwritev(fd, [][]byte{[]byte("head"), big, []byte("tail")}, 0)
		t.ok("pwritev", err)
		t.eq("written", n, len(big)+8)
		t.content(t.p("f"), "head"+string(big)+"tail")
	}},
	{"write/of nothing changes nothing", anyone, func(t *T) {
		fd := t.open(t.file("f", "abc"), unix.O_RDWR, 0)
		n, err := unix.Pwrite(fd, nil, 1000)
		t.ok("pwrite", err)
		t.eq("written", n, 0)
		t.eq("size", t.fstat(fd).Size, int64(3))
	}},
	{"write/negative offset is EINVAL", anyone, func(t *T) {
		fd := t.open(t.file("f", "abc"), unix.O_RDWR, 0)
		_, err := unix.Pwrite(fd, []byte("x"), -1)
		t.is("pwrite", err, unix.EINVAL)
		_, err = unix.Seek(fd, -1, unix.SEEK_SET)
		t.is("seek", err, unix.EINVAL)
	}},
	{"write/O_DIRECT and buffered agree", anyone, func(t *T) {
		f := t.file("f", strings.Repeat("b", 16384))
		fd, err := unix.Open(f, unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
		t.ok("open", err)
		t.hold(fd)
		page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		t.ok("mmap", err)
		t.later(func() { unix.Munmap(page) })
		copy(page, strings.Repeat("d", 4096))
		_, err = unix.Pwrite(fd, page, 4096)
		t.ok("pwrite", err)
		want := strings.Repeat("b", 4096) + strings.Repeat("d", 4096) + strings.Repeat("b", 8192)
		t.content(f, want)
		_, err = unix.Pread(fd, page, 8192)
		t.ok("pread", err)
		t.eq("direct read", string(page), want[8192:12288])
	}},
	{"write/O_SYNC and O_DSYNC", anyone, func(t *T) {
		for _, flag := range []int{unix.O_SYNC, unix.O_DSYNC} {
			fd := t.open(t.p("f"), unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC|flag, 0o644)
			t.write(fd, "abc")
			t.content(t.p("f"), "abc")
		}
	}},
}

const appendLine = "a line of some length\n"

func appendLines(path string, n int) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for range n {
		if _, err := unix.Write(fd, []byte(appendLine)); err != nil {
			return err
		}
	}
	return nil
}

var truncateCases = []Case{
	{"truncate/shorter and longer", anyone, func(t *T) {
		f := t.file("f", "abcdef")
		t.ok("truncate", unix.Truncate(f, 3))
		t.content(f, "abc")
		t.ok("truncate", unix.Truncate(f, 6))
		t.content(f, "abc"+zeros(3))
		t.ok("truncate", unix.Truncate(f, 0))
		t.content(f, "")
	}},
	{"truncate/what was cut never comes back", anyone, func(t *T) {
		fd := t.open(t.file("f", strings.Repeat("x", 10_000)), unix.O_RDWR, 0)
		t.eq("warm", len(t.pread(fd, 10_000, 0)), 10_000)
		t.ok("ftruncate", unix.Ftruncate(fd, 5000))
		t.ok("ftruncate", unix.Ftruncate(fd, 10_000))
		t.eq("read", t.pread(fd, 10_000, 0), strings.Repeat("x", 5000)+zeros(5000))
	}},
	{"truncate/of a wrong thing", anyone, func(t *T) {
		t.is("missing", unix.Truncate(t.p("none"), 0), unix.ENOENT)
		t.is("directory", unix.Truncate(t.dir("d"), 0), unix.EISDIR)
		t.is("negative", unix.Truncate(t.file("f", "abc"), -1), unix.EINVAL)
		t.is("below a file", unix.Truncate(t.p("f", "x"), 0), unix.ENOTDIR)
		t.is("far too long", unix.Truncate(t.p("f"), math.MaxInt64), unix.EFBIG)
		t.ok("mkfifo", unix.Mkfifo(t.p("p"), 0o644))
		t.is("fifo", unix.Truncate(t.p("p"), 0), unix.EINVAL)
	}},
	{"truncate/needs the right to write", anyone, func(t *T) {
		t.user(func() {
			f := t.file("f", "abc")
			fd := t.open(f, unix.O_RDWR, 0)
			t.ok("chmod", unix.Chmod(f, 0o444))
			t.is("truncate", unix.Truncate(f, 0), unix.EACCES)
			t.is("ftruncate", unix.Ftruncate(fd, 1), 0)
			t.content(f, "a")
		})
	}},
	{"truncate/while open moves no offset", anyone, func(t *T) {
		fd := t.open(t.p("f"), unix.O_RDWR|unix.O_CREAT, 0o644)
		t.write(fd, "abcdef")
		t.ok("ftruncate", unix.Ftruncate(fd, 0))
		t.write(fd, "g")
		t.content(t.p("f"), zeros(6)+"g")
	}},
	{"truncate/grows sparsely", anyone, func(t *T) {
		f := t.file("f", "")
		t.ok("truncate", unix.Truncate(f, 1<<40))
		st := t.stat(f)
		t.eq("size", st.Size, int64(1)<<40)
		if st.Blocks > 2048 {
			t.errorf("blocks: got %d, want a sparse file", st.Blocks)
		}
		fd := t.open(f, unix.O_RDONLY, 0)
		t.eq("middle", t.pread(fd, 4, 1<<39), zeros(4))
	}},
}
