package posix

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

var renameCases = []Case{
	{"rename/moves name, number and content", anyone, func(t *T) {
		t.dir("d")
		before := t.stat(t.file("f", "abc"))
		t.ok("rename", unix.Rename(t.p("f"), t.p("d", "g")))
		t.gone(t.p("f"))
		after := t.stat(t.p("d", "g"))
		t.eq("number", after.Ino, before.Ino)
		t.eq("mtime", after.Mtim, before.Mtim)
		t.eq("mode", after.Mode, before.Mode)
		t.content(t.p("d", "g"), "abc")
	}},
	{"rename/replaces a file", anyone, func(t *T) {
		t.file("f", "new")
		t.file("g", "old")
		t.ok("rename", unix.Rename(t.p("f"), t.p("g")))
		t.content(t.p("g"), "new")
		t.eq("names", t.names(t.Dir), []string{"g"})
	}},
	{"rename/what may replace what", anyone, func(t *T) {
		t.file("f", "x")
		t.dir("d")
		t.dir("empty")
		t.dir("full")
		t.file("full/x", "x")
		t.ok("symlink", unix.Symlink("f", t.p("l")))
		t.is("file over directory", unix.Rename(t.p("f"), t.p("empty")), unix.EISDIR)
		t.is("directory over file", unix.Rename(t.p("d"), t.p("f")), unix.ENOTDIR)
		t.is("directory over link", unix.Rename(t.p("d"), t.p("l")), unix.ENOTDIR)
		t.is("directory over full one", unix.Rename(t.p("d"), t.p("full")), unix.ENOTEMPTY)
		t.is("directory over empty one", unix.Rename(t.p("full"), t.p("empty")), 0)
		t.content(t.p("empty", "x"), "x")
		t.is("file over link", unix.Rename(t.p("f"), t.p("l")), 0)
		t.eq("kind", t.stat(t.p("l")).Mode&unix.S_IFMT, uint32(unix.S_IFREG))
	}},
	{"rename/errors", anyone, func(t *T) {
		f := t.file("f", "x")
		t.dir("d")
		t.dir("d/e")
		t.is("missing", unix.Rename(t.p("none"), t.p("g")), unix.ENOENT)
		t.is("no new parent", unix.Rename(f, t.p("none", "g")), unix.ENOENT)
		t.is("new parent is a file", unix.Rename(t.p("d"), f+"/x"), unix.ENOTDIR)
		t.is("into itself", unix.Rename(t.p("d"), t.p("d", "x")), unix.EINVAL)
		t.is("into its child", unix.Rename(t.p("d"), t.p("d", "e", "x")), unix.EINVAL)
		t.is("over its parent", unix.Rename(t.p("d", "e"), t.p("d")), unix.ENOTEMPTY)
		t.is("dot", unix.Rename(t.p("d")+"/.", t.p("x")), unix.EBUSY)
		t.is("dot dot", unix.Rename(t.p("d")+"/..", t.p("x")), unix.EBUSY)
		t.is("file to name/", unix.Rename(f, t.p("g")+"/"), unix.ENOTDIR)
		t.is("directory to name/", unix.Rename(t.p("d"), t.p("g")+"/"), 0)
	}},
	{"rename/between two links of one file does nothing", anyone, func(t *T) {
		f := t.file("f", "x")
		t.ok("link", unix.Link(f, t.p("g")))
		t.is("rename", unix.Rename(f, t.p("g")), 0)
		t.eq("names", t.names(t.Dir), []string{"f", "g"})
		t.eq("nlink", t.stat(f).Nlink, uint64(2))
		t.is("to itself", unix.Rename(f, f), 0)
		t.content(f, "x")
	}},
	{"rename/of a directory takes what is below", anyone, func(t *T) {
		t.dir("a")
		t.dir("a/b")
		t.file("a/b/f", "x")
		fd := t.open(t.p("a", "b", "f"), unix.O_RDWR, 0)
		t.ok("rename", unix.Rename(t.p("a"), t.p("z")))
		t.content(t.p("z", "b", "f"), "x")
		t.gone(t.p("a"))
		t.write(fd, "y")
		t.content(t.p("z", "b", "f"), "y")
		t.dir("a")
		t.gone(t.p("a", "b"))
	}},
	{"rename/of a link moves the link", anyone, func(t *T) {
		t.dir("d")
		t.file("f", "x")
		t.ok("symlink", unix.Symlink("f", t.p("l")))
		t.ok("rename", unix.Rename(t.p("l"), t.p("d", "l")))
		target, err := os.Readlink(t.p("d", "l"))
		t.ok("readlink", err)
		t.eq("target", target, "f")
		t.content(t.p("f"), "x")
	}},
	{"rename/stamps both directories and the file", anyone, func(t *T) {
		a, b := t.dir("a"), t.dir("b")
		t.file("a/f", "x")
		sa, sb, sf := t.stat(a), t.stat(b), t.stat(t.p("a", "f"))
		t.tick()
		t.ok("rename", unix.Rename(t.p("a", "f"), t.p("b", "f")))
		t.newer("from", t.stat(a).Mtim, sa.Mtim)
		t.newer("to", t.stat(b).Mtim, sb.Mtim)
		t.newer("from, ctime", t.stat(a).Ctim, sa.Ctim)
		t.newer("to, ctime", t.stat(b).Ctim, sb.Ctim)
		t.newer("file's ctime", t.stat(t.p("b", "f")).Ctim, sf.Ctim)
		t.eq("file's mtime", t.stat(t.p("b", "f")).Mtim, sf.Mtim)
	}},
	{"rename/lowers the links of what it replaces", anyone, func(t *T) {
		t.file("f", "new")
		t.ok("link", unix.Link(t.file("g", "old"), t.p("h")))
		old := t.stat(t.p("h"))
		t.tick()
		t.ok("rename", unix.Rename(t.p("f"), t.p("g")))
		t.eq("nlink", t.stat(t.p("h")).Nlink, uint64(1))
		t.newer("ctime", t.stat(t.p("h")).Ctim, old.Ctim)
		t.content(t.p("h"), "old")
	}},
	{"rename/needs rights in both directories", anyone, func(t *T) {
		t.user(func() {
			a, b := t.dir("a"), t.dir("b")
			t.file("a/f", "x")
			t.ok("chmod", unix.Chmod(a, 0o555))
			t.is("from", unix.Rename(t.p("a", "f"), t.p("b", "f")), unix.EACCES)
			t.ok("chmod", unix.Chmod(a, 0o755))
			t.ok("chmod", unix.Chmod(b, 0o555))
			t.is("to", unix.Rename(t.p("a", "f"), t.p("b", "f")), unix.EACCES)
			t.ok("chmod", unix.Chmod(b, 0o755))
			t.is("both", unix.Rename(t.p("a", "f"), t.p("b", "f")), 0)
		})
	}},
	{"rename/readers of a replaced name always find a whole file", anyone, func(t *T) {
		f := t.file("f", "0")
		done, ended := make(chan error, 1), make(chan struct{})
		go func() { done <- replaceMany(t.Dir, 100); close(ended) }()
		t.later(func() { <-ended })
		for running := true; running; {
			select {
			case err := <-done:
				t.ok("writer", err)
				running = false
			default:
			}
			data, err := os.ReadFile(f)
			t.ok("read", err)
			if len(data) == 0 {
				t.fatalf("read nothing")
			}
		}
	}},
	{"rename/swings of two directories keep the tree whole", anyone, func(t *T) {
		t.dir("a")
		t.dir("b")
		done := make(chan error)
		swing := func(from, to string) {
			for range 200 {
				if err := unix.Rename(t.p(from), t.p(to)); err != nil && err != unix.ENOENT && err != unix.EINVAL {
					done <- fmt.Errorf("%s to %s: %w", from, to, err)
					return
				}
			}
			done <- nil
		}
		t.dir("a/x")
		go swing("a/x", "b/x")
		go swing("b/x", "a/x")
		t.ok("one", <-done)
		t.ok("other", <-done)
		t.eq("x", len(t.names(t.p("a")))+len(t.names(t.p("b"))), 1)
	}},
}

// replaceMany replaces dir/f by rename, as editors do.
func replaceMany(dir string, n int) error {
	for i := range n {
		if err := os.WriteFile(dir+"/tmp", fmt.Appendf(nil, "version %d", i), 0o644); err != nil {
			return err
		}
		if err := unix.Rename(dir+"/tmp", dir+"/f"); err != nil {
			return err
		}
	}
	return nil
}

func rename2(from, to string, flags uint) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
}

var renameFlagCases = []Case{
	{"renameat2/NOREPLACE refuses an existing name", anyone, func(t *T) {
		f, g := t.file("f", "f"), t.file("g", "g")
		t.is("existing", rename2(f, g, unix.RENAME_NOREPLACE), unix.EEXIST)
		t.is("itself", rename2(f, f, unix.RENAME_NOREPLACE), unix.EEXIST)
		t.is("free", rename2(f, t.p("h"), unix.RENAME_NOREPLACE), 0)
		t.content(t.p("h"), "f")
		t.content(g, "g")
		t.is("gone", rename2(f, t.p("i"), unix.RENAME_NOREPLACE), unix.ENOENT)
	}},
	{"renameat2/EXCHANGE swaps two names", anyone, func(t *T) {
		f, g := t.file("f", "f"), t.file("g", "g")
		nf, ng := t.stat(f).Ino, t.stat(g).Ino
		t.is("exchange", rename2(f, g, unix.RENAME_EXCHANGE), 0)
		t.content(f, "g")
		t.content(g, "f")
		t.eq("numbers", [2]uint64{t.stat(f).Ino, t.stat(g).Ino}, [2]uint64{ng, nf})
		t.is("missing", rename2(f, t.p("none"), unix.RENAME_EXCHANGE), unix.ENOENT)
	}},
	{"renameat2/EXCHANGE of a directory and a file", anyone, func(t *T) {
		t.dir("a")
		t.dir("a/d")
		t.file("a/d/x", "x")
		t.dir("b")
		t.file("b/f", "f")
		t.is("exchange", rename2(t.p("a", "d"), t.p("b", "f"), unix.RENAME_EXCHANGE), 0)
		t.content(t.p("a", "d"), "f")
		t.content(t.p("b", "f", "x"), "x")
		t.eq("links of a", t.stat(t.p("a")).Nlink, uint64(2))
		t.eq("links of b", t.stat(t.p("b")).Nlink, uint64(3))
		t.eq("..", t.stat(t.p("b", "f", "..")).Ino, t.stat(t.p("b")).Ino)
	}},
	{"renameat2/EXCHANGE with an ancestor is EINVAL", anyone, func(t *T) {
		t.dir("a")
		t.dir("a/b")
		t.is("down", rename2(t.p("a"), t.p("a", "b"), unix.RENAME_EXCHANGE), unix.EINVAL)
		t.is("up", rename2(t.p("a", "b"), t.p("a"), unix.RENAME_EXCHANGE), unix.EINVAL)
	}},
	{"renameat2/flags that do not go together", anyone, func(t *T) {
		f := t.file("f", "f")
		t.is("both", rename2(f, t.p("g"), unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE), unix.EINVAL)
		t.is("unknown", rename2(f, t.p("g"), 1<<20), unix.EINVAL)
		t.content(f, "f")
	}},
	{"renameat2/open files follow an exchange", anyone, func(t *T) {
		f, g := t.file("f", "f"), t.file("g", "g")
		fd := t.open(f, unix.O_RDWR, 0)
		t.is("exchange", rename2(f, g, unix.RENAME_EXCHANGE), 0)
		t.write(fd, "F")
		t.content(g, "F")
		t.content(f, "g")
	}},
}
