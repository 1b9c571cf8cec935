package posix

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

var openCases = []Case{
	{"open/missing name is ENOENT", anyone, func(t *T) {
		t.is("file", t.try(t.p("none"), unix.O_RDONLY), unix.ENOENT)
		t.is("directory", t.try(t.p("none", "x"), unix.O_RDWR|unix.O_CREAT), unix.ENOENT)
		t.is("empty path", t.try("", unix.O_RDONLY), unix.ENOENT)
	}},
	{"open/file in the middle of a path is ENOTDIR", anyone, func(t *T) {
		f := t.file("f", "x")
		t.is("read", t.try(f+"/x", unix.O_RDONLY), unix.ENOTDIR)
		t.is("create", t.try(f+"/x", unix.O_RDWR|unix.O_CREAT), unix.ENOTDIR)
		t.is("O_DIRECTORY", t.try(f, unix.O_RDONLY|unix.O_DIRECTORY), unix.ENOTDIR)
		t.is("trailing slash", t.try(f+"/", unix.O_RDONLY), unix.ENOTDIR)
	}},
	{"open/directory for writing is EISDIR", anyone, func(t *T) {
		d := t.dir("d")
		t.is("O_WRONLY", t.try(d, unix.O_WRONLY), unix.EISDIR)
		t.is("O_RDWR", t.try(d, unix.O_RDWR), unix.EISDIR)
		t.is("O_TRUNC", t.try(d, unix.O_RDONLY|unix.O_TRUNC), unix.EISDIR)
		t.is("O_CREAT", t.try(d, unix.O_RDONLY|unix.O_CREAT), unix.EISDIR)
		t.is("O_CREAT of name/", t.try(t.p("new")+"/", unix.O_RDWR|unix.O_CREAT), unix.EISDIR)
		t.is("O_RDONLY", t.try(d, unix.O_RDONLY|unix.O_DIRECTORY), 0)
	}},
	{"open/reading a directory as a file is EISDIR", anyone, func(t *T) {
		fd := t.open(t.dir("d"), unix.O_RDONLY, 0)
		_, err := unix.Read(fd, make([]byte, 10))
		t.is("read", err, unix.EISDIR)
	}},
	{"open/O_NOFOLLOW concerns the last name only", anyone, func(t *T) {
		t.dir("d")
		t.file("d/f", "x")
		t.ok("symlink", unix.Symlink("d", t.p("ld")))
		t.ok("symlink", unix.Symlink("d/f", t.p("lf")))
		t.is("link to file", t.try(t.p("lf"), unix.O_RDONLY|unix.O_NOFOLLOW), unix.ELOOP)
		t.is("link to directory", t.try(t.p("ld"), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY), unix.ENOTDIR)
		t.is("through a link", t.try(t.p("ld", "f"), unix.O_RDONLY|unix.O_NOFOLLOW), 0)
	}},
	{"open/loop of links is ELOOP", anyone, func(t *T) {
		t.ok("symlink", unix.Symlink("b", t.p("a")))
		t.ok("symlink", unix.Symlink("a", t.p("b")))
		t.is("open", t.try(t.p("a"), unix.O_RDONLY), unix.ELOOP)
		t.is("through", t.try(t.p("a", "x"), unix.O_RDONLY), unix.ELOOP)
		t.is("create", t.try(t.p("a"), unix.O_RDWR|unix.O_CREAT), unix.ELOOP)
	}},
	{"open/O_EXCL refuses every existing name", anyone, func(t *T) {
		t.file("f", "kept")
		t.ok("symlink", unix.Symlink("nowhere", t.p("l")))
		const excl = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL
		t.is("file", t.try(t.p("f"), excl), unix.EEXIST)
		t.is("with O_TRUNC", t.try(t.p("f"), excl|unix.O_TRUNC), unix.EEXIST)
		t.is("dangling link", t.try(t.p("l"), excl), unix.EEXIST)
		t.is("directory", t.try(t.dir("d"), excl), unix.EEXIST)
		t.content(t.p("f"), "kept")
		t.gone(t.p("nowhere"))
	}},
	{"open/O_CREAT follows a dangling link", anyone, func(t *T) {
		t.ok("symlink", unix.Symlink("target", t.p("l")))
		t.is("open", t.try(t.p("l"), unix.O_RDWR|unix.O_CREAT), 0)
		t.eq("kind", t.stat(t.p("target")).Mode&unix.S_IFMT, uint32(unix.S_IFREG))
	}},
	{"open/O_TRUNC empties the file, in read-only opens too", anyone, func(t *T) {
		for _, flags := range []int{unix.O_WRONLY, unix.O_RDWR, unix.O_RDONLY} {
			f := t.file("f", strings.Repeat("x", 10000))
			t.is("open", t.try(f, flags|unix.O_TRUNC), 0)
			t.eq("size", t.stat(f).Size, int64(0))
			t.content(f, "")
		}
	}},
	{"open/access mode rules what a descriptor may do", anyone, func(t *T) {
		f := t.file("f", "abc")
		_, err := unix.Write(t.open(f, unix.O_RDONLY, 0), []byte("x"))
		t.is("write to O_RDONLY", err, unix.EBADF)
		_, err = unix.Read(t.open(f, unix.O_WRONLY, 0), make([]byte, 1))
		t.is("read from O_WRONLY", err, unix.EBADF)
		path := t.open(f, unix.O_PATH, 0)
		_, err = unix.Read(path, make([]byte, 1))
		t.is("read from O_PATH", err, unix.EBADF)
		t.eq("size by O_PATH", t.fstat(path).Size, int64(3))
		t.is("ftruncate of O_RDONLY", unix.Ftruncate(t.open(f, unix.O_RDONLY, 0), 0), unix.EINVAL)
	}},
	{"open/permission is asked at open only", anyone, func(t *T) {
		t.user(func() {
			f := t.file("f", "abc")
			fd := t.open(f, unix.O_RDWR, 0)
			t.ok("chmod", unix.Chmod(f, 0))
			t.is("open", t.try(f, unix.O_RDONLY), unix.EACCES)
			t.write(fd, "xyz")
			t.eq("read", t.pread(fd, 3, 0), "xyz")
		})
	}},
	{"open/permission bits decide", anyone, func(t *T) {
		t.user(func() {
			f := t.file("f", "abc")
			for _, c := range []struct {
				mode  uint32
				flags int
				want  unix.Errno
			}{
				{0o400, unix.O_RDONLY, 0}, {0o400, unix.O_WRONLY, unix.EACCES}, {0o400, unix.O_RDWR, unix.EACCES},
				{0o200, unix.O_RDONLY, unix.EACCES}, {0o200, unix.O_WRONLY, 0}, {0o200, unix.O_RDONLY | unix.O_TRUNC, unix.EACCES},
				{0o400, unix.O_RDONLY | unix.O_TRUNC, unix.EACCES}, {0o077, unix.O_RDONLY, unix.EACCES}, {0o600, unix.O_RDWR, 0},
			} {
				t.ok("chmod", unix.Chmod(f, c.mode))
				t.is("open", t.try(f, c.flags), c.want)
			}
		})
	}},
	{"open/directory without x or w refuses", anyone, func(t *T) {
		t.user(func() {
			d := t.dir("d")
			t.file("d/f", "x")
			t.ok("chmod", unix.Chmod(d, 0o600))
			t.is("no x", t.try(t.p("d", "f"), unix.O_RDONLY), unix.EACCES)
			t.ok("chmod", unix.Chmod(d, 0o500))
			t.is("no w: create", t.try(t.p("d", "g"), unix.O_RDWR|unix.O_CREAT), unix.EACCES)
			t.is("no w: existing", t.try(t.p("d", "f"), unix.O_RDWR|unix.O_CREAT), 0)
			t.is("no w: unlink", unix.Unlink(t.p("d", "f")), unix.EACCES)
			t.ok("chmod", unix.Chmod(d, 0o300))
			_, err := os.ReadDir(d)
			t.is("no r: list", err, unix.EACCES)
			t.is("no r: open by name", t.try(t.p("d", "f"), unix.O_RDONLY), 0)
			t.ok("chmod", unix.Chmod(d, 0o700))
		})
	}},
	{"open/special files", anyone, func(t *T) {
		t.ok("mkfifo", unix.Mkfifo(t.p("fifo"), 0o644))
		t.is("fifo without reader", t.try(t.p("fifo"), unix.O_WRONLY|unix.O_NONBLOCK), unix.ENXIO)
		t.is("fifo to read", t.try(t.p("fifo"), unix.O_RDONLY|unix.O_NONBLOCK), 0)
		t.ok("socket", unix.Mknod(t.p("sock"), unix.S_IFSOCK|0o644, 0))
		t.is("socket", t.try(t.p("sock"), unix.O_RDONLY), unix.ENXIO)
	}},
	{"open/O_NOATIME is the owner's right", asRoot, func(t *T) {
		f := t.file("f", "x")
		t.is("root", t.try(f, unix.O_RDONLY|unix.O_NOATIME), 0)
		t.as(alice, alice, nil, func() {
			t.is("other", t.try(f, unix.O_RDONLY|unix.O_NOATIME), unix.EPERM)
			t.is("other without it", t.try(f, unix.O_RDONLY), 0)
		})
	}},
	{"open/O_CREAT with O_DIRECTORY is EINVAL and makes nothing", anyone, func(t *T) {
		t.isOne("open", t.try(t.p("x"), unix.O_RDWR|unix.O_CREAT|unix.O_DIRECTORY), unix.EINVAL)
		t.gone(t.p("x"))
	}},
	{"open/by magic link reaches the same file", anyone, func(t *T) {
		fd := t.open(t.file("f", "one"), unix.O_RDONLY, 0)
		t.ok("rename", unix.Rename(t.p("f"), t.p("g")))
		t.file("f", "two")
		t.content(procFd(fd), "one")
	}},
}
