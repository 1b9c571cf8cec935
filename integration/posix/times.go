package posix

import (
	"os"

	"golang.org/x/sys/unix"
)

func (t *T) utimes(path string, a, m unix.Timespec) error {
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{a, m}, 0)
}

var timeCases = []Case{
	{"utimensat/sets nanoseconds, before 1970 and after 2038", anyone, func(t *T) {
		f := t.file("f", "x")
		for _, ts := range []unix.Timespec{
			{Sec: 1_700_000_000, Nsec: 123_456_789}, {Sec: 0, Nsec: 1}, {Sec: 1, Nsec: 999_999_999},
			{Sec: -1, Nsec: 500_000_001}, {Sec: -1_000_000_000}, {Sec: 1 << 31}, {Sec: 1<<33 + 5, Nsec: 7},
		} {
			t.ok("utimensat", t.utimes(f, unix.Timespec{Sec: ts.Sec, Nsec: 42}, ts))
			t.eq("mtime", t.stat(f).Mtim, ts)
			t.eq("atime", t.stat(f).Atim, unix.Timespec{Sec: ts.Sec, Nsec: 42})
		}
	}},
	{"utimensat/UTIME_OMIT and UTIME_NOW", anyone, func(t *T) {
		f := t.file("f", "x")
		old := unix.Timespec{Sec: 1000, Nsec: 5}
		t.ok("both", t.utimes(f, old, old))
		t.ok("atime alone", t.utimes(f, unix.Timespec{Sec: 7}, unix.Timespec{Nsec: unix.UTIME_OMIT}))
		t.eq("times", [2]unix.Timespec{t.stat(f).Atim, t.stat(f).Mtim}, [2]unix.Timespec{{Sec: 7}, old})
		now := coarse()
		t.ok("mtime now", t.utimes(f, unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Nsec: unix.UTIME_NOW}))
		st := t.stat(f)
		if got := st.Mtim.Nano(); got < now || got > now+10e9 {
			t.errorf("mtime: got %d, want now, %d", got, now)
		}
		t.eq("atime", t.stat(f).Atim, unix.Timespec{Sec: 7})
		before := t.stat(f)
		t.tick()
		t.ok("neither", t.utimes(f, unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Nsec: unix.UTIME_OMIT}))
		t.eq("ctime", t.stat(f).Ctim, before.Ctim)
	}},
	{"utimensat/moves ctime", anyone, func(t *T) {
		f := t.file("f", "x")
		before := t.stat(f).Ctim
		t.tick()
		t.ok("utimensat", t.utimes(f, unix.Timespec{Sec: 1}, unix.Timespec{Sec: 1}))
		t.newer("ctime", t.stat(f).Ctim, before)
	}},
	{"utimensat/errors", anyone, func(t *T) {
		f := t.file("f", "x")
		t.is("missing", t.utimes(t.p("none"), unix.Timespec{}, unix.Timespec{}), unix.ENOENT)
		t.is("nanoseconds", t.utimes(f, unix.Timespec{}, unix.Timespec{Nsec: 1_000_000_000}), unix.EINVAL)
		t.is("below a file", t.utimes(f+"/x", unix.Timespec{}, unix.Timespec{}), unix.ENOTDIR)
	}},
	{"utimensat/who may", asRoot, func(t *T) {
		f := t.file("f", "x")
		t.ok("chmod", unix.Chmod(f, 0o666))
		now := unix.Timespec{Nsec: unix.UTIME_NOW}
		t.as(alice, alice, nil, func() {
			t.is("writer: now", t.utimes(f, now, now), 0)
			t.is("writer: a time", t.utimes(f, unix.Timespec{Sec: 1}, unix.Timespec{Sec: 1}), unix.EPERM)
			t.is("writer: now and omit", t.utimes(f, now, unix.Timespec{Nsec: unix.UTIME_OMIT}), unix.EPERM)
		})
		t.ok("chmod", unix.Chmod(f, 0o644))
		t.as(alice, alice, nil, func() { t.is("reader: now", t.utimes(f, now, now), unix.EACCES) })
		t.ok("chown", unix.Chown(f, alice, alice))
		t.ok("chmod", unix.Chmod(f, 0o444))
		t.as(alice, alice, nil, func() {
			t.is("owner: a time", t.utimes(f, unix.Timespec{Sec: 1}, unix.Timespec{Sec: 1}), 0)
			t.is("owner: now", t.utimes(f, now, now), 0)
		})
	}},
	{"utimensat/on a directory and by descriptor", anyone, func(t *T) {
		d := t.dir("d")
		want := unix.Timespec{Sec: 12345, Nsec: 6789}
		t.ok("utimensat", t.utimes(d, want, want))
		t.eq("directory", t.stat(d).Mtim, want)
		fd := t.open(t.file("f", "x"), unix.O_RDONLY, 0)
		t.ok("utimensat", t.utimes(procFd(fd), want, want))
		t.eq("descriptor", t.fstat(fd).Mtim, want)
	}},
	{"utimensat/a set mtime survives close of a writer", anyone, func(t *T) {
		f := t.file("f", "x")
		fd, err := unix.Open(f, unix.O_RDWR|unix.O_CLOEXEC, 0)
		t.ok("open", err)
		t.write(fd, "abc")
		want := unix.Timespec{Sec: 1_000_000, Nsec: 1}
		t.ok("utimensat", t.utimes(f, want, want))
		t.ok("close", unix.Close(fd))
		t.eq("mtime", t.stat(f).Mtim, want)
		t.content(f, "abc")
	}},
}

// stamped runs an operation and says which of a path's stamps it moved.
func (t *T) stamped(path string, what string, op func() error) (mtime, ctime bool) {
	before := t.stat(path)
	t.tick()
	t.ok(what, op())
	after := t.stat(path)
	return after.Mtim != before.Mtim, after.Ctim != before.Ctim
}

var stampCases = []Case{
	{"stamps/of a file that changes", anyone, func(t *T) {
		f := t.file("f", "abcdef")
		fd := t.open(f, unix.O_RDWR, 0)
		for _, c := range []struct {
			name         string
			op           func() error
			mtime, ctime bool
		}{
			{"write", func() error { _, err := unix.Pwrite(fd, []byte("x"), 0); return err }, true, true},
			{"truncate shorter", func() error { return unix.Truncate(f, 3) }, true, true},
			{"ftruncate longer", func() error { return unix.Ftruncate(fd, 9) }, true, true},
			{"O_TRUNC", func() error { return t.try(f, unix.O_WRONLY|unix.O_TRUNC) }, true, true},
			{"write", func() error { _, err := unix.Pwrite(fd, []byte("xyz"), 0); return err }, true, true},
			{"chmod", func() error { return unix.Chmod(f, 0o600) }, false, true},
			{"link", func() error { return unix.Link(f, t.p("g")) }, false, true},
			{"setxattr", func() error { return unix.Setxattr(f, "user.a", []byte("b"), 0) }, false, true},
			{"removexattr", func() error { return unix.Removexattr(f, "user.a") }, false, true},
			{"open", func() error { return t.try(f, unix.O_RDWR) }, false, false},
			{"read", func() error { _, err := unix.Pread(fd, make([]byte, 3), 0); return err }, false, false},
			{"fsync", func() error { return unix.Fsync(fd) }, false, false},
			{"write nothing", func() error { _, err := unix.Pwrite(fd, nil, 0); return err }, false, false},
			{"fallocate", func() error { return unix.Fallocate(fd, 0, 0, 20000) }, true, true},
		} {
			m, c2 := t.stamped(f, c.name, c.op)
			t.eq(c.name+": mtime and ctime moved", [2]bool{m, c2}, [2]bool{c.mtime, c.ctime})
		}
	}},
	{"stamps/of a directory that changes", anyone, func(t *T) {
		d := t.dir("d")
		f := t.p("d", "f")
		for _, c := range []struct {
			name string
			op   func() error
			want bool
		}{
			{"create", func() error { return t.try(f, unix.O_RDWR|unix.O_CREAT) }, true},
			{"open existing with O_CREAT", func() error { return t.try(f, unix.O_RDWR|unix.O_CREAT) }, false},
			{"write to a file", func() error { return os.WriteFile(f, []byte("x"), 0o644) }, false},
			{"chmod of a file", func() error { return unix.Chmod(f, 0o600) }, false},
			{"link", func() error { return unix.Link(f, t.p("d", "g")) }, true},
			{"rename inside", func() error { return unix.Rename(f, t.p("d", "h")) }, true},
			{"rename out", func() error { return unix.Rename(t.p("d", "h"), t.p("h")) }, true},
			{"rename in", func() error { return unix.Rename(t.p("h"), t.p("d", "h")) }, true},
			{"mkdir", func() error { return unix.Mkdir(t.p("d", "e"), 0o755) }, true},
			{"rmdir", func() error { return unix.Rmdir(t.p("d", "e")) }, true},
			{"symlink", func() error { return unix.Symlink("x", t.p("d", "l")) }, true},
			{"mkfifo", func() error { return unix.Mkfifo(t.p("d", "p"), 0o644) }, true},
			{"unlink", func() error { return unix.Unlink(t.p("d", "g")) }, true},
			{"list", func() error { _, err := os.ReadDir(d); return err }, false},
		} {
			m, c2 := t.stamped(d, c.name, c.op)
			t.eq(c.name+": mtime and ctime moved", [2]bool{m, c2}, [2]bool{c.want, c.want})
		}
	}},
	{"stamps/a failed change moves nothing", anyone, func(t *T) {
		t.file("f", "x")
		t.dir("d")
		t.file("d/x", "x")
		m, c := t.stamped(t.Dir, "failing", func() error {
			unix.Mkdir(t.p("d"), 0o755)
			unix.Rmdir(t.p("d"))
			unix.Rename(t.p("f"), t.p("d"))
			unix.Unlink(t.p("none"))
			return nil
		})
		t.eq("mtime and ctime moved", [2]bool{m, c}, [2]bool{false, false})
	}},
	{"stamps/a new file is stamped now", anyone, func(t *T) {
		now := coarse()
		st := t.stat(t.file("f", "x"))
		for _, ts := range []unix.Timespec{st.Atim, st.Mtim, st.Ctim} {
			if ts.Nano() < now || ts.Nano() > now+10e9 {
				t.errorf("got %d, want now, %d", ts.Nano(), now)
			}
		}
	}},
	{"stamps/writing moves mtime while the file stays open", anyone, func(t *T) {
		f := t.file("f", "x")
		fd := t.open(f, unix.O_RDWR, 0)
		for range 3 {
			m, _ := t.stamped(f, "write", func() error { _, err := unix.Pwrite(fd, []byte("y"), 0); return err })
			t.eq("mtime moved", m, true)
		}
		last := t.stat(f).Mtim
		t.tick()
		t.eq("mtime by descriptor", t.fstat(fd).Mtim, last)
	}},
}
