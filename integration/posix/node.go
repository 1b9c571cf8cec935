package posix

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

var nodeCases = []Case{
	{"mknod/fifo carries bytes", anyone, func(t *T) {
		t.ok("mkfifo", unix.Mkfifo(t.p("p"), 0o600))
		t.eq("kind", t.stat(t.p("p")).Mode, uint32(unix.S_IFIFO|0o600))
		fd := t.open(t.p("p"), unix.O_RDWR|unix.O_NONBLOCK, 0)
		t.write(fd, "abc")
		buf := make([]byte, 10)
		n, err := unix.Read(fd, buf)
		t.ok("read", err)
		t.eq("bytes", string(buf[:n]), "abc")
		_, err = unix.Seek(fd, 0, unix.SEEK_SET)
		t.is("seek", err, unix.ESPIPE)
	}},
	{"mknod/socket answers", anyone, func(t *T) {
		t.ok("chdir", unix.Chdir(t.Dir))
		t.later(func() { unix.Chdir("/") })
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		t.ok("socket", err)
		t.hold(fd)
		t.ok("bind", unix.Bind(fd, &unix.SockaddrUnix{Name: "s"}))
		t.ok("listen", unix.Listen(fd, 1))
		t.eq("kind", t.stat(t.p("s")).Mode&unix.S_IFMT, uint32(unix.S_IFSOCK))
		c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		t.ok("socket", err)
		t.hold(c)
		t.ok("connect", unix.Connect(c, &unix.SockaddrUnix{Name: "s"}))
		t.is("bind again", unix.Bind(c, &unix.SockaddrUnix{Name: "s"}), unix.EADDRINUSE)
		_, err = net.Listen("unix", "s")
		t.isOne("listen on the name", err, unix.EADDRINUSE)
	}},
	{"mknod/devices are root's, with their number", asRoot, func(t *T) {
		dev := unix.Mkdev(1, 3)
		t.ok("mknod", unix.Mknod(t.p("c"), unix.S_IFCHR|0o600, int(dev)))
		t.ok("mknod", unix.Mknod(t.p("b"), unix.S_IFBLK|0o600, int(unix.Mkdev(7, 300))))
		t.eq("character device", t.stat(t.p("c")).Rdev, dev)
		t.eq("block device", t.stat(t.p("b")).Rdev, unix.Mkdev(7, 300))
		t.eq("kind", t.stat(t.p("b")).Mode&unix.S_IFMT, uint32(unix.S_IFBLK))
	}},
	{"mknod/devices are refused to others", asUser, func(t *T) {
		t.is("mknod", unix.Mknod(t.p("c"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))), unix.EPERM)
		t.gone(t.p("c"))
	}},
	{"mknod/errors", anyone, func(t *T) {
		f := t.file("f", "x")
		t.is("existing", unix.Mknod(f, unix.S_IFREG|0o600, 0), unix.EEXIST)
		t.is("no parent", unix.Mkfifo(t.p("none", "p"), 0o600), unix.ENOENT)
		t.is("below a file", unix.Mkfifo(f+"/p", 0o600), unix.ENOTDIR)
		t.isOne("directory", unix.Mknod(t.p("d"), unix.S_IFDIR|0o700, 0), unix.EPERM)
		t.is("regular", unix.Mknod(t.p("r"), unix.S_IFREG|0o600, 0), 0)
		t.content(t.p("r"), "")
	}},
	{"mknod/special files are renamed and removed as others", anyone, func(t *T) {
		t.ok("mkfifo", unix.Mkfifo(t.p("p"), 0o600))
		n := t.stat(t.p("p")).Ino
		t.ok("rename", unix.Rename(t.p("p"), t.p("q")))
		t.eq("number", t.stat(t.p("q")).Ino, n)
		t.ok("chmod", os.Chmod(t.p("q"), 0o640))
		t.eq("mode", t.stat(t.p("q")).Mode, uint32(unix.S_IFIFO|0o640))
		t.ok("unlink", unix.Unlink(t.p("q")))
		t.eq("names", t.names(t.Dir), []string(nil))
	}},
}
