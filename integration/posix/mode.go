package posix

import (
	"os"

	"golang.org/x/sys/unix"
)

var chmodCases = []Case{
	{"chmod/sets every bit that it may", anyone, func(t *T) {
		f, d := t.file("f", "x"), t.dir("d")
		for _, m := range []uint32{0, 0o777, 0o640, 0o1644, 0o4755, 0o2755, 0o6711} {
			t.ok("chmod", unix.Chmod(f, m))
			t.eq("file", t.mode(f), perm(m))
			t.ok("chmod", unix.Chmod(d, m|0o700))
			t.eq("directory", t.mode(d), perm(m|0o700))
		}
		t.eq("kind", t.stat(f).Mode&unix.S_IFMT, uint32(unix.S_IFREG))
	}},
	{"chmod/moves ctime only", anyone, func(t *T) {
		f := t.file("f", "x")
		before := t.stat(f)
		t.tick()
		t.ok("chmod", unix.Chmod(f, 0o600))
		t.newer("ctime", t.stat(f).Ctim, before.Ctim)
		t.eq("mtime", t.stat(f).Mtim, before.Mtim)
	}},
	{"chmod/through a descriptor and a link", anyone, func(t *T) {
		f := t.file("f", "x")
		t.ok("symlink", unix.Symlink("f", t.p("l")))
		t.ok("chmod", unix.Chmod(t.p("l"), 0o611))
		t.eq("followed", t.mode(f), perm(0o611))
		fd := t.open(f, unix.O_RDONLY, 0)
		t.ok("fchmod", unix.Fchmod(fd, 0o622))
		t.eq("by descriptor", t.mode(f), perm(0o622))
	}},
	{"chmod/of a link itself is not supported", anyone, func(t *T) {
		f := t.file("f", "x")
		t.ok("symlink", unix.Symlink("f", t.p("l")))
		t.is("fchmodat", unix.Fchmodat(unix.AT_FDCWD, t.p("l"), 0o600, unix.AT_SYMLINK_NOFOLLOW), unix.EOPNOTSUPP)
		t.eq("target", t.mode(f), perm(0o644))
	}},
	{"chmod/errors", anyone, func(t *T) {
		t.is("missing", unix.Chmod(t.p("none"), 0o600), unix.ENOENT)
		t.is("below a file", unix.Chmod(t.file("f", "x")+"/x", 0o600), unix.ENOTDIR)
	}},
	{"chmod/is the owner's right", asRoot, func(t *T) {
		f := t.file("f", "x")
		t.ok("chmod", unix.Chmod(f, 0o666))
		t.as(alice, alice, nil, func() { t.is("other", unix.Chmod(f, 0o600), unix.EPERM) })
		t.ok("chown", unix.Chown(f, alice, staff))
		t.as(alice, alice, nil, func() { t.is("owner", unix.Chmod(f, 0o600), 0) })
		t.eq("mode", t.mode(f), perm(0o600))
	}},
	{"chmod/drops set-group-id for a foreign group", asRoot, func(t *T) {
		f := t.file("f", "x")
		t.ok("chown", unix.Chown(f, alice, staff))
		t.as(alice, alice, nil, func() { t.ok("chmod", unix.Chmod(f, 0o2755)) })
		t.eq("not a member", t.mode(f), perm(0o755))
		t.as(alice, alice, []int{staff}, func() { t.ok("chmod", unix.Chmod(f, 0o2755)) })
		t.eq("member", t.mode(f), perm(0o2755))
	}},
}

var chownCases = []Case{
	{"chown/sets owner and group", asRoot, func(t *T) {
		for _, path := range []string{t.file("f", "x"), t.dir("d")} {
			before := t.stat(path)
			t.tick()
			t.ok("chown", unix.Chown(path, alice, staff))
			st := t.stat(path)
			t.eq("ids", [2]uint32{st.Uid, st.Gid}, [2]uint32{alice, staff})
			t.newer("ctime", st.Ctim, before.Ctim)
			t.ok("chown", unix.Chown(path, -1, bob))
			t.eq("group alone", [2]uint32{t.stat(path).Uid, t.stat(path).Gid}, [2]uint32{alice, bob})
			t.ok("chown", unix.Chown(path, bob, -1))
			t.eq("owner alone", [2]uint32{t.stat(path).Uid, t.stat(path).Gid}, [2]uint32{bob, bob})
		}
	}},
	{"chown/of a link is the link's own", asRoot, func(t *T) {
		f := t.file("f", "x")
		t.ok("symlink", unix.Symlink("f", t.p("l")))
		t.ok("lchown", unix.Lchown(t.p("l"), alice, alice))
		t.eq("link", t.stat(t.p("l")).Uid, uint32(alice))
		t.eq("target", t.stat(f).Uid, uint32(0))
		t.ok("chown", unix.Chown(t.p("l"), bob, bob))
		t.eq("target, followed", t.stat(f).Uid, uint32(bob))
	}},
	{"chown/by an O_PATH descriptor", asRoot, func(t *T) {
		fd := t.open(t.file("f", "x"), unix.O_PATH, 0)
		t.ok("rename", unix.Rename(t.p("f"), t.p("g")))
		t.ok("fchownat", unix.Fchownat(fd, "", alice, staff, unix.AT_EMPTY_PATH))
		t.eq("owner", t.stat(t.p("g")).Uid, uint32(alice))
	}},
	{"chown/an owner may give the file to own groups only", asRoot, func(t *T) {
		f := t.file("f", "x")
		t.ok("chown", unix.Chown(f, alice, alice))
		t.as(alice, alice, []int{staff}, func() {
			t.is("away", unix.Chown(f, bob, -1), unix.EPERM)
			t.is("foreign group", unix.Chown(f, -1, bob), unix.EPERM)
			t.is("own group", unix.Chown(f, -1, staff), 0)
		})
		t.as(bob, bob, []int{staff}, func() { t.is("other", unix.Chown(f, -1, staff), unix.EPERM) })
		t.eq("group", t.stat(f).Gid, uint32(staff))
	}},
	{"chown/clears set-id bits of a program, for root too", asRoot, func(t *T) {
		f := t.file("f", "x")
		t.ok("chmod", unix.Chmod(f, 0o6755))
		t.ok("chown", unix.Chown(f, alice, staff))
		t.eq("root", t.mode(f), perm(0o755))
		t.ok("chmod", unix.Chmod(f, 0o6755))
		t.as(alice, staff, nil, func() { t.ok("chown", unix.Chown(f, -1, staff)) })
		t.eq("owner", t.mode(f), perm(0o755))
	}},
	{"chown/leaves set-group-id of a file without group execute", asRoot, func(t *T) {
		f := t.file("f", "x")
		t.ok("chmod", unix.Chmod(f, 0o2745))
		t.ok("chown", unix.Chown(f, alice, -1))
		t.eq("mode", t.mode(f), perm(0o2745))
		d := t.dir("d")
		t.ok("chmod", unix.Chmod(d, 0o6755))
		t.ok("chown", unix.Chown(d, alice, -1))
		t.eq("directory keeps all", t.mode(d), perm(0o6755))
	}},
	{"chown/to itself is allowed to the owner", anyone, func(t *T) {
		f := t.file("f", "x")
		t.is("chown", unix.Chown(f, os.Geteuid(), os.Getegid()), 0)
		t.is("nothing", unix.Chown(f, -1, -1), 0)
	}},
	{"chown/is refused to an ordinary user", asUser, func(t *T) {
		t.is("chown", unix.Chown(t.file("f", "x"), 0, -1), unix.EPERM)
		t.is("missing", unix.Chown(t.p("none"), 0, -1), unix.ENOENT)
	}},
}

var stickyCases = []Case{
	{"sticky/others' files cannot be removed or renamed", asRoot, func(t *T) {
		d := t.dir("d")
		t.ok("chmod", unix.Chmod(d, 0o1777))
		f := t.file("d/f", "x")
		t.ok("chown", unix.Chown(f, alice, alice))
		t.as(bob, bob, nil, func() {
			t.is("unlink", unix.Unlink(f), unix.EPERM)
			t.is("rename", unix.Rename(f, t.p("d", "g")), unix.EPERM)
			t.file("d/b", "b")
			t.is("rename over", unix.Rename(t.p("d", "b"), f), unix.EPERM)
			t.is("own", unix.Rename(t.p("d", "b"), t.p("d", "c")), 0)
		})
		t.as(alice, alice, nil, func() { t.is("owner", unix.Unlink(f), 0) })
	}},
	{"sticky/the directory's owner may", asRoot, func(t *T) {
		d := t.dir("d")
		t.ok("chmod", unix.Chmod(d, 0o1777))
		t.ok("chown", unix.Chown(d, bob, bob))
		t.ok("chown", unix.Chown(t.file("d/f", "x"), alice, alice))
		t.as(bob, bob, nil, func() { t.is("unlink", unix.Unlink(t.p("d", "f")), 0) })
	}},
	{"sticky/rules directories too", asRoot, func(t *T) {
		t.ok("chmod", unix.Chmod(t.dir("d"), 0o1777))
		t.ok("chown", unix.Chown(t.dir("d/e"), alice, alice))
		t.as(bob, bob, nil, func() {
			t.is("rmdir", unix.Rmdir(t.p("d", "e")), unix.EPERM)
			t.is("rename", unix.Rename(t.p("d", "e"), t.p("d", "f")), unix.EPERM)
		})
		t.as(alice, alice, nil, func() { t.is("owner", unix.Rmdir(t.p("d", "e")), 0) })
	}},
}
