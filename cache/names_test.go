package cache

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
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
	a, err := w.v.Attr(me, w.walk("m/d"), nil)
	if w.ok(err); a.Mode != syscall.S_IFREG|0o600 || a.Nlink != 1 {
		t.Errorf("mode %o, %d names", a.Mode, a.Nlink)
	}
}

// allNames lists the names below a directory.
func (w *world) allNames(dir fs.Ino, prefix string) (names []string) {
	w.Helper()
	d, err := w.v.OpenDir(me, dir)
	w.ok(err)
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
	_, err = w.v.Link(me, e.Ino, fs.RootIno, "f")
	w.ok(err)
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
	if n := w.inode(ino); n.State != 0 || len(n.RemoteLinks) != 1 {
		t.Errorf("content %s, %d names at the backend", n.State, len(n.RemoteLinks))
	}
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
	_, mkdir := w.v.Mkdir(me, root, "f", 0o755)
	_, mkdirIn := w.v.Mkdir(me, w.walk("f"), "x", 0o755)
	_, long := w.v.Mkdir(me, root, strings.Repeat("x", 256), 0o755)
	_, slash := w.v.Mkdir(me, root, "a/b", 0o755)
	_, linkDir := w.v.Link(me, d, root, "l")
	_, linkOver := w.v.Link(me, w.walk("f"), root, "d")
	_, _, excl := w.v.Create(me, root, "f", syscall.O_EXCL, 0o644)
	_, openDir := w.v.Open(me, d, syscall.O_RDONLY)
	_, readlink := w.v.Readlink(me, w.walk("f"))
	_, list := w.v.OpenDir(me, w.walk("f"))
	_, unknown := w.v.Attr(me, 1<<40, nil)
	acl := w.v.SetXattr(me, d, "system.posix_acl_access", nil, 0)
	_, noACL := w.v.GetXattr(me, d, "system.posix_acl_access")
	for _, c := range []struct {
		name string
		err  error
		want syscall.Errno
	}{
		{"mkdir over a file", mkdir, syscall.EEXIST},
		{"mkdir in a file", mkdirIn, syscall.ENOTDIR},
		{"name too long", long, syscall.ENAMETOOLONG},
		{"two names", slash, syscall.EINVAL},
		{"link of a directory", linkDir, syscall.EPERM},
		{"link over something", linkOver, syscall.EEXIST},
		{"exclusive create", excl, syscall.EEXIST},
		{"open a directory", openDir, syscall.EISDIR},
		{"readlink of a file", readlink, syscall.EINVAL},
		{"list a file", list, syscall.ENOTDIR},
		{"unknown inode", unknown, syscall.ESTALE},
		{"set what is no ACL", acl, syscall.EINVAL},
		{"get an ACL", noACL, syscall.ENODATA},
		{"another name space", w.v.SetXattr(me, d, "os2.x", nil, 0), syscall.ENOTSUP},
		{"replace no attribute", w.v.SetXattr(me, d, "user.x", nil, unix.XATTR_REPLACE), syscall.ENODATA},
		{"remove no attribute", w.v.RemoveXattr(me, d, "user.x"), syscall.ENODATA},
		{"too much attribute", w.v.SetXattr(me, d, "user.x", make([]byte, maxXattrs), 0), syscall.ENOSPC},
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
			d, err := o.File.Read(me, buf, int64(len(content)-4096))
			if w.ok(err); string(d.Bytes) != content[len(content)-4096:] {
				t.Error("other bytes")
			}
		})
	}
}
