package posix

import (
	"golang.org/x/sys/unix"
)

// capNetRaw is a security.capability value (revision 2) that grants
// CAP_NET_RAW.
const capNetRaw = "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// setIDFile makes a set-user-id and set-group-id file that alice may write.
func (t *T) setIDFile() string {
	f := t.file("f", "abcdef")
	t.ok("chown", unix.Chown(f, alice, alice))
	t.ok("chmod", unix.Chmod(f, 0o6777))
	return f
}

var privCases = []Case{
	{"setuid/a write by an ordinary user clears it", asRoot, func(t *T) {
		f := t.setIDFile()
		t.as(bob, bob, nil, func() { t.write(t.open(f, unix.O_WRONLY, 0), "x") })
		t.eq("mode", t.mode(f), perm(0o777))
	}},
	{"setuid/a write by its owner clears it", anyone, func(t *T) {
		t.user(func() {
			f := t.file("f", "abc")
			t.ok("chmod", unix.Chmod(f, 0o6755))
			fd := t.open(f, unix.O_WRONLY, 0)
			t.eq("open alone does not", t.mode(f), perm(0o6755))
			t.write(fd, "x")
			t.eq("mode", t.mode(f), perm(0o755))
			t.eq("by descriptor", t.fmode(fd), perm(0o755))
			t.content(f, "xbc")
		})
	}},
	{"setuid/every further write clears it again", anyone, func(t *T) {
		t.user(func() {
			f := t.file("f", "abc")
			fd := t.open(f, unix.O_RDWR, 0)
			for range 3 {
				t.write(fd, "x")
				t.ok("chmod", unix.Chmod(f, 0o4755))
			}
			t.eq("set", t.mode(f), perm(0o4755))
			t.write(fd, "x")
			t.eq("cleared", t.mode(f), perm(0o755))
		})
	}},
	{"setuid/bits that come while another user writes go with his next write", asRoot, func(t *T) {
		f := t.setIDFile()
		t.ok("chmod", unix.Chmod(f, 0o777))
		var fd int
		t.as(bob, bob, nil, func() { fd = t.open(f, unix.O_WRONLY, 0); t.write(fd, "x") })
		t.ok("chmod", unix.Chmod(f, 0o6777))
		t.eq("set", t.mode(f), perm(0o6777))
		t.as(bob, bob, nil, func() { t.write(fd, "y") })
		t.eq("after write", t.mode(f), perm(0o777))
		t.content(f, "xycdef")
	}},
	{"setuid/a truncate clears it", asRoot, func(t *T) {
		f := t.setIDFile()
		t.as(bob, bob, nil, func() { t.ok("truncate", unix.Truncate(f, 1)) })
		t.eq("truncate", t.mode(f), perm(0o777))
		t.ok("chmod", unix.Chmod(f, 0o6777))
		t.as(bob, bob, nil, func() { t.open(f, unix.O_WRONLY|unix.O_TRUNC, 0) })
		t.eq("O_TRUNC", t.mode(f), perm(0o777))
		t.ok("chmod", unix.Chmod(f, 0o6777))
		t.as(bob, bob, nil, func() { t.ok("ftruncate", unix.Ftruncate(t.open(f, unix.O_WRONLY, 0), 5)) })
		t.eq("ftruncate", t.mode(f), perm(0o777))
	}},
	{"setuid/root's write keeps it", asRoot, func(t *T) {
		f := t.setIDFile()
		t.write(t.open(f, unix.O_WRONLY, 0), "x")
		t.eq("mode", t.mode(f), perm(0o6777))
	}},
	{"setgid/without group execute a write keeps it", asRoot, func(t *T) {
		f := t.setIDFile()
		t.ok("chmod", unix.Chmod(f, 0o2766))
		t.as(alice, alice, nil, func() { t.write(t.open(f, unix.O_WRONLY, 0), "x") })
		t.eq("mode", t.mode(f), perm(0o2766))
	}},
	{"setuid/fallocate clears it", asRoot, func(t *T) {
		f := t.setIDFile()
		t.as(bob, bob, nil, func() {
			t.ok("fallocate", unix.Fallocate(t.open(f, unix.O_WRONLY, 0), 0, 0, 8192))
		})
		t.eq("mode", t.mode(f), perm(0o777))
	}},
	{"setuid/copy_file_range clears it", asRoot, func(t *T) {
		f := t.setIDFile()
		src := t.file("src", "0123456789")
		t.as(bob, bob, nil, func() {
			n, err := unix.CopyFileRange(t.open(src, unix.O_RDONLY, 0), nil, t.open(f, unix.O_WRONLY, 0), nil, 10, 0)
			t.ok("copy_file_range", err)
			t.eq("copied", n, 10)
		})
		t.eq("mode", t.mode(f), perm(0o777))
	}},
	{"setuid/a store through a mapping keeps the bytes", asRoot, func(t *T) {
		f := t.setIDFile()
		t.as(alice, alice, nil, func() {
			m, err := unix.Mmap(t.open(f, unix.O_RDWR, 0), 0, 6, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			t.ok("mmap", err)
			m[0] = 'X'
			t.ok("msync", unix.Msync(m, unix.MS_SYNC))
			t.ok("munmap", unix.Munmap(m))
		})
		t.content(f, "Xbcdef")
	}},
	{"capabilities/a write of a descriptor that was open before removes them", asRoot, func(t *T) {
		f := t.setIDFile()
		t.ok("chmod", unix.Chmod(f, 0o777))
		fd := t.open(f, unix.O_WRONLY, 0)
		t.ok("setxattr", unix.Setxattr(f, "security.capability", []byte(capNetRaw), 0))
		t.write(fd, "x")
		_, err := unix.Getxattr(f, "security.capability", make([]byte, 64))
		t.is("after write", err, unix.ENODATA)
	}},
	{"capabilities/a write removes them", asRoot, func(t *T) {
		f := t.setIDFile()
		set := func() { t.ok("setxattr", unix.Setxattr(f, "security.capability", []byte(capNetRaw), 0)) }
		has := func() error { _, err := unix.Getxattr(f, "security.capability", make([]byte, 64)); return err }
		set()
		t.is("set", has(), 0)
		t.as(alice, alice, nil, func() { t.write(t.open(f, unix.O_WRONLY, 0), "x") })
		t.is("after write", has(), unix.ENODATA)
		set()
		t.ok("chown", unix.Chown(f, bob, -1))
		t.is("after chown", has(), unix.ENODATA)
		set()
		t.ok("truncate", unix.Truncate(f, 1))
		t.is("after truncate", has(), unix.ENODATA)
	}},
}
