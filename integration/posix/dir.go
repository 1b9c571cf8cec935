package posix

import (
	"strings"

	"golang.org/x/sys/unix"
)

var dirCases = []Case{
	{"mkdir/errors", anyone, func(t *T) {
		f := t.file("f", "x")
		t.ok("symlink", unix.Symlink("none", t.p("l")))
		t.is("existing directory", unix.Mkdir(t.dir("d"), 0o755), unix.EEXIST)
		t.is("existing file", unix.Mkdir(f, 0o755), unix.EEXIST)
		t.is("dangling link", unix.Mkdir(t.p("l"), 0o755), unix.EEXIST)
		t.is("no parent", unix.Mkdir(t.p("x", "y"), 0o755), unix.ENOENT)
		t.is("below a file", unix.Mkdir(f+"/x", 0o755), unix.ENOTDIR)
		t.is("dot", unix.Mkdir(t.Dir+"/.", 0o755), unix.EEXIST)
		t.is("trailing slash", unix.Mkdir(t.p("new")+"/", 0o755), 0)
	}},
	{"rmdir/errors", anyone, func(t *T) {
		t.dir("d")
		t.file("d/f", "x")
		t.is("not empty", unix.Rmdir(t.p("d")), unix.ENOTEMPTY)
		t.is("missing", unix.Rmdir(t.p("none")), unix.ENOENT)
		t.is("dot", unix.Rmdir(t.p("d")+"/."), unix.EINVAL)
		t.isOne("dot dot", unix.Rmdir(t.p("d")+"/.."), unix.ENOTEMPTY)
		t.ok("unlink", unix.Unlink(t.p("d", "f")))
		t.is("emptied", unix.Rmdir(t.p("d")), 0)
		t.gone(t.p("d"))
	}},
	{"rmdir/through a symbolic link is ENOTDIR", anyone, func(t *T) {
		t.dir("d")
		t.ok("symlink", unix.Symlink("d", t.p("l")))
		t.is("rmdir", unix.Rmdir(t.p("l")), unix.ENOTDIR)
		t.is("rmdir with slash", unix.Rmdir(t.p("l")+"/"), unix.ENOTDIR)
	}},
	{"mkdir/counts links of the parent", anyone, func(t *T) {
		d := t.dir("d")
		t.eq("new", t.stat(d).Nlink, uint64(2))
		t.dir("d/a")
		t.dir("d/b")
		t.file("d/f", "")
		t.eq("two directories", t.stat(d).Nlink, uint64(4))
		t.ok("rmdir", unix.Rmdir(t.p("d", "a")))
		t.eq("one", t.stat(d).Nlink, uint64(3))
		t.ok("rename", unix.Rename(t.p("d", "b"), t.p("b")))
		t.eq("none", t.stat(d).Nlink, uint64(2))
	}},
	{"mkdir/set-user-id and sticky bits", anyone, func(t *T) {
		t.ok("mkdir", unix.Mkdir(t.p("d"), 0o1777))
		t.eq("mode", t.mode(t.p("d")), perm(0o1755))
	}},
	{"mkdir/by many at once one wins", anyone, func(t *T) {
		results := make(chan error)
		for range 16 {
			go func() { results <- unix.Mkdir(t.p("d"), 0o755) }()
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
	{"mkdir/deep trees", anyone, func(t *T) {
		fd := t.open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		const depth = 120 // a path of 1200 bytes, longer than a key of S3 may be
		path := ""
		for range depth {
			t.ok("mkdirat", unix.Mkdirat(fd, "directory", 0o755))
			next, err := unix.Openat(fd, "directory", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			t.ok("openat", err)
			t.hold(next)
			path += "/directory"
			fd = next
		}
		t.eq("number by path", t.stat(t.Dir+path).Ino, t.fstat(fd).Ino)
	}},
	{"dotdot/leads to the parent after a rename", anyone, func(t *T) {
		t.dir("a")
		t.dir("a/d")
		t.dir("b")
		fd := t.open(t.p("a", "d"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
		t.ok("rename", unix.Rename(t.p("a", "d"), t.p("b", "d")))
		var up unix.Stat_t
		t.ok("stat ..", unix.Fstatat(fd, "..", &up, 0))
		t.eq("parent", up.Ino, t.stat(t.p("b")).Ino)
		t.eq(".. in the listing", t.entry(fd, ".."), up.Ino)
	}},
}

var nameCases = []Case{
	{"name/255 bytes are allowed, 256 are not", anyone, func(t *T) {
		long := strings.Repeat("n", 255)
		f := t.file(long, "x")
		t.content(f, "x")
		t.ok("rename", unix.Rename(f, t.p(strings.Repeat("m", 255))))
		t.eq("listing", t.names(t.Dir), []string{strings.Repeat("m", 255)})
		tooLong := t.p(long + "n")
		t.is("open", t.try(tooLong, unix.O_RDWR|unix.O_CREAT), unix.ENAMETOOLONG)
		t.is("mkdir", unix.Mkdir(tooLong, 0o755), unix.ENAMETOOLONG)
		t.is("symlink", unix.Symlink("x", tooLong), unix.ENAMETOOLONG)
		t.is("link", unix.Link(t.p(strings.Repeat("m", 255)), tooLong), unix.ENAMETOOLONG)
		t.is("rename", unix.Rename(t.p(strings.Repeat("m", 255)), tooLong), unix.ENAMETOOLONG)
		t.is("mkfifo", unix.Mkfifo(tooLong, 0o644), unix.ENAMETOOLONG)
		t.is("unlink", unix.Unlink(tooLong), unix.ENAMETOOLONG)
		t.is("rmdir", unix.Rmdir(tooLong), unix.ENAMETOOLONG)
		t.is("stat", unix.Lstat(tooLong, &unix.Stat_t{}), unix.ENAMETOOLONG)
	}},
	{"name/path of 4096 bytes is ENAMETOOLONG", anyone, func(t *T) {
		path := t.Dir + strings.Repeat("/.", 2048)
		t.is("open", t.try(path[:4095-len(path)%2], unix.O_RDONLY), 0)
		t.is("open", t.try(path+"/././", unix.O_RDONLY), unix.ENAMETOOLONG)
	}},
	{"name/any byte but NUL and slash", anyone, func(t *T) {
		var want []string
		for b := 1; b < 256; b++ {
			if b != '/' {
				want = append(want, "x"+string([]byte{byte(b)}))
			}
		}
		for _, name := range want {
			t.file(name, name)
		}
		t.eq("names", t.names(t.Dir), want)
		for _, name := range want {
			t.content(t.p(name), name)
		}
	}},
	{"name/case, normal forms and dots are kept apart", anyone, func(t *T) {
		want := []string{"...", "..a", "A", "a", "a ", "a.", "e\u0301", "\u00e9"}
		for _, name := range want {
			t.file(name, name)
		}
		t.eq("names", t.names(t.Dir), want)
		for _, name := range want {
			t.content(t.p(name), name)
		}
	}},
}
