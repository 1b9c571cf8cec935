package posix

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// Tags of the entries of an ACL, as in its xattr.
const (
	aclUserObj  = 0x01
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclMask     = 0x10
	aclOther    = 0x20
)

type aclEntry struct {
	tag, perm uint16
	id        uint32
}

// acl is the value of system.posix_acl_access or system.posix_acl_default.
func acl(entries ...aclEntry) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range entries {
		id := e.id
		if e.tag != aclUser && e.tag != aclGroup {
			id = ^uint32(0)
		}
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.perm)
		b = binary.LittleEndian.AppendUint32(b, id)
	}
	return b
}

// aclFor grants one user perm beside owner rwx, group r-x and others nothing.
func aclFor(uid uint32, perm uint16) []byte {
	return acl(aclEntry{aclUserObj, 7, 0}, aclEntry{aclUser, perm, uid}, aclEntry{aclGroupObj, 5, 0},
		aclEntry{aclMask, 7, 0}, aclEntry{aclOther, 0, 0})
}

const (
	accessACL  = "system.posix_acl_access"
	defaultACL = "system.posix_acl_default"
)

var aclCases = []Case{
	{"acl/an entry grants and refuses", asRoot, func(t *T) {
		f := t.file("f", "abc")
		t.ok("set", unix.Setxattr(f, accessACL, aclFor(alice, 4), 0))
		t.as(alice, alice, nil, func() {
			t.is("read", t.try(f, unix.O_RDONLY), 0)
			t.is("write", t.try(f, unix.O_WRONLY), unix.EACCES)
		})
		t.as(bob, bob, nil, func() { t.is("other", t.try(f, unix.O_RDONLY), unix.EACCES) })
		t.ok("set", unix.Setxattr(f, accessACL, aclFor(bob, 6), 0))
		t.as(alice, alice, nil, func() { t.is("no more", t.try(f, unix.O_RDONLY), unix.EACCES) })
		t.as(bob, bob, nil, func() { t.is("now", t.try(f, unix.O_RDWR), 0) })
	}},
	{"acl/is read back as it was set", anyone, func(t *T) {
		f := t.file("f", "abc")
		want := aclFor(bob, 6)
		t.ok("set", unix.Setxattr(f, accessACL, want, 0))
		got, err := xattr(f, accessACL)
		t.ok("get", err)
		t.eq("acl", got, string(want))
		t.eq("mode shows the mask as group", t.mode(f), perm(0o770))
		t.ok("remove", unix.Removexattr(f, accessACL))
		_, err = xattr(f, accessACL)
		t.is("removed", err, unix.ENODATA)
	}},
	{"acl/chmod changes the mask", anyone, func(t *T) {
		f := t.file("f", "abc")
		t.ok("set", unix.Setxattr(f, accessACL, aclFor(bob, 6), 0))
		t.ok("chmod", unix.Chmod(f, 0o700))
		got, err := xattr(f, accessACL)
		t.ok("get", err)
		want := acl(aclEntry{aclUserObj, 7, 0}, aclEntry{aclUser, 6, bob}, aclEntry{aclGroupObj, 5, 0},
			aclEntry{aclMask, 0, 0}, aclEntry{aclOther, 0, 0})
		t.eq("acl", got, string(want))
	}},
	{"acl/a minimal one is only the mode", anyone, func(t *T) {
		f := t.file("f", "abc")
		t.ok("set", unix.Setxattr(f, accessACL, acl(aclEntry{aclUserObj, 6, 0}, aclEntry{aclGroupObj, 4, 0}, aclEntry{aclOther, 1, 0}), 0))
		t.eq("mode", t.mode(f), perm(0o641))
		_, err := xattr(f, accessACL)
		t.is("get", err, unix.ENODATA)
	}},
	{"acl/a default rules new files in place of the umask", anyone, func(t *T) {
		d := t.dir("d")
		t.ok("set", unix.Setxattr(d, defaultACL, aclFor(bob, 7), 0))
		unix.Umask(0o077)
		t.open(t.p("d", "f"), unix.O_RDWR|unix.O_CREAT, 0o666)
		t.ok("mkdir", unix.Mkdir(t.p("d", "e"), 0o777))
		t.ok("mkfifo", unix.Mkfifo(t.p("d", "p"), 0o666))
		t.eq("file's mode", t.mode(t.p("d", "f")), perm(0o660))
		t.eq("directory's mode", t.mode(t.p("d", "e")), perm(0o770))
		t.eq("fifo's mode", t.mode(t.p("d", "p")), perm(0o660))
		got, err := xattr(t.p("d", "e"), defaultACL)
		t.ok("get", err)
		t.eq("inherited default", got, string(aclFor(bob, 7)))
		got, err = xattr(t.p("d", "f"), accessACL)
		t.ok("get", err)
		t.eq("entries of the file", len(got), len(aclFor(bob, 7)))
	}},
	{"acl/a default rules O_TMPFILE too", anyone, func(t *T) {
		d := t.dir("d")
		t.ok("set", unix.Setxattr(d, defaultACL, aclFor(bob, 7), 0))
		unix.Umask(0o077)
		fd := t.open(d, unix.O_RDWR|unix.O_TMPFILE, 0o666)
		t.eq("mode", t.fmode(fd), perm(0o660))
	}},
	{"acl/errors", anyone, func(t *T) {
		f := t.file("f", "abc")
		t.is("default on a file", unix.Setxattr(f, defaultACL, aclFor(bob, 7), 0), unix.EACCES)
		t.is("malformed", unix.Setxattr(f, accessACL, []byte("nonsense"), 0), unix.EOPNOTSUPP)
		t.is("without owner", unix.Setxattr(f, accessACL, acl(aclEntry{aclOther, 4, 0}), 0), unix.EINVAL)
		_, err := xattr(f, accessACL)
		t.is("none", err, unix.ENODATA)
	}},
	{"acl/is the owner's to set", asRoot, func(t *T) {
		f := t.file("f", "abc")
		t.ok("chmod", os.Chmod(f, 0o666))
		t.as(alice, alice, nil, func() {
			t.is("set", unix.Setxattr(f, accessACL, aclFor(alice, 7), 0), unix.EPERM)
		})
	}},
}
