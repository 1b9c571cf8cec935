package cache

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
)

// Changes of names return while the backend does not answer, and arrive in
// order, before the bytes of a later close.
func TestNamesDoNotWait(t *testing.T) {
	var c calls
	w := newWorld(t, recording(&c), holding("a", "1", "b", "2", "d/e", "3"))
	w.walk("d/e")
	c.changes()
	gate := make(chan struct{})
	w.faults.Queue(providers.MethodMkdir, providertest.Fault{Gate: gate})
	w.mkdir("new")
	w.ok(w.rename("a", "new/a"))
	w.ok(w.unlink("b"))
	_, err := w.v.Symlink(me, w.walk("new"), "link", "a")
	w.ok(err)
	w.ok(w.unlink("d/e"))
	w.ok(w.v.Rmdir(me, fs.RootIno, "d"))
	mode := uint32(0o600)
	_, err = w.v.SetAttr(me, w.walk("new/a"), nil, &fs.SetAttr{Mode: &mode})
	w.ok(err)
	_, err = w.v.Link(me, w.walk("new/a"), fs.RootIno, "a2")
	w.ok(err)
	done := async(func() { w.ok(w.put("f", "bytes")) })
	if got := strings.Join(w.list(""), " "); got != ". .. new a2 f" && got != ". .. new a2" {
		t.Errorf("listed %q", got)
	}
	if got := c.changes(); got != "" || !open(done) {
		t.Errorf("the backend already did %q", got)
	}
	close(gate)
	<-done
	want := "mkdir new, move a, delete b, write new/link, delete d/e, delete d, setattr new/a, copy new/a, write f"
	if got := c.changes(); got != want {
		t.Errorf("the backend did\n%q, want\n%q", got, want)
	}
	w.backend("a2: 1", "f: bytes", "new/", "new/a: 1", "new/link -> a")
	w.noProblems()
}

// A close with new bytes goes after the names before it, however long they
// take.
func TestCloseWaitsForNames(t *testing.T) {
	w := newWorld(t, impatient)
	gate := make(chan struct{})
	w.faults.Queue(providers.MethodMkdir, providertest.Fault{Gate: gate})
	w.mkdir("d")
	w.is(w.put("f", "x"), fs.ErrUnavailable)
	d, err := w.v.OpenDir(me, fs.RootIno)
	w.ok(err)
	w.is(d.Fsync(me, false), fs.ErrUnavailable)
	w.backend()
	w.patient()
	close(gate)
	w.ok(w.v.Close())
	w.backend("d/", "f: x")
}

// What is fetched or listed under a new name waits until the backend has it
// there.
func TestReadWaitsForRename(t *testing.T) {
	w := newWorld(t, impatient, holding("a", "1", "d/e", "2"))
	file, dir := w.walk("a"), w.walk("d")
	gate := make(chan struct{})
	w.faults.Queue(providers.MethodMove, providertest.Fault{Gate: gate})
	w.ok(w.rename("a", "b"))
	w.ok(w.rename("d", "c"))
	_, err := w.v.Open(me, file, syscall.O_RDONLY)
	w.is(err, fs.ErrUnavailable)
	_, err = w.v.Lookup(me, dir, "e")
	w.is(err, fs.ErrUnavailable)
	w.patient()
	close(gate)
	w.settle()
	if a, b := w.get("b"), w.get("c/e"); a != "1" || b != "2" {
		t.Errorf("got %q and %q", a, b)
	}
}

// A directory whose backend has not even answered once keeps nobody from
// others.
func TestListingHoldsNothingElseUp(t *testing.T) {
	w := newWorld(t, holding("d/e", "1", "f", "2"))
	w.walk("f")
	gate, reached := make(chan struct{}), make(chan struct{})
	w.faults.Queue(providers.MethodList, providertest.Fault{Gate: gate, Reached: reached})
	done := async(func() { w.list("d") })
	<-reached
	w.ok(w.put("f", "3"))
	w.ok(w.rename("f", "g"))
	w.mkdir("h")
	w.settle() // the listing of d touches neither
	w.backend("d/", "d/e: 1", "g: 3", "h/")
	close(gate)
	<-done
}

func TestHardLinks(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			w := newWorld(t, holding("f", "one"))
			w.v.p = providers.Wrap(w.v.p, providers.WrapOptions{Hide: b.hide})
			lost := providers.MethodWrite
			if b.hide&providers.AbilityCopy == 0 {
				lost = providers.MethodCopy
			}
			w.faults.Queue(lost, providertest.Fault{After: providers.ErrUnavailable})
			e, err := w.v.Link(me, w.walk("f"), fs.RootIno, "g")
			w.ok(err)
			if e.Ino != w.walk("f") || e.Attr.Nlink != 2 {
				t.Errorf("the link is inode %d with %d names", e.Ino, e.Attr.Nlink)
			}
			w.settle()
			w.backend("f: one", "g: one")
			w.ok(w.put("g", "two"))
			w.backend("f: two", "g: two")
			w.ok(w.unlink("f"))
			w.ok(w.put("g", "three"))
			w.settle()
			w.backend("g: three")
			a, err := w.v.Attr(me, w.walk("g"), nil)
			if w.ok(err); a.Nlink != 1 {
				t.Errorf("%d names", a.Nlink)
			}
			w.noProblems()
		})
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
	_, err = w.v.Link(me, e.Ino, fs.RootIno, "f")
	w.ok(err)
	w.settle()
	w.backend("f: hidden")
	w.ok(w.shut(o))
}

// An unlinked file is usable to the last close and last reference; then
// nothing is left of it.
func TestUnlinkedFile(t *testing.T) {
	w := newWorld(t, holding("f", "hello"))
	o := w.open("f", syscall.O_RDWR)
	ino := w.walk("f") // the third reference: two lookups, one here
	w.ok(w.unlink("f"))
	w.write(o, "j", 0)
	if got := w.read(o); got != "jello" {
		t.Errorf("got %q", got)
	}
	a, err := w.v.Attr(me, ino, o.File)
	if w.ok(err); a.Nlink != 0 || a.Size != 5 {
		t.Errorf("attributes %+v", a)
	}
	w.ok(w.shut(o))
	w.settle()
	w.backend()
	w.v.Forget(ino, 1)
	if _, err := w.v.Attr(me, ino, nil); err != nil {
		t.Errorf("gone before the last reference: %v", err)
	}
	w.v.Forget(ino, 100)
	_, err = w.v.Attr(me, ino, nil)
	w.is(err, fs.ErrStale)
	w.ok(w.v.Close())
	if left, _ := filepath.Glob(filepath.Join(w.state, "data", "*", "*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// Numbers are never given twice.
func TestInodeNumbers(t *testing.T) {
	w := newWorld(t)
	seen := map[fs.Ino]bool{fs.RootIno: true}
	for range 20 {
		w.ok(w.put("f", "x"))
		ino := w.walk("f")
		if seen[ino] {
			t.Fatalf("number %d is given again", ino)
		}
		seen[ino] = true
		w.ok(w.unlink("f"))
		w.settle()
		w.v.Forget(ino, 100)
	}
}

// A name that stays is read exactly once, whatever comes and goes.
func TestReaddirUnderChange(t *testing.T) {
	w := newWorld(t)
	for i := range 40 {
		w.mkdir(fmt.Sprintf("stay%d", i))
		w.mkdir(fmt.Sprintf("go%d", i))
	}
	d, err := w.v.OpenDir(me, fs.RootIno)
	w.ok(err)
	seen := map[string]int{}
	for i := 0; ; i++ {
		e, more, err := d.Next(me)
		if w.ok(err); !more {
			break
		}
		seen[e.Name]++
		if i < 40 {
			w.ok(w.v.Rmdir(me, fs.RootIno, fmt.Sprintf("go%d", i)))
			w.mkdir(fmt.Sprintf("new%d", i))
		}
		if i == 30 { // a replaced name keeps its place
			w.mkdir("over")
			w.ok(w.rename("over", "stay7"))
		}
		w.ok(d.Seek(e.Cookie))
	}
	for i := range 40 {
		if n := seen[fmt.Sprintf("stay%d", i)]; n != 1 {
			t.Errorf("stay%d was read %d times", i, n)
		}
	}
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
		{"set an ACL", acl, syscall.ENOTSUP},
		{"get an ACL", noACL, syscall.ENODATA},
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
		if got := fs.Errno(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	w.noProblems()
}

// A file is unsaved as long as one of its names lacks its content, also one
// that it got while it was being sent.
func TestNewNameIsUnsaved(t *testing.T) {
	w := newWorld(t)
	sending, copying, reached := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w.faults.Queue(providers.MethodWrite, providertest.Fault{Gate: sending, Reached: reached})
	w.faults.Queue(providers.MethodCopy, providertest.Fault{Gate: copying})
	state := func() string {
		s, _ := w.v.Describe(me, w.walk("f"), "state")
		return s
	}
	o := w.create("f")
	w.write(o, "x", 0)
	done := async(func() { w.is(w.shut(o), nil) })
	<-reached
	_, err := w.v.Link(me, w.walk("f"), fs.RootIno, "g")
	w.ok(err)
	close(sending)
	<-done
	if got := state(); got != "unsaved" {
		t.Errorf("%s, and g is not there", got)
	}
	close(copying)
	w.settle()
	if got := state(); got != "clean" {
		t.Errorf("%s, and both are there", got)
	}
	again := make(chan struct{})
	w.faults.Queue(providers.MethodCopy, providertest.Fault{Gate: again})
	_, err = w.v.Link(me, w.walk("f"), fs.RootIno, "h")
	w.ok(err)
	if got := state(); got != "unsaved" {
		t.Errorf("%s, and h is not there", got)
	}
	close(again)
	w.settle()
	w.backend("f: x", "g: x", "h: x")
}
