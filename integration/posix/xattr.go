package posix

import (
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// xattr is the value of an attribute, or the errno.
func xattr(path, name string) (string, error) {
	buf := make([]byte, 1<<16)
	n, err := unix.Lgetxattr(path, name, buf)
	return string(buf[:max(n, 0)]), err
}

// xattrs lists the names of attributes that begin with prefix, sorted.
func (t *T) xattrs(path, prefix string) []string {
	buf := make([]byte, 1<<16)
	n, err := unix.Llistxattr(path, buf)
	t.ok("listxattr", err)
	var names []string
	for _, name := range strings.Split(string(buf[:n]), "\x00") {
		if name != "" && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

var xattrCases = []Case{
	{"xattr/set, get, list, remove", anyone, func(t *T) {
		for _, path := range []string{t.file("f", "x"), t.dir("d")} {
			t.ok("set", unix.Setxattr(path, "user.a", []byte("one"), 0))
			t.ok("set", unix.Setxattr(path, "user.b", []byte{0, 1, 255}, 0))
			t.ok("set", unix.Setxattr(path, "user.empty", nil, 0))
			got, err := xattr(path, "user.b")
			t.ok("get", err)
			t.eq("value", got, "\x00\x01\xff")
			got, err = xattr(path, "user.empty")
			t.ok("get", err)
			t.eq("empty value", got, "")
			t.eq("list", t.xattrs(path, "user."), []string{"user.a", "user.b", "user.empty"})
			t.ok("remove", unix.Removexattr(path, "user.a"))
			t.eq("list", t.xattrs(path, "user."), []string{"user.b", "user.empty"})
		}
	}},
	{"xattr/errors", anyone, func(t *T) {
		f := t.file("f", "x")
		_, err := xattr(f, "user.none")
		t.is("get missing", err, unix.ENODATA)
		t.is("remove missing", unix.Removexattr(f, "user.none"), unix.ENODATA)
		t.is("replace missing", unix.Setxattr(f, "user.a", []byte("x"), unix.XATTR_REPLACE), unix.ENODATA)
		t.is("create", unix.Setxattr(f, "user.a", []byte("x"), unix.XATTR_CREATE), 0)
		t.is("create existing", unix.Setxattr(f, "user.a", []byte("y"), unix.XATTR_CREATE), unix.EEXIST)
		t.is("replace", unix.Setxattr(f, "user.a", []byte("abc"), unix.XATTR_REPLACE), 0)
		_, err = unix.Getxattr(f, "user.a", make([]byte, 2))
		t.is("small buffer", err, unix.ERANGE)
		_, err = unix.Listxattr(f, make([]byte, 2))
		t.is("small list buffer", err, unix.ERANGE)
		t.is("no namespace", unix.Setxattr(f, "plain", []byte("x"), 0), unix.EOPNOTSUPP)
		t.is("long name", unix.Setxattr(f, "user."+strings.Repeat("n", 256), []byte("x"), 0), unix.ERANGE)
		t.is("huge value", unix.Setxattr(f, "user.h", make([]byte, 1<<16+1), 0), unix.E2BIG)
		_, err = xattr(t.p("none"), "user.a")
		t.is("missing file", err, unix.ENOENT)
	}},
	{"xattr/size is told before the value is read", anyone, func(t *T) {
		f := t.file("f", "x")
		value := strings.Repeat("v", 1000)
		t.ok("set", unix.Setxattr(f, "user.a", []byte(value), 0))
		n, err := unix.Getxattr(f, "user.a", nil)
		t.ok("get", err)
		t.eq("size", n, 1000)
		got, err := xattr(f, "user.a")
		t.ok("get", err)
		t.eq("value", got, value)
		n, err = unix.Listxattr(f, nil)
		t.ok("list", err)
		if n < len("user.a\x00") {
			t.errorf("size of the list: got %d", n)
		}
	}},
	{"xattr/user attributes belong to files and directories", anyone, func(t *T) {
		t.ok("symlink", unix.Symlink("x", t.p("l")))
		t.is("link", unix.Lsetxattr(t.p("l"), "user.a", []byte("x"), 0), unix.EPERM)
		t.ok("mkfifo", unix.Mkfifo(t.p("p"), 0o644))
		t.is("fifo", unix.Setxattr(t.p("p"), "user.a", []byte("x"), 0), unix.EPERM)
	}},
	{"xattr/by descriptor, and over rename and link", anyone, func(t *T) {
		f := t.file("f", "x")
		fd := t.open(f, unix.O_RDONLY, 0)
		t.ok("fsetxattr", unix.Fsetxattr(fd, "user.a", []byte("x"), 0))
		t.ok("rename", unix.Rename(f, t.p("g")))
		t.ok("link", unix.Link(t.p("g"), t.p("h")))
		got, err := xattr(t.p("h"), "user.a")
		t.ok("get", err)
		t.eq("value", got, "x")
		t.ok("fremovexattr", unix.Fremovexattr(fd, "user.a"))
		_, err = xattr(t.p("g"), "user.a")
		t.is("removed", err, unix.ENODATA)
	}},
	{"xattr/needs the right to read or write", anyone, func(t *T) {
		t.user(func() {
			f := t.file("f", "x")
			t.ok("set", unix.Setxattr(f, "user.a", []byte("x"), 0))
			t.ok("chmod", unix.Chmod(f, 0o444))
			t.is("set", unix.Setxattr(f, "user.a", []byte("y"), 0), unix.EACCES)
			t.is("remove", unix.Removexattr(f, "user.a"), unix.EACCES)
			t.ok("chmod", unix.Chmod(f, 0o200))
			_, err := xattr(f, "user.a")
			t.is("get", err, unix.EACCES)
		})
	}},
	{"xattr/trusted is root's", asRoot, func(t *T) {
		f := t.file("f", "x")
		t.ok("chmod", unix.Chmod(f, 0o666))
		t.ok("set", unix.Setxattr(f, "trusted.a", []byte("x"), 0))
		got, err := xattr(f, "trusted.a")
		t.ok("get", err)
		t.eq("value", got, "x")
		t.as(alice, alice, nil, func() {
			t.is("set", unix.Setxattr(f, "trusted.b", []byte("x"), 0), unix.EPERM)
			_, err := xattr(f, "trusted.a")
			t.is("get", err, unix.ENODATA)
		})
	}},
	{"xattr/on a link of root's", asRoot, func(t *T) {
		t.ok("symlink", unix.Symlink("x", t.p("l")))
		t.ok("lsetxattr", unix.Lsetxattr(t.p("l"), "trusted.a", []byte("v"), 0))
		got, err := xattr(t.p("l"), "trusted.a")
		t.ok("lgetxattr", err)
		t.eq("value", got, "v")
		t.eq("list", t.xattrs(t.p("l"), "trusted.a"), []string{"trusted.a"})
		t.ok("lremovexattr", unix.Lremovexattr(t.p("l"), "trusted.a"))
	}},
}
