package posix

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

var linkCases = []Case{
	{"link/gives a second name", anyone, func(t *T) {
		t.dir("d")
		f := t.file("f", "abc")
		before := t.stat(f)
		t.tick()
		t.ok("link", unix.Link(f, t.p("d", "g")))
		a, b := t.stat(f), t.stat(t.p("d", "g"))
		t.eq("number", b.Ino, a.Ino)
		t.eq("links", [2]uint64{a.Nlink, b.Nlink}, [2]uint64{2, 2})
		t.newer("ctime", a.Ctim, before.Ctim)
		t.eq("mtime", a.Mtim, before.Mtim)
	}},
	{"link/both names see every change at once", anyone, func(t *T) {
		f, g := t.file("f", "abc"), t.p("g")
		t.ok("link", unix.Link(f, g))
		fd := t.open(f, unix.O_RDWR, 0)
		t.write(fd, "xyz123")
		t.content(g, "xyz123")
		t.ok("chmod", unix.Chmod(g, 0o600))
		t.eq("mode", t.mode(f), perm(0o600))
		t.ok("truncate", unix.Truncate(g, 2))
		t.eq("size", t.fstat(fd).Size, int64(2))
		t.ok("unlink", unix.Unlink(f))
		t.eq("links", t.stat(g).Nlink, uint64(1))
		t.content(g, "xy")
	}},
	{"link/errors", anyone, func(t *T) {
		f := t.file("f", "x")
		d := t.dir("d")
		t.is("existing", unix.Link(f, d), unix.EEXIST)
		t.is("itself", unix.Link(f, f), unix.EEXIST)
		t.is("missing", unix.Link(t.p("none"), t.p("g")), unix.ENOENT)
		t.is("no parent", unix.Link(f, t.p("none", "g")), unix.ENOENT)
		t.is("below a file", unix.Link(f, f+"/x"), unix.ENOTDIR)
		t.is("directory", unix.Link(d, t.p("g")), unix.EPERM)
	}},
	{"link/of a symbolic link is the link", anyone, func(t *T) {
		t.file("f", "x")
		t.ok("symlink", unix.Symlink("f", t.p("l")))
		t.ok("link", unix.Link(t.p("l"), t.p("m")))
		t.eq("number", t.stat(t.p("m")).Ino, t.stat(t.p("l")).Ino)
		t.eq("links", t.stat(t.p("l")).Nlink, uint64(2))
		t.ok("linkat", unix.Linkat(unix.AT_FDCWD, t.p("l"), unix.AT_FDCWD, t.p("n"), unix.AT_SYMLINK_FOLLOW))
		t.eq("followed", t.stat(t.p("n")).Ino, t.stat(t.p("f")).Ino)
	}},
	{"link/of an O_PATH descriptor", asRoot, func(t *T) {
		fd := t.open(t.file("f", "x"), unix.O_PATH, 0)
		t.ok("linkat", unix.Linkat(fd, "", unix.AT_FDCWD, t.p("g"), unix.AT_EMPTY_PATH))
		t.eq("number", t.stat(t.p("g")).Ino, t.stat(t.p("f")).Ino)
		t.eq("links", t.fstat(fd).Nlink, uint64(2))
	}},
	{"link/of a fifo", anyone, func(t *T) {
		t.ok("mkfifo", unix.Mkfifo(t.p("p"), 0o644))
		t.ok("link", unix.Link(t.p("p"), t.p("q")))
		r := t.open(t.p("p"), unix.O_RDONLY|unix.O_NONBLOCK, 0)
		t.write(t.open(t.p("q"), unix.O_WRONLY|unix.O_NONBLOCK, 0), "abc")
		buf := make([]byte, 10)
		n, err := unix.Read(r, buf)
		t.ok("read", err)
		t.eq("through the pipe", string(buf[:n]), "abc")
	}},
	{"link/many names of one file", anyone, func(t *T) {
		f := t.file("f", "x")
		for i := range 200 {
			t.ok("link", unix.Link(f, t.p("n"+strings.Repeat("i", i))))
		}
		t.eq("links", t.stat(f).Nlink, uint64(201))
		for i := range 200 {
			t.ok("unlink", unix.Unlink(t.p("n"+strings.Repeat("i", i))))
		}
		t.eq("links", t.stat(f).Nlink, uint64(1))
	}},
}

var symlinkCases = []Case{
	{"symlink/keeps its text as it is", anyone, func(t *T) {
		for _, target := range []string{"x", "/", "../..", "a//b/./c/", "no such", "\xff\xfe", strings.Repeat("t", 4095)} {
			t.ok("symlink", unix.Symlink(target, t.p("l")))
			got, err := os.Readlink(t.p("l"))
			t.ok("readlink", err)
			t.eq("target", got, target)
			t.eq("size", t.stat(t.p("l")).Size, int64(len(target)))
			t.ok("unlink", unix.Unlink(t.p("l")))
		}
	}},
	{"symlink/errors", anyone, func(t *T) {
		f := t.file("f", "x")
		t.is("empty", unix.Symlink("", t.p("l")), unix.ENOENT)
		t.is("existing", unix.Symlink("x", f), unix.EEXIST)
		t.is("too long", unix.Symlink(strings.Repeat("t", 4096), t.p("l")), unix.ENAMETOOLONG)
		t.is("below a file", unix.Symlink("x", f+"/l"), unix.ENOTDIR)
		_, err := unix.Readlink(f, make([]byte, 10))
		t.is("readlink of a file", err, unix.EINVAL)
		_, err = unix.Readlink(t.dir("d"), make([]byte, 10))
		t.is("readlink of a directory", err, unix.EINVAL)
	}},
	{"symlink/is followed in the middle of a path", anyone, func(t *T) {
		t.dir("d")
		t.file("d/f", "x")
		t.ok("symlink", unix.Symlink("d", t.p("rel")))
		t.ok("symlink", unix.Symlink(t.p("d"), t.p("abs")))
		t.ok("symlink", unix.Symlink("rel/../d", t.p("twice")))
		for _, name := range []string{"rel", "abs", "twice"} {
			t.content(t.p(name, "f"), "x")
		}
	}},
	{"symlink/mode is 0777 whatever the umask", anyone, func(t *T) {
		unix.Umask(0o077)
		t.ok("symlink", unix.Symlink("x", t.p("l")))
		t.eq("mode", t.stat(t.p("l")).Mode, uint32(unix.S_IFLNK|0o777))
	}},
	{"symlink/has its own owner and times", anyone, func(t *T) {
		f := t.file("f", "x")
		t.ok("symlink", unix.Symlink("f", t.p("l")))
		before := t.stat(f)
		ts := []unix.Timespec{{Sec: 100, Nsec: 1}, {Sec: 200, Nsec: 2}}
		t.ok("utimensat", unix.UtimesNanoAt(unix.AT_FDCWD, t.p("l"), ts, unix.AT_SYMLINK_NOFOLLOW))
		t.eq("mtime", t.stat(t.p("l")).Mtim, ts[1])
		t.eq("target's mtime", t.stat(f).Mtim, before.Mtim)
		t.ok("lchown", unix.Lchown(t.p("l"), os.Geteuid(), os.Getegid()))
	}},
	{"symlink/replaced by rename is followed anew", anyone, func(t *T) {
		t.file("a", "a")
		t.file("b", "b")
		t.ok("symlink", unix.Symlink("a", t.p("l")))
		t.content(t.p("l"), "a")
		t.ok("symlink", unix.Symlink("b", t.p("m")))
		t.ok("rename", unix.Rename(t.p("m"), t.p("l")))
		t.content(t.p("l"), "b")
	}},
}
