package posix

import (
	"strings"

	"golang.org/x/sys/unix"
)

var unlinkCases = []Case{
	{"unlink/removes the name", anyone, func(t *T) {
		f := t.file("f", "x")
		t.is("unlink", unix.Unlink(f), 0)
		t.gone(f)
		t.is("again", unix.Unlink(f), unix.ENOENT)
		t.file("f", "new")
		t.content(f, "new")
	}},
	{"unlink/of a wrong thing", anyone, func(t *T) {
		t.is("directory", unix.Unlink(t.dir("d")), unix.EISDIR)
		t.is("below a file", unix.Unlink(t.file("f", "x")+"/x"), unix.ENOTDIR)
		t.is("name with slash", unix.Unlink(t.p("f")+"/"), unix.ENOTDIR)
		t.is("rmdir of a file", unix.Rmdir(t.p("f")), unix.ENOTDIR)
	}},
	{"unlink/removes a link, not its target", anyone, func(t *T) {
		f := t.file("f", "x")
		t.ok("symlink", unix.Symlink("f", t.p("l")))
		t.ok("unlink", unix.Unlink(t.p("l")))
		t.content(f, "x")
	}},
	{"unlink/stamps the directory and the other name", anyone, func(t *T) {
		f := t.file("f", "x")
		t.ok("link", unix.Link(f, t.p("g")))
		dir, file := t.stat(t.Dir), t.stat(f)
		t.tick()
		t.ok("unlink", unix.Unlink(f))
		t.newer("directory mtime", t.stat(t.Dir).Mtim, dir.Mtim)
		t.newer("directory ctime", t.stat(t.Dir).Ctim, dir.Ctim)
		t.newer("file ctime", t.stat(t.p("g")).Ctim, file.Ctim)
		t.eq("file mtime", t.stat(t.p("g")).Mtim, file.Mtim)
		t.eq("nlink", t.stat(t.p("g")).Nlink, uint64(1))
	}},
}

var unlinkedCases = []Case{
	{"unlinked/file lives on while open", anyone, func(t *T) {
		f := t.file("f", "abc")
		fd := t.open(f, unix.O_RDWR, 0)
		t.ok("unlink", unix.Unlink(f))
		t.eq("nlink", t.fstat(fd).Nlink, uint64(0))
		t.eq("read", t.pread(fd, 10, 0), "abc")
		t.write(fd, "xyz123")
		t.eq("read back", t.pread(fd, 10, 0), "xyz123")
		t.ok("ftruncate", unix.Ftruncate(fd, 2))
		t.eq("size", t.fstat(fd).Size, int64(2))
	}},
	{"unlinked/attributes can still be set", anyone, func(t *T) {
		fd := t.open(t.file("f", "abc"), unix.O_RDWR, 0)
		t.ok("unlink", unix.Unlink(t.p("f")))
		t.ok("fchmod", unix.Fchmod(fd, 0o600))
		t.eq("mode", t.fmode(fd), perm(0o600))
		t.ok("futimes", unix.UtimesNanoAt(unix.AT_FDCWD, procFd(fd), []unix.Timespec{{Sec: 5}, {Sec: 6}}, 0))
		t.eq("mtime", t.fstat(fd).Mtim, unix.Timespec{Sec: 6})
		t.ok("fsetxattr", unix.Fsetxattr(fd, "user.a", []byte("v"), 0))
		buf := make([]byte, 10)
		n, err := unix.Fgetxattr(fd, "user.a", buf)
		t.ok("fgetxattr", err)
		t.eq("xattr", string(buf[:n]), "v")
		t.ok("fsync", unix.Fsync(fd))
		t.ok("fallocate", unix.Fallocate(fd, 0, 0, 100))
		t.eq("size", t.fstat(fd).Size, int64(100))
	}},
	{"unlinked/can be opened again by its descriptor", anyone, func(t *T) {
		fd := t.open(t.file("f", "abc"), unix.O_RDONLY, 0)
		t.ok("unlink", unix.Unlink(t.p("f")))
		w := t.open(procFd(fd), unix.O_WRONLY, 0)
		t.write(w, "xyz")
		t.eq("read", t.pread(fd, 10, 0), "xyz")
		t.content(procFd(fd), "xyz")
	}},
	{"unlinked/new file of the name is another", anyone, func(t *T) {
		fd := t.open(t.file("f", "old"), unix.O_RDWR, 0)
		t.ok("unlink", unix.Unlink(t.p("f")))
		t.file("f", "new")
		t.eq("old", t.pread(fd, 10, 0), "old")
		t.content(t.p("f"), "new")
		if t.fstat(fd).Ino == t.stat(t.p("f")).Ino {
			t.errorf("both have inode number %d", t.fstat(fd).Ino)
		}
	}},
	{"unlinked/by an O_PATH descriptor", anyone, func(t *T) {
		fd := t.open(t.file("f", "abc"), unix.O_PATH, 0)
		t.ok("unlink", unix.Unlink(t.p("f")))
		t.eq("nlink", t.fstat(fd).Nlink, uint64(0))
		t.content(procFd(fd), "abc")
		t.ok("chmod", unix.Chmod(procFd(fd), 0o640))
		t.eq("mode", t.fmode(fd), perm(0o640))
	}},
	{"unlinked/by rename over it", anyone, func(t *T) {
		fd := t.open(t.file("f", "old"), unix.O_RDWR, 0)
		t.ok("rename", unix.Rename(t.file("g", "new"), t.p("f")))
		t.eq("old", t.pread(fd, 10, 0), "old")
		t.eq("nlink", t.fstat(fd).Nlink, uint64(0))
		t.write(fd, "OLD")
		t.content(t.p("f"), "new")
	}},
	{"unlinked/other link keeps it", anyone, func(t *T) {
		f := t.file("f", "abc")
		t.ok("link", unix.Link(f, t.p("g")))
		fd := t.open(f, unix.O_RDWR, 0)
		t.ok("unlink", unix.Unlink(f))
		t.write(fd, "xyz")
		t.eq("nlink", t.fstat(fd).Nlink, uint64(1))
		t.content(t.p("g"), "xyz")
		t.ok("unlink", unix.Unlink(t.p("g")))
		t.eq("nlink", t.fstat(fd).Nlink, uint64(0))
		t.eq("read", t.pread(fd, 10, 0), "xyz")
	}},
	{"unlinked/has no way back by linkat", anyone, func(t *T) {
		fd := t.open(t.file("f", "abc"), unix.O_RDWR, 0)
		t.ok("unlink", unix.Unlink(t.p("f")))
		t.is("linkat", unix.Linkat(unix.AT_FDCWD, procFd(fd), unix.AT_FDCWD, t.p("g"), unix.AT_SYMLINK_FOLLOW), unix.ENOENT)
	}},
	{"unlinked/working directory", anyone, func(t *T) {
		t.ok("chdir", unix.Chdir(t.dir("d")))
		t.ok("rmdir", unix.Rmdir(t.p("d")))
		var st unix.Stat_t
		t.is("stat .", unix.Stat(".", &st), 0)
		t.eq("nlink", st.Nlink, uint64(0))
		t.is("create", t.try("x", unix.O_RDWR|unix.O_CREAT), unix.ENOENT)
		t.is("stat x", unix.Stat("x", &st), unix.ENOENT)
		fd := t.open(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		n, err := unix.Getdents(fd, make([]byte, 4096))
		t.isOne("getdents", orNil(err), 0, unix.ENOENT)
		t.eq("entries", max(n, 0), 0)
		t.ok("chdir", unix.Chdir("/"))
	}},
	{"unlinked/many open at once stay apart", anyone, func(t *T) {
		fds := make([]int, 100)
		for i := range fds {
			fds[i] = t.open(t.file("f", strings.Repeat("x", i)), unix.O_RDONLY, 0)
			t.ok("unlink", unix.Unlink(t.p("f")))
		}
		for i, fd := range fds {
			t.eq("size", t.fstat(fd).Size, int64(i))
			t.eq("content", len(t.pread(fd, 200, 0)), i)
		}
	}},
}
