package cache

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// Each change of a name has happened when its call returns, whatever becomes of
// the process.
func TestNamesSurviveAKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unwaited, holding("a", "1", "d/e", "2"))
	w.walk("d/e")
	mode := uint32(0o600)
	for _, c := range []struct {
		name string
		do   func() error
		want string // all names
	}{
		{"create", func() error { o := w.create("f"); o.File.Release(); return nil }, "a d/ d/e f"},
		{"mkdir", func() error { w.mkdir("m"); return nil }, "a d/ d/e f m/"},
		{"symlink", func() error { _, err := w.v.Symlink(me, w.walk("m"), "s", "a"); return err }, "a d/ d/e f m/ m/s"},
		{"link", func() error { _, err := w.v.Link(me, w.walk("f"), w.walk("d"), "l"); return err }, "a d/ d/e d/l f m/ m/s"},
		{"mknod", func() error { _, err := w.v.Mknod(me, fs.RootIno, "p", syscall.S_IFIFO|0o644, 0); return err }, "a d/ d/e d/l f m/ m/s p"},
		{"rename", func() error { return w.rename("d", "m/d") }, "a f m/ m/d/ m/d/e m/d/l m/s p"},
		{"exchange", func() error { return w.exchange("a", "m/d") }, "a/ a/e a/l f m/ m/d m/s p"},
		{"rename over", func() error { return w.rename("f", "m/d") }, "a/ a/e a/l m/ m/d m/s p"},
		{"unlink", func() error { return w.unlink("a/e") }, "a/ a/l m/ m/d m/s p"},
		{"rmdir", func() error { w.unlink("a/l"); return w.v.Rmdir(me, fs.RootIno, "a") }, "m/ m/d m/s p"},
		{"chmod", func() error {
			_, err := w.v.SetAttr(me, w.walk("m/d"), nil, &fs.SetAttr{Mode: &mode})
			return err
		}, "m/ m/d m/s p"},
	} {
		w.ok(c.do())
		w.killed()
		w.check()
		assert.Equal(t, strings.Join(w.allNames(fs.RootIno, ""), " "), c.want, c.name)
	}
	a := w.attr("m/d")
	assert.Equal(t, a.Mode, syscall.S_IFREG|0o600, "mode")
	assert.Equal(t, a.Nlink, 1, "names")
}

// allNames lists the names below a directory.
func (w *world) allNames(dir fs.Ino, prefix string) (names []string) {
	w.Helper()
	d := assert.Of(w.v.OpenDir(me, dir)).OK(w)
	defer d.Release()
	for {
		e, more, err := d.Next(me)
		if w.ok(err); !more {
			slices.Sort(names)
			return names
		}
		switch {
		case e.Name == "." || e.Name == "..":
		case e.Mode == syscall.S_IFDIR:
			names = append(names, prefix+e.Name+"/")
			names = append(names, w.allNames(e.Ino, prefix+e.Name+"/")...)
		default:
			names = append(names, prefix+e.Name)
		}
	}
}

// A file without a name is nobody's at the backend; a link gives it there.
func TestTmpfile(t *testing.T) {
	w := newWorld(t)
	e, o, err := w.v.Tmpfile(me, fs.RootIno, syscall.O_RDWR, 0o666)
	w.ok(err)
	w.write(o, "hidden", 0)
	w.ok(o.File.Flush(me))
	w.backend()
	assert.True(t, w.orphan(e.Ino), "after a crash nobody would free it")
	w.ok(assert.ErrOf(w.v.Link(me, e.Ino, fs.RootIno, "f")))
	assert.False(t, w.orphan(e.Ino), "after a crash it would be freed, with a name")
	w.ok(w.shut(o))
	w.backend("f: hidden")
}

// orphan reports whether a start after a crash would free an inode.
func (w *world) orphan(ino fs.Ino) bool {
	locked := w.v.lock()
	defer locked.unlock()
	return locked.IsOrphan(uint64(ino))
}

// What was removed here takes no space, also while the backend still has it.
func TestRemovedContentIsFreed(t *testing.T) {
	w := newWorld(t, unwaited, holding("f", "hello"))
	w.get("f")
	ino := w.walk("f")
	w.ok(w.unlink("f"))
	w.v.Forget(ino, 100)
	n := w.inode(ino)
	assert.True(t, n.State == 0 && len(n.RemoteLinks) == 1, "content", n.State, len(n.RemoteLinks), "names at the backend")
	w.until(func() bool { // when the disk knows that the name is gone
		f, err := w.v.store.Open(uint64(ino))
		if err == nil {
			f.Release()
		}
		return err != nil
	})
	assert.False(t, w.orphan(ino), "it is still marked")
}

func TestErrnos(t *testing.T) {
	w := newWorld(t, holding("d/e", "1", "f", "2"))
	d, root := w.walk("d"), fs.RootIno
	_, _, excl := w.v.Create(me, root, "f", syscall.O_EXCL, 0o644)
	for _, c := range []struct {
		name string
		err  error
		want syscall.Errno
	}{
		{"mkdir over a file", assert.ErrOf(w.v.Mkdir(me, root, "f", 0o755)), syscall.EEXIST},
		{"mkdir in a file", assert.ErrOf(w.v.Mkdir(me, w.walk("f"), "x", 0o755)), syscall.ENOTDIR},
		{"name too long", assert.ErrOf(w.v.Mkdir(me, root, strings.Repeat("x", 256), 0o755)), syscall.ENAMETOOLONG},
		{"two names", assert.ErrOf(w.v.Mkdir(me, root, "a/b", 0o755)), syscall.EINVAL},
		{"link of a directory", assert.ErrOf(w.v.Link(me, d, root, "l")), syscall.EPERM},
		{"link over something", assert.ErrOf(w.v.Link(me, w.walk("f"), root, "d")), syscall.EEXIST},
		{"exclusive create", excl, syscall.EEXIST},
		{"open a directory", assert.ErrOf(w.v.Open(me, d, syscall.O_RDONLY)), syscall.EISDIR},
		{"readlink of a file", assert.ErrOf(w.v.Readlink(me, w.walk("f"))), syscall.EINVAL},
		{"list a file", assert.ErrOf(w.v.OpenDir(me, w.walk("f"))), syscall.ENOTDIR},
		{"unknown inode", assert.ErrOf(w.v.Attr(me, 1<<40, nil)), syscall.ESTALE},
		{"set what is no ACL", w.v.SetXattr(me, d, "system.posix_acl_access", nil, 0), syscall.EINVAL},
		{"get an ACL", assert.ErrOf(w.v.GetXattr(me, d, "system.posix_acl_access")), syscall.ENODATA},
		{"another name space", w.v.SetXattr(me, d, "os2.x", nil, 0), syscall.ENOTSUP},
		{"replace no attribute", w.v.SetXattr(me, d, "user.x", nil, unix.XATTR_REPLACE), syscall.ENODATA},
		{"remove no attribute", w.v.RemoveXattr(me, d, "user.x"), syscall.ENODATA},
		{"too much attribute", w.v.SetXattr(me, d, "user.x", make([]byte, 1<<20), 0), syscall.ENOSPC},
		{"unlink a directory", w.v.Unlink(me, root, "d"), syscall.EISDIR},
		{"unlink nothing", w.v.Unlink(me, root, "x"), syscall.ENOENT},
		{"rmdir of a file", w.v.Rmdir(me, root, "f"), syscall.ENOTDIR},
		{"rmdir of a full one", w.v.Rmdir(me, root, "d"), syscall.ENOTEMPTY},
		{"rename nothing", w.v.Rename(me, root, "x", root, "y", 0), syscall.ENOENT},
		{"rename a file over a directory", w.v.Rename(me, root, "f", root, "d", 0), syscall.EISDIR},
		{"rename a directory over a file", w.v.Rename(me, root, "d", root, "f", 0), syscall.ENOTDIR},
		{"rename below itself", w.v.Rename(me, root, "d", d, "x", 0), syscall.EINVAL},
		{"rename over the same", w.v.Rename(me, root, "f", root, "f", 0), 0},
		{"rename, no replace", w.v.Rename(me, root, "f", root, "d", unix.RENAME_NOREPLACE), syscall.EEXIST},
		{"exchange with nothing", w.v.Rename(me, root, "f", root, "x", unix.RENAME_EXCHANGE), syscall.ENOENT},
		{"exchange with what is below", w.v.Rename(me, d, "e", root, "d", unix.RENAME_EXCHANGE), syscall.EINVAL},
		{"exchange, no replace", w.v.Rename(me, root, "f", root, "x", 3), syscall.EINVAL},
		{"whiteout", w.v.Rename(me, root, "f", root, "x", unix.RENAME_WHITEOUT), syscall.EINVAL},
	} {
		assert.Equal(t, fs.Errno(c.err), c.want, c.name)
	}
	w.noProblems()
}

// A file that is being read when its name is removed, or given to another, is
// read to its end, although the backend has it no more.
func TestRemovedWhileRead(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", 3<<20/16)
	for _, c := range []struct {
		name    string
		do      func(w *world)
		backend []string
	}{
		{"unlinked", func(w *world) { w.ok(w.unlink("f")) }, []string{"g: other"}},
		{"replaced", func(w *world) { w.ok(w.rename("g", "f")) }, []string{"f: other"}},
		{"with its directory", func(w *world) {
			w.do("mkdir d", "mv f d/f", "rm d/f", "rmdir d")
		}, []string{"g: other"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, holding("f", content, "g", "other"))
			o := w.open("f", syscall.O_RDONLY)
			defer o.File.Release()
			c.do(w)
			w.settle()
			w.backend(c.backend...)
			buf := make([]byte, 4096)
			d := assert.Of(o.File.Read(me, buf, int64(len(content)-4096))).OK(w)
			assert.Equal(t, string(d.Bytes), content[len(content)-4096:], "other bytes")
		})
	}
}

// A directory that lost its name shows to who is still in it the size that ext4
// shows: none after rmdir, what it was after a rename over it.
func TestSizeOfADirectoryWithoutAName(t *testing.T) {
	for name, c := range map[string]struct {
		take func(w *scene) error
		size uint64
	}{
		"replaced": {func(w *scene) error { return w.rename("other", "d") }, 4096},
		"removed":  {func(w *scene) error { return w.v.Rmdir(me, fs.RootIno, "d") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newScene(t)
			w.do("mkdir d", "mkdir other")
			ino := w.walk("d")
			w.ok(c.take(w))
			a := assert.Of(w.v.Attr(me, ino, nil)).OK(w)
			assert.Equal(t, a.Nlink, 0, "links")
			assert.Equal(t, a.Size, c.size, "size")
			assert.Equal(t, a.Mode&syscall.S_IFMT, syscall.S_IFDIR, "type")
		})
	}
}

// What a pull has just put under a name is not removed or renamed for a kernel
// that takes it for what was there before: it is told to look again, and then it
// is done.
func TestNamesThatTheKernelDoesNotKnow(t *testing.T) {
	for name, do := range map[string]func(w *scene) error{
		"unlink":         func(w *scene) error { return w.v.Unlink(me, fs.RootIno, "f") },
		"rename":         func(w *scene) error { return w.v.Rename(me, fs.RootIno, "f", fs.RootIno, "new", 0) },
		"rename over it": func(w *scene) error { return w.v.Rename(me, fs.RootIno, "other", fs.RootIno, "f", 0) },
		"exchange": func(w *scene) error {
			return w.v.Rename(me, fs.RootIno, "other", fs.RootIno, "f", unix.RENAME_EXCHANGE)
		},
		"unlink after a look": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newScene(t, holding("f", "one", "other", "0"))
			assert.Must(t, w.get("f") == "one" && w.get("other") == "0", "not what was put there")
			w.tamper("f", "two")
			w.pull()
			if do == nil {
				w.walk("f")
				w.ok(w.v.Unlink(me, fs.RootIno, "f"))
				return
			}
			w.is(do(w), fs.ErrStale)
			w.ok(do(w))
		})
	}
}

// The stream of a directory that others removed after it was opened ends.
func TestListingOfWhatOthersRemoved(t *testing.T) {
	w := newScene(t, holding("d/f", "0", "g", "0"))
	dir := w.walk("d")
	o := assert.Of(w.v.OpenDir(me, dir)).OK(w)
	defer o.Release()
	for _, path := range []string{"d/f", "d"} {
		w.gonePath(path)
	}
	e, more, err := o.Next(me)
	w.ok(err)
	assert.False(t, more, "it has", e.Name)
}

// picky is a store that cannot have every name.
type picky struct{ *memory.Provider }

func (p picky) Capabilities() providers.Capabilities {
	c := p.Provider.Capabilities()
	c.AnyNames, c.Names = false, providers.NameLimits{UTF8: true, Ending: "%2F", Path: 40}
	return c
}

// A name that the backend cannot have is refused before anything is written, with
// the reason, by whatever would give it; one that stays here may be any.
func TestNamesThatTheBackendCannotHave(t *testing.T) {
	w := newWorld(t, func(w *world, _ *Options) { w.repo = picky{w.p} }, excluding)
	w.do("mkdir d", "put d/f text", "put x text", "mkdir out", "put out/x%2F text")
	dir, f := w.walk("d"), w.walk("d/f")
	long := strings.Repeat("n", 40)
	for _, name := range []string{"x%2F", "\xff", long} {
		_, _, created := w.v.Create(me, dir, name, syscall.O_WRONLY, 0o644)
		_, mkdir := w.v.Mkdir(me, dir, name, 0o755)
		_, symlink := w.v.Symlink(me, dir, name, "f")
		_, link := w.v.Link(me, f, dir, name)
		renamed := w.v.Rename(me, dir, "f", dir, name, 0)
		for what, err := range map[string]error{"create": created, "mkdir": mkdir, "symlink": symlink, "link": link, "rename": renamed} {
			want := fs.ErrName
			if name == long {
				want = syscall.ENAMETOOLONG
			}
			w.is(err, want)
			assert.True(t, len(fmt.Sprint(err)) >= 40, what, "of", name, "does not say why", err)
		}
	}
	w.is(w.rename("out/x%2F", "d/x%2F"), fs.ErrName)
	w.ok(w.put("d/x%2F%2F", "twice"))
	w.settle()
	w.backend("d/", "d/f: text", "d/x%2F%2F: twice", "x: text")
	w.noProblems()
}
