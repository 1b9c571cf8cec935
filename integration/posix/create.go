package posix

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// procFd is the magic link of a descriptor of this thread group.
func procFd(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

var createCases = []Case{
	{"create/mode is what was asked less the umask", anyone, func(t *T) {
		for i, c := range []struct{ umask, ask, want uint32 }{
			{0o022, 0o666, 0o644}, {0o077, 0o777, 0o700}, {0, 0o777, 0o777}, {0o777, 0o777, 0}, {0o002, 0o4755, 0o4755}, {0o027, 0, 0},
		} {
			unix.Umask(int(c.umask))
			f := t.p(fmt.Sprint("f", i))
			t.open(f, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, c.ask)
			t.eq(fmt.Sprintf("mode %o umask %o", c.ask, c.umask), t.mode(f), perm(c.want))
		}
	}},
	{"create/umask rules mkdir, mknod, fifo too", anyone, func(t *T) {
		unix.Umask(0o027)
		t.ok("mkdir", unix.Mkdir(t.p("d"), 0o777))
		t.ok("mkfifo", unix.Mkfifo(t.p("p"), 0o666))
		t.ok("mknod", unix.Mknod(t.p("f"), unix.S_IFREG|0o666, 0))
		t.eq("mkdir", t.mode(t.p("d")), perm(0o750))
		t.eq("mkfifo", t.mode(t.p("p")), perm(0o640))
		t.eq("mknod", t.mode(t.p("f")), perm(0o640))
	}},
	{"create/mode without rights still gives the open descriptor", anyone, func(t *T) {
		t.user(func() {
			fd := t.open(t.p("f"), unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0)
			t.write(fd, "abc")
			t.eq("read", t.pread(fd, 3, 0), "abc")
			t.eq("mode", t.mode(t.p("f")), perm(0))
			t.is("open again", t.try(t.p("f"), unix.O_RDONLY), unix.EACCES)
		})
	}},
	{"create/O_CREAT leaves the mode of an existing file", anyone, func(t *T) {
		f := t.file("f", "abc")
		t.open(f, unix.O_RDWR|unix.O_CREAT, 0o777)
		t.eq("mode", t.mode(f), perm(0o644))
		t.content(f, "abc")
	}},
	{"create/new files belong to the caller", asRoot, func(t *T) {
		t.ok("chmod", unix.Chmod(t.Dir, 0o777))
		t.as(alice, staff, nil, func() {
			t.open(t.p("f"), unix.O_RDWR|unix.O_CREAT, 0o644)
			t.ok("mkdir", unix.Mkdir(t.p("d"), 0o755))
			t.ok("mkfifo", unix.Mkfifo(t.p("p"), 0o644))
			t.ok("symlink", unix.Symlink("x", t.p("l")))
		})
		for _, name := range []string{"f", "d", "p", "l"} {
			st := t.stat(t.p(name))
			t.eq("owner of "+name, [2]uint32{st.Uid, st.Gid}, [2]uint32{alice, staff})
		}
	}},
	{"create/set-group-id parent gives its group", asRoot, func(t *T) {
		t.ok("chown", unix.Chown(t.Dir, alice, staff))
		t.ok("chmod", unix.Chmod(t.Dir, 0o2777))
		t.as(bob, bob, nil, func() {
			t.open(t.p("f"), unix.O_RDWR|unix.O_CREAT, 0o644)
			t.ok("mkdir", unix.Mkdir(t.p("d"), 0o755))
			t.ok("symlink", unix.Symlink("x", t.p("l")))
		})
		for _, name := range []string{"f", "d", "l"} {
			st := t.stat(t.p(name))
			t.eq("owner of "+name, [2]uint32{st.Uid, st.Gid}, [2]uint32{bob, staff})
		}
		t.eq("file's mode", t.mode(t.p("f")), perm(0o644))
		t.eq("directory inherits the bit", t.mode(t.p("d")), perm(0o2755))
	}},
	{"create/set-group-id is dropped for a foreign group", asRoot, func(t *T) {
		t.ok("chown", unix.Chown(t.Dir, alice, staff))
		t.ok("chmod", unix.Chmod(t.Dir, 0o2777))
		t.as(bob, bob, nil, func() { t.open(t.p("no"), unix.O_RDWR|unix.O_CREAT, 0o2775) })
		t.as(bob, bob, []int{staff}, func() { t.open(t.p("yes"), unix.O_RDWR|unix.O_CREAT, 0o2775) })
		t.eq("not a member", t.mode(t.p("no")), perm(0o755))
		t.eq("member", t.mode(t.p("yes")), perm(0o2755))
	}},
	{"create/is seen by an open directory at once", anyone, func(t *T) {
		fd := t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		var st unix.Stat_t
		t.is("before", unix.Fstatat(fd, "f", &st, 0), unix.ENOENT)
		t.file("f", "x")
		t.is("after", unix.Fstatat(fd, "f", &st, 0), 0)
		t.ok("unlink", unix.Unlink(t.p("f")))
		t.is("removed", unix.Fstatat(fd, "f", &st, 0), unix.ENOENT)
	}},
	{"create/in a removed directory is ENOENT", anyone, func(t *T) {
		fd := t.open(t.dir("d"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
		t.ok("rmdir", unix.Rmdir(t.p("d")))
		_, err := unix.Openat(fd, "f", unix.O_RDWR|unix.O_CREAT, 0o644)
		t.is("open", err, unix.ENOENT)
		t.is("mkdir", unix.Mkdirat(fd, "f", 0o755), unix.ENOENT)
		t.is("symlink", unix.Symlinkat("x", fd, "f"), unix.ENOENT)
		t.is("mknod", unix.Mknodat(fd, "f", unix.S_IFREG|0o644, 0), unix.ENOENT)
	}},
	{"create/by many at once with O_EXCL one wins", anyone, func(t *T) {
		results := make(chan error)
		for range 16 {
			go func() { results <- t.try(t.p("f"), unix.O_RDWR|unix.O_CREAT|unix.O_EXCL) }()
		}
		won := 0
		for range 16 {
			if err := <-results; err == nil {
				won++
			} else {
				t.is("loser", err, unix.EEXIST)
			}
		}
		t.eq("winners", won, 1)
	}},
}

var tmpfileCases = []Case{
	{"tmpfile/has no name and no link", anyone, func(t *T) {
		fd := t.open(t.Dir, unix.O_RDWR|unix.O_TMPFILE, 0o640)
		t.eq("nlink", t.fstat(fd).Nlink, uint64(0))
		t.eq("mode", t.fmode(fd), perm(0o640))
		t.write(fd, "abc")
		t.eq("read", t.pread(fd, 9, 0), "abc")
		t.eq("names", t.names(t.Dir), []string(nil))
	}},
	{"tmpfile/can be given a name", anyone, func(t *T) {
		fd := t.open(t.Dir, unix.O_RDWR|unix.O_TMPFILE, 0o640)
		t.write(fd, "abc")
		t.ok("linkat", unix.Linkat(unix.AT_FDCWD, procFd(fd), unix.AT_FDCWD, t.p("f"), unix.AT_SYMLINK_FOLLOW))
		t.eq("nlink", t.fstat(fd).Nlink, uint64(1))
		t.eq("same file", t.stat(t.p("f")).Ino, t.fstat(fd).Ino)
		t.content(t.p("f"), "abc")
		t.write(fd, "def")
		t.content(t.p("f"), "abcdef")
	}},
	{"tmpfile/with O_EXCL never gets a name", anyone, func(t *T) {
		fd := t.open(t.Dir, unix.O_RDWR|unix.O_TMPFILE|unix.O_EXCL, 0o640)
		t.is("linkat", unix.Linkat(unix.AT_FDCWD, procFd(fd), unix.AT_FDCWD, t.p("f"), unix.AT_SYMLINK_FOLLOW), unix.ENOENT)
	}},
	{"tmpfile/must be writable", anyone, func(t *T) {
		_, err := unix.Open(t.Dir, unix.O_RDONLY|unix.O_TMPFILE, 0o640)
		t.is("O_RDONLY", err, unix.EINVAL)
		_, err = unix.Open(t.file("f", ""), unix.O_RDWR|unix.O_TMPFILE, 0o640)
		t.is("in a file", err, unix.ENOTDIR)
	}},
	{"tmpfile/umask and owner", asRoot, func(t *T) {
		t.ok("chmod", unix.Chmod(t.Dir, 0o777))
		t.as(alice, staff, nil, func() {
			unix.Umask(0o077)
			st := t.fstat(t.open(t.Dir, unix.O_RDWR|unix.O_TMPFILE, 0o666))
			t.eq("mode", perm(st.Mode&0o7777), perm(0o600))
			t.eq("owner", [2]uint32{st.Uid, st.Gid}, [2]uint32{alice, staff})
		})
	}},
}
