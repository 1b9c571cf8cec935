package posix

import (
	"encoding/binary"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

var statfsCases = []Case{
	{"statfs/figures make sense", anyone, func(t *T) {
		var st unix.Statfs_t
		t.ok("statfs", unix.Statfs(t.Dir, &st))
		if st.Bavail > st.Bfree || st.Bfree > st.Blocks || st.Blocks == 0 || st.Bsize <= 0 || st.Frsize <= 0 {
			t.errorf("got blocks %d, free %d, available %d of %d bytes", st.Blocks, st.Bfree, st.Bavail, st.Bsize)
		}
		t.eq("longest name", st.Namelen, int64(255))
		var fst unix.Statfs_t
		t.ok("fstatfs", unix.Fstatfs(t.open(t.file("f", "x"), unix.O_RDONLY, 0), &fst))
		t.eq("fstatfs", [2]uint64{fst.Blocks, uint64(fst.Bsize)}, [2]uint64{st.Blocks, uint64(st.Bsize)})
	}},
	{"stat/blocks are of 512 bytes and cover the data", anyone, func(t *T) {
		f := t.file("f", zeros(100_000))
		fd := t.open(f, unix.O_RDWR, 0)
		t.ok("fsync", unix.Fsync(fd))
		if got := t.stat(f).Blocks * 512; got < 100_000 || got > 200_000 {
			t.errorf("blocks: got %d bytes for 100000", got)
		}
	}},
	{"stat/device is the same all over, numbers differ", anyone, func(t *T) {
		a, b, d := t.stat(t.file("a", "")), t.stat(t.file("b", "")), t.stat(t.dir("d"))
		t.eq("device", [2]uint64{b.Dev, d.Dev}, [2]uint64{a.Dev, a.Dev})
		if a.Ino == b.Ino || a.Ino == d.Ino || a.Ino == 0 {
			t.errorf("numbers: %d %d %d", a.Ino, b.Ino, d.Ino)
		}
	}},
	{"statx/birth time is set or absent, never wrong", anyone, func(t *T) {
		f := t.file("f", "x")
		var stx unix.Statx_t
		t.ok("statx", unix.Statx(unix.AT_FDCWD, f, 0, unix.STATX_ALL, &stx))
		t.eq("size", stx.Size, uint64(1))
		if stx.Mask&unix.STATX_BTIME != 0 && stx.Btime.Sec > stx.Ctime.Sec {
			t.errorf("birth %d after change %d", stx.Btime.Sec, stx.Ctime.Sec)
		}
	}},
}

var syncCases = []Case{
	{"fsync/of file, directory and read-only descriptor", anyone, func(t *T) {
		fd := t.open(t.file("f", "x"), unix.O_RDWR, 0)
		t.write(fd, "abc")
		t.is("fsync", unix.Fsync(fd), 0)
		t.is("fdatasync", unix.Fdatasync(fd), 0)
		t.is("fsync of O_RDONLY", unix.Fsync(t.open(t.p("f"), unix.O_RDONLY, 0)), 0)
		dir := t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		t.is("fsync of directory", unix.Fsync(dir), 0)
		t.is("fdatasync of directory", unix.Fdatasync(dir), 0)
		t.is("syncfs", unix.Syncfs(dir), 0)
	}},
	{"sync_file_range and fadvise", anyone, func(t *T) {
		fd := t.open(t.file("f", zeros(10_000)), unix.O_RDWR, 0)
		t.is("sync_file_range", unix.SyncFileRange(fd, 0, 10_000, unix.SYNC_FILE_RANGE_WRITE), 0)
		t.is("fadvise", unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED), 0)
		t.eq("read", t.pread(fd, 20_000, 0), zeros(10_000))
	}},
}

var accessCases = []Case{
	{"faccessat/follows the mode", anyone, func(t *T) {
		t.user(func() {
			f := t.file("f", "x")
			for _, c := range []struct {
				mode, ask uint32
				want      unix.Errno
			}{
				{0o400, unix.R_OK, 0}, {0o400, unix.W_OK, unix.EACCES}, {0o400, unix.X_OK, unix.EACCES},
				{0o200, unix.W_OK, 0}, {0o200, unix.R_OK, unix.EACCES}, {0o100, unix.X_OK, 0}, {0, unix.F_OK, 0},
				{0o007, unix.R_OK, unix.EACCES},
			} {
				t.ok("chmod", unix.Chmod(f, c.mode))
				t.is("faccessat", unix.Faccessat(unix.AT_FDCWD, f, c.ask, unix.AT_EACCESS), c.want)
			}
			t.is("missing", unix.Faccessat(unix.AT_FDCWD, t.p("none"), unix.F_OK, 0), unix.ENOENT)
		})
	}},
	{"faccessat/group rights come from further groups", asRoot, func(t *T) {
		f := t.file("f", "x")
		t.ok("chown", unix.Chown(f, alice, staff))
		t.ok("chmod", unix.Chmod(f, 0o640))
		t.as(bob, bob, []int{staff}, func() { t.is("member", t.try(f, unix.O_RDONLY), 0) })
		t.as(bob, bob, nil, func() { t.is("not a member", t.try(f, unix.O_RDONLY), unix.EACCES) })
	}},
	{"faccessat/root needs one x bit to execute", asRoot, func(t *T) {
		f := t.file("f", "x")
		t.is("0644", unix.Faccessat(unix.AT_FDCWD, f, unix.X_OK, 0), unix.EACCES)
		t.ok("chmod", unix.Chmod(f, 0o001))
		t.is("0001", unix.Faccessat(unix.AT_FDCWD, f, unix.X_OK, 0), 0)
		t.ok("chmod", unix.Chmod(f, 0))
		t.is("read of 0", t.try(f, unix.O_RDWR), 0)
	}},
}

var execCases = []Case{
	{"exec/runs a program from the tree", anyone, func(t *T) {
		bin, err := os.ReadFile("/bin/true")
		t.ok("read /bin/true", err)
		t.ok("write", os.WriteFile(t.p("true"), bin, 0o755))
		t.ok("run", exec.Command(t.p("true")).Run())
		t.ok("chmod", unix.Chmod(t.p("true"), 0o644))
		t.isOne("without x", exec.Command(t.p("true")).Run(), unix.EACCES)
	}},
	{"exec/a running program is ETXTBSY", anyone, func(t *T) {
		bin, err := os.ReadFile("/bin/cat")
		t.ok("read /bin/cat", err)
		t.ok("write", os.WriteFile(t.p("cat"), bin, 0o755))
		cmd := exec.Command(t.p("cat"))
		in, err := cmd.StdinPipe()
		t.ok("pipe", err)
		t.ok("start", cmd.Start())
		t.is("open for writing", t.try(t.p("cat"), unix.O_WRONLY), unix.ETXTBSY)
		t.is("truncate", unix.Truncate(t.p("cat"), 0), unix.ETXTBSY)
		t.is("unlink", unix.Unlink(t.p("cat")), 0)
		t.ok("close", in.Close())
		t.ok("wait", cmd.Wait())
	}},
	{"exec/a file open for writing is not run", anyone, func(t *T) {
		bin, err := os.ReadFile("/bin/true")
		t.ok("read /bin/true", err)
		t.ok("write", os.WriteFile(t.p("true"), bin, 0o755))
		t.open(t.p("true"), unix.O_WRONLY, 0)
		t.isOne("run", exec.Command(t.p("true")).Run(), unix.ETXTBSY)
	}},
}

var noticeCases = []Case{
	{"inotify/tells of what happens through the same tree", anyone, func(t *T) {
		in, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		t.ok("inotify_init1", err)
		t.hold(in)
		_, err = unix.InotifyAddWatch(in, t.Dir, unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE)
		t.ok("inotify_add_watch", err)
		t.file("f", "x")
		t.ok("rename", unix.Rename(t.p("f"), t.p("g")))
		t.ok("unlink", unix.Unlink(t.p("g")))
		want := []notice{{unix.IN_CREATE, "f"}, {unix.IN_CLOSE_WRITE, "f"}, {unix.IN_MOVED_FROM, "f"}, {unix.IN_MOVED_TO, "g"}, {unix.IN_DELETE, "g"}}
		t.eq("events", t.notices(in, len(want)), want)
	}},
}

type notice struct {
	mask uint32
	name string
}

// notices reads n events, or as many as come in a minute.
func (t *T) notices(fd, n int) []notice {
	var got []notice
	for end := time.Now().Add(time.Minute); len(got) < n && time.Now().Before(end); {
		unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
		buf := make([]byte, 4096)
		k, err := unix.Read(fd, buf)
		if err != nil {
			continue
		}
		for buf = buf[:k]; len(buf) > 0; {
			size := binary.NativeEndian.Uint32(buf[12:])
			got = append(got, notice{binary.NativeEndian.Uint32(buf[4:]), unix.ByteSliceToString(buf[16 : 16+size])})
			buf = buf[16+size:]
		}
	}
	return got
}
