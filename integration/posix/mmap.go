package posix

import (
	"bytes"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// mmap maps n bytes of a file that is closed again at once, as programs do.
func (t *T) mmap(path string, n, flags, prot, how int) []byte {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	t.ok("open", err)
	m, err := unix.Mmap(fd, 0, n, prot, how)
	t.ok("close", unix.Close(fd))
	t.ok("mmap", err)
	t.later(func() { unix.Munmap(m) })
	return m
}

const rdwr = unix.PROT_READ | unix.PROT_WRITE

var mmapCases = []Case{
	{"mmap/shows the file", anyone, func(t *T) {
		want := strings.Repeat("0123456789", 2000)
		m := t.mmap(t.file("f", want), len(want), unix.O_RDONLY, unix.PROT_READ, unix.MAP_SHARED)
		t.eq("mapping", bytes.Equal(m, []byte(want)), true)
	}},
	{"mmap/stores are seen by read at once, before and after close", anyone, func(t *T) {
		f := t.file("f", strings.Repeat("x", 10_000))
		fd := t.open(f, unix.O_RDWR, 0)
		m, err := unix.Mmap(fd, 0, 10_000, rdwr, unix.MAP_SHARED)
		t.ok("mmap", err)
		t.later(func() { unix.Munmap(m) })
		copy(m[5000:], "stored")
		t.eq("same descriptor", t.pread(fd, 6, 5000), "stored")
		t.eq("new open", t.readAt(f, 6, 5000), "stored")
		t.shut(fd)
		copy(m[7000:], "later")
		t.eq("after close", t.readAt(f, 5, 7000), "later")
	}},
	{"mmap/writes are seen in the mapping at once", anyone, func(t *T) {
		f := t.file("f", strings.Repeat("x", 10_000))
		m := t.mmap(f, 10_000, unix.O_RDWR, rdwr, unix.MAP_SHARED)
		r := t.mmap(f, 10_000, unix.O_RDONLY, unix.PROT_READ, unix.MAP_SHARED)
		fd := t.open(f, unix.O_WRONLY, 0)
		for _, off := range []int64{0, 4095, 9000} {
			_, err := unix.Pwrite(fd, []byte("written"), off)
			t.ok("pwrite", err)
			t.eq("writable mapping", string(m[off:off+7]), "written")
			t.eq("read-only mapping", string(r[off:off+7]), "written")
		}
	}},
	{"mmap/two mappings are one memory", anyone, func(t *T) {
		f := t.file("f", strings.Repeat("x", 8192))
		a := t.mmap(f, 8192, unix.O_RDWR, rdwr, unix.MAP_SHARED)
		b := t.mmap(f, 8192, unix.O_RDWR, rdwr, unix.MAP_SHARED)
		copy(a[4000:], "hello")
		t.eq("other", string(b[4000:4005]), "hello")
	}},
	{"mmap/msync after close makes it to the file", anyone, func(t *T) {
		f := t.file("f", strings.Repeat("x", 8192))
		m := t.mmap(f, 8192, unix.O_RDWR, rdwr, unix.MAP_SHARED)
		copy(m, "synced")
		t.ok("msync", unix.Msync(m, unix.MS_SYNC))
		t.eq("read", t.readAt(f, 6, 0), "synced")
	}},
	{"mmap/stores survive munmap without msync", anyone, func(t *T) {
		f := t.file("f", strings.Repeat("x", 1<<20))
		fd := t.open(f, unix.O_RDWR, 0)
		m, err := unix.Mmap(fd, 0, 1<<20, rdwr, unix.MAP_SHARED)
		t.ok("mmap", err)
		for i := 0; i < len(m); i += 4096 {
			m[i] = 'Y'
		}
		t.ok("munmap", unix.Munmap(m))
		t.ok("fsync", unix.Fsync(fd))
		got, err := os.ReadFile(f)
		t.ok("read", err)
		t.eq("stored pages", bytes.Count(got, []byte("Y")), 256)
	}},
	{"mmap/stores move mtime by msync", anyone, func(t *T) {
		f := t.file("f", strings.Repeat("x", 4096))
		m := t.mmap(f, 4096, unix.O_RDWR, rdwr, unix.MAP_SHARED)
		moved, _ := t.stamped(f, "store", func() error {
			m[0] = 'y'
			return unix.Msync(m, unix.MS_SYNC)
		})
		t.eq("mtime moved", moved, true)
	}},
	{"mmap/private stores stay private", anyone, func(t *T) {
		f := t.file("f", "abcdef")
		m := t.mmap(f, 6, unix.O_RDONLY, rdwr, unix.MAP_PRIVATE)
		copy(m, "XYZ")
		t.content(f, "abcdef")
		t.eq("own view", string(m), "XYZdef")
	}},
	{"mmap/rights follow the descriptor", anyone, func(t *T) {
		f := t.file("f", "abcdef")
		_, err := unix.Mmap(t.open(f, unix.O_RDONLY, 0), 0, 6, rdwr, unix.MAP_SHARED)
		t.is("write to O_RDONLY", err, unix.EACCES)
		_, err = unix.Mmap(t.open(f, unix.O_WRONLY, 0), 0, 6, unix.PROT_READ, unix.MAP_SHARED)
		t.is("O_WRONLY", err, unix.EACCES)
		_, err = unix.Mmap(t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0), 0, 6, unix.PROT_READ, unix.MAP_SHARED)
		t.is("directory", err, unix.ENODEV)
	}},
	{"mmap/the tail of the last page is zero after a truncate", anyone, func(t *T) {
		f := t.file("f", strings.Repeat("x", 6000))
		m := t.mmap(f, 8192, unix.O_RDWR, rdwr, unix.MAP_SHARED)
		t.eq("before", m[5999], byte('x'))
		t.ok("truncate", unix.Truncate(f, 5000))
		t.ok("truncate", unix.Truncate(f, 8192))
		t.eq("kept", m[4999], byte('x'))
		t.eq("cut", string(m[5000:6000]), zeros(1000))
	}},
	{"mmap/survives unlink", anyone, func(t *T) {
		f := t.file("f", strings.Repeat("x", 8192))
		m := t.mmap(f, 8192, unix.O_RDWR, rdwr, unix.MAP_SHARED)
		t.ok("unlink", unix.Unlink(f))
		copy(m[4096:], "still here")
		t.ok("msync", unix.Msync(m, unix.MS_SYNC))
		t.eq("mapping", string(m[4096:4106]), "still here")
		t.eq("first page", string(m[:3]), "xxx")
	}},
	{"mmap/grows by write into a mapped page", anyone, func(t *T) {
		f := t.file("f", "abc")
		m := t.mmap(f, 4096, unix.O_RDWR, rdwr, unix.MAP_SHARED)
		fd := t.open(f, unix.O_WRONLY|unix.O_APPEND, 0)
		t.write(fd, "def")
		t.eq("mapping", string(m[:7]), "abcdef\x00")
	}},
}

// readAt reads through a new open.
func (t *T) readAt(path string, n int, off int64) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	t.ok("open", err)
	defer unix.Close(fd)
	return t.pread(fd, n, off)
}
