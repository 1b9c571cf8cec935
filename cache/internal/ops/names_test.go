package ops

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/cache/internal/attrs"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// A directory whose names are not known is listed before a name of it changes, and whether
// one is empty is not guessed.
func TestUnknownDirectories(t *testing.T) {
	for what, do := range map[string]func(w *world, d fs.Ino) error{
		"make in it":   func(w *world, d fs.Ino) error { return assert.ErrOf(w.Mkdir(me, d, "n", 0o755)) },
		"rename to it": func(w *world, d fs.Ino) error { return w.Rename(me, fs.RootIno, "other", d, "n", 0) },
		"remove it":    func(w *world, _ fs.Ino) error { return w.Rmdir(me, fs.RootIno, "d") },
		"replace it":   func(w *world, _ fs.Ino) error { return w.Rename(me, fs.RootIno, "other", fs.RootIno, "d", 0) },
	} {
		w := newWorld(t)
		w.mkdir("other")
		d := w.mkdir("d")
		assert.OK(t, w.o.Tree.Update(func(tx *tree.Tx) error {
			tx.Edit(table.Ino(d)).Loaded = false
			return nil
		}, nil))
		w.asked = nil
		assert.OK(t, do(w, d), what)
		assert.Slice(t, w.asked, []string{fmt.Sprint("list ", d)}, what)
	}
}

// What a rename may not do fails as on a disk, and changes nothing.
func TestRenameRefused(t *testing.T) {
	w := newWorld(t)
	w.mkdir("d", "d/e", "full", "full/x")
	assert.OK(t, assert.ErrOf(w.Symlink(me, fs.RootIno, "link", "to")))
	for _, c := range []struct {
		from, to string
		flags    uint32
		want     syscall.Errno
	}{
		{"none", "n", 0, syscall.ENOENT}, {"d", "none", 2, syscall.ENOENT}, {"d", "full", 1, syscall.EEXIST}, {"d", "full", 0, syscall.ENOTEMPTY},
		{"d", "link", 0, syscall.ENOTDIR}, {"link", "d", 0, syscall.EISDIR}, {"link", "n", 8, syscall.EINVAL}, {"link", "a/b", 0, syscall.EINVAL},
		{"link", strings.Repeat("n", providers.MaxName+1), 0, syscall.ENAMETOOLONG},
	} {
		assert.Is(t, w.Rename(me, fs.RootIno, c.from, fs.RootIno, c.to, c.flags), c.want, c.from, "to", c.to)
	}
	assert.Is(t, w.Rename(me, fs.RootIno, "d", w.walk("d/e"), "n", 0), syscall.EINVAL, "below itself")
	assert.Slice(t, w.told, nil, "told")
	assert.OK(t, w.Rename(me, fs.RootIno, "link", w.walk("d"), "n", 0))
	assert.Slice(t, w.told, []string{"deleted link"}, "told")
}

// A submodule stays as it is: what would change it or its place is refused at the call.
func TestSubmodulesAreNotChanged(t *testing.T) {
	w := newWorld(t)
	w.mkdir("top", "top/sub", "other")
	w.o.Remote.Submodule = func(_ *fs.Op, at providers.Locator) (providers.Locator, bool, error) {
		sub := providers.MustLocator("top/sub")
		return sub, at.Contains(sub), nil
	}
	root, top, sub := fs.RootIno, w.walk("top"), w.walk("top/sub")
	link := assert.Of(w.Symlink(me, root, "link", "to")).OK(t).Ino
	for what, err := range map[string]error{
		"mkdir in it":                         assert.ErrOf(w.Mkdir(me, sub, "new", 0o755)),
		"mknod in it":                         assert.ErrOf(w.Mknod(me, sub, "new", syscall.S_IFREG|0o644, 0)),
		"symlink in it":                       assert.ErrOf(w.Symlink(me, sub, "new", "to")),
		"link in it":                          assert.ErrOf(w.Link(me, link, sub, "new")),
		"rename into it":                      w.Rename(me, root, "link", sub, "new", 0),
		"rename of it":                        w.Rename(me, top, "sub", top, "new", 0),
		"rename of the directory above":       w.Rename(me, root, "top", root, "new", 0),
		"rename of another directory over it": w.Rename(me, root, "other", top, "sub", 0),
		"exchange":                            w.Rename(me, root, "other", top, "sub", 2),
		"rmdir":                               w.Rmdir(me, top, "sub"),
	} {
		assert.Is(t, err, syscall.EROFS, what)
		assert.Contains(t, err.Error(), "top/sub is a submodule", what, "the reason is not said:", err)
	}
	_, _, err := w.Create(me, sub, "new", syscall.O_WRONLY, 0o644)
	assert.Is(t, err, syscall.EROFS)
	w.mkdir("top/d")
	assert.OK(t, w.Rename(me, top, "d", root, "d", 0))
	assert.OK(t, w.Rmdir(me, root, "d"))
	assert.OK(t, w.Rename(me, root, "other", root, "moved", 0))
}

// What an operation may not do fails with the errno of a disk.
func TestErrnos(t *testing.T) {
	w := newWorld(t)
	w.mkdir("d", "d/e")
	root, d, f := fs.RootIno, w.walk("d"), w.put("f", "2")
	_, _, excl := w.Create(me, root, "f", syscall.O_EXCL, 0o644)
	for what, c := range map[string]struct {
		err  error
		want error
	}{
		"mkdir over a file":        {assert.ErrOf(w.Mkdir(me, root, "f", 0o755)), syscall.EEXIST},
		"mkdir in a file":          {assert.ErrOf(w.Mkdir(me, f, "x", 0o755)), syscall.ENOTDIR},
		"name too long":            {assert.ErrOf(w.Mkdir(me, root, strings.Repeat("x", 256), 0o755)), syscall.ENAMETOOLONG},
		"two names":                {assert.ErrOf(w.Mkdir(me, root, "a/b", 0o755)), syscall.EINVAL},
		"link of a directory":      {assert.ErrOf(w.Link(me, d, root, "l")), syscall.EPERM},
		"link over something":      {assert.ErrOf(w.Link(me, f, root, "d")), syscall.EEXIST},
		"exclusive create":         {excl, syscall.EEXIST},
		"open a directory":         {assert.ErrOf(w.Open(me, d, syscall.O_RDONLY)), syscall.EISDIR},
		"readlink of a file":       {assert.ErrOf(w.Readlink(me, f)), syscall.EINVAL},
		"list a file":              {assert.ErrOf(w.OpenDir(me, f)), syscall.ENOTDIR},
		"unknown inode":            {assert.ErrOf(w.Attr(me, 1<<40, nil)), fs.ErrStale},
		"a negative size":          {assert.ErrOf(w.SetAttr(me, f, nil, &fs.SetAttr{Size: new(^uint64(0))})), syscall.EFBIG},
		"set what is no ACL":       {w.SetXattr(me, d, attrs.AccessACL, nil, 0), syscall.EINVAL},
		"get an ACL":               {assert.ErrOf(w.GetXattr(me, d, attrs.AccessACL)), syscall.ENODATA},
		"another name space":       {w.SetXattr(me, d, "os2.x", nil, 0), fs.ErrUnsupported},
		"replace no attribute":     {w.SetXattr(me, d, "user.x", nil, unix.XATTR_REPLACE), syscall.ENODATA},
		"remove no attribute":      {w.RemoveXattr(me, d, "user.x"), syscall.ENODATA},
		"too much attribute":       {w.SetXattr(me, d, "user.x", make([]byte, 1<<20), 0), syscall.ENOSPC},
		"unlink a directory":       {w.Unlink(me, root, "d"), syscall.EISDIR},
		"unlink nothing":           {w.Unlink(me, root, "x"), syscall.ENOENT},
		"rmdir of a file":          {w.Rmdir(me, root, "f"), syscall.ENOTDIR},
		"rmdir of nothing":         {w.Rmdir(me, root, "x"), syscall.ENOENT},
		"rmdir of a full one":      {w.Rmdir(me, root, "d"), syscall.ENOTEMPTY},
		"rename over the same":     {w.Rename(me, root, "f", root, "f", 0), nil},
		"exchange with what holds": {w.Rename(me, d, "e", root, "d", unix.RENAME_EXCHANGE), syscall.EINVAL},
		"exchange, no replace":     {w.Rename(me, root, "f", root, "x", 3), syscall.EINVAL},
	} {
		assert.Is(t, c.err, c.want, what)
	}
}

// A name that the remote cannot have is refused with the reason, by whatever would give it;
// one that stays local may be any.
func TestNamesThatTheRemoteCannotHave(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Capabilities = providers.Capabilities{Names: providers.NameLimits{UTF8: true, Ending: "%2F", Path: 40}}
	})
	dir, here := w.mkdir("d"), w.mkdir("out")
	f := w.put("d/f", "text")
	w.put("out/x%2F", "text")
	long := strings.Repeat("n", 40)
	for name, want := range map[string]error{"x%2F": fs.ErrName, "\xff": fs.ErrName, long: syscall.ENAMETOOLONG} {
		_, _, created := w.Create(me, dir, name, syscall.O_WRONLY, 0o644)
		for what, err := range map[string]error{
			"create": created, "mkdir": assert.ErrOf(w.Mkdir(me, dir, name, 0o755)), "symlink": assert.ErrOf(w.Symlink(me, dir, name, "f")),
			"link": assert.ErrOf(w.Link(me, f, dir, name)), "rename": w.Rename(me, dir, "f", dir, name, 0),
		} {
			assert.Is(t, err, want, what, "of", name)
			assert.True(t, len(fmt.Sprint(err)) >= 40, what, "of", name, "does not say why", err)
		}
	}
	assert.Is(t, w.Rename(me, here, "x%2F", dir, "x%2F", 0), fs.ErrName)
	assert.OK(t, assert.ErrOf(w.Mknod(me, dir, "pipe%2F", syscall.S_IFIFO|0o600, 0)))
	assert.Is(t, w.Rename(me, dir, "pipe%2F", dir, "f", unix.RENAME_EXCHANGE), fs.ErrName)
	w.put("d/x%2F%2F", "twice")
}

// Names cross the border of what is excluded where nothing is lost by it, else rename fails as
// between file systems. That the remote deletes what it had is told.
func TestRenameAcrossTheBorder(t *testing.T) {
	w := newWorld(t)
	w.mkdir("out", "out/sub", "new")
	read := w.there("read", "1")
	w.shut(w.open(read, syscall.O_RDONLY))
	w.there("away", "2")
	w.put("out/local", "3")
	w.there("gone", "4")
	assert.OK(t, w.Unlink(me, fs.RootIno, "gone")) // the remote has it still
	assert.OK(t, assert.ErrOf(w.Mknod(me, fs.RootIno, "gone", syscall.S_IFIFO|0o600, 0)))
	w.there("moved", "5")
	assert.OK(t, w.Rename(me, fs.RootIno, "moved", fs.RootIno, "other", 0))
	w.put("moved", "in place of what the remote has there still")
	w.put("fresh", "6")
	for _, c := range []struct {
		from, to string
		want     error
		told     bool
	}{
		{"away", "out/f", syscall.EXDEV, false}, {"away", "f.o", syscall.EXDEV, false}, {"read", "out/f", nil, true},
		{"out/local", "x.o", nil, false}, {"x.o", "in", nil, false}, {"in", "away", nil, false}, {"out/sub", "sub", syscall.EXDEV, false},
		{"fresh", "out/fresh", nil, false}, {"gone", "out/gone", nil, false}, {"moved", "out/moved", nil, false},
	} {
		dir, name := w.split(c.from)
		to, as := w.split(c.to)
		w.reported = nil
		assert.Is(t, w.Rename(me, dir, name, to, as, 0), c.want, c.from, "to", c.to)
		assert.Equal(t, strings.Join(w.reported, " "), map[bool]string{true: c.from}[c.told], "told of", c.from, "to", c.to)
	}
}

// What a pull has put under a name is not removed or renamed for a kernel that takes it for
// what was there before: it is told to look again, and then it is done.
func TestNamesThatTheKernelDoesNotKnow(t *testing.T) {
	const replaces, exchanges = 0, unix.RENAME_EXCHANGE
	for name, do := range map[string]func(w *world) error{
		"unlink":         func(w *world) error { return w.Unlink(me, fs.RootIno, "f") },
		"rename":         func(w *world) error { return w.Rename(me, fs.RootIno, "f", fs.RootIno, "new", replaces) },
		"rename over it": func(w *world) error { return w.Rename(me, fs.RootIno, "other", fs.RootIno, "f", replaces) },
		"exchange":       func(w *world) error { return w.Rename(me, fs.RootIno, "other", fs.RootIno, "f", exchanges) },
	} {
		w := newWorld(t)
		w.put("other", "0")
		was := table.Ino(w.put("f", "one"))
		pulled := func() {
			w.update(func(tx *tree.Tx) { tx.MarkStaleDentry(table.Link{Dir: table.Root, Name: "f"}, was) })
		}
		pulled()
		w.walk("f") // a look is enough
		assert.OK(t, w.Rename(me, fs.RootIno, "f", fs.RootIno, "g", 0), name)
		assert.OK(t, w.Rename(me, fs.RootIno, "g", fs.RootIno, "f", 0), name)
		pulled()
		assert.Is(t, do(w), fs.ErrStale, name)
		assert.OK(t, do(w), name)
	}
}

// The kernel takes along, under a new name, what it has under the old one: when that is not
// the inode that a pull has put there, it is told.
func TestRenameOfWhatTheKernelDoesNotHave(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"known", "pulled"} {
		w.there(name, "1")
	}
	w.walk("known")
	for name, want := range map[string][]string{"known": {"deleted known", "wrote known.new"}, "pulled": {"deleted pulled", "entry pulled.new", "wrote pulled.new"}} {
		w.told = nil
		assert.OK(t, w.Rename(me, fs.RootIno, name, fs.RootIno, name+".new", 0))
		slices.Sort(w.told)
		assert.Slice(t, w.told, want, "told of", name)
	}
}

// allNames lists the names below a directory, those of directories with a slash.
func (w *world) allNames(dir fs.Ino, prefix string) (names []string) {
	w.Helper()
	d := assert.Of(w.OpenDir(me, dir)).OK(w)
	defer d.Release()
	for {
		e, more, err := d.Next(me)
		if assert.OK(w, err); !more {
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

// Each change of a name has happened when its call returns, whatever becomes of the process.
func TestNamesSurviveAKill(t *testing.T) {
	w := newWorld(t)
	w.mkdir("d")
	w.put("a", "1")
	w.put("d/e", "2")
	for _, c := range []struct {
		what string
		do   func() error
		want string // all names
	}{
		{"create", func() error { w.put("f", "3"); return nil }, "a d/ d/e f"},
		{"mkdir", func() error { w.mkdir("m"); return nil }, "a d/ d/e f m/"},
		{"symlink", func() error { return assert.ErrOf(w.Symlink(me, w.walk("m"), "s", "a")) }, "a d/ d/e f m/ m/s"},
		{"link", func() error { return assert.ErrOf(w.Link(me, w.walk("f"), w.walk("d"), "l")) }, "a d/ d/e d/l f m/ m/s"},
		{"mknod", func() error { return assert.ErrOf(w.Mknod(me, fs.RootIno, "p", syscall.S_IFIFO|0o644, 0)) }, "a d/ d/e d/l f m/ m/s p"},
		{"rename", func() error { return w.Rename(me, fs.RootIno, "d", w.walk("m"), "d", 0) }, "a f m/ m/d/ m/d/e m/d/l m/s p"},
		{"exchange", func() error { return w.Rename(me, fs.RootIno, "a", w.walk("m"), "d", unix.RENAME_EXCHANGE) }, "a/ a/e a/l f m/ m/d m/s p"},
		{"rename over", func() error { return w.Rename(me, fs.RootIno, "f", w.walk("m"), "d", 0) }, "a/ a/e a/l m/ m/d m/s p"},
		{"unlink", func() error { return w.Unlink(me, w.walk("a"), "e") }, "a/ a/l m/ m/d m/s p"},
		{"rmdir", func() error { _ = w.Unlink(me, w.walk("a"), "l"); return w.Rmdir(me, fs.RootIno, "a") }, "m/ m/d m/s p"},
		{"chmod", func() error {
			return assert.ErrOf(w.SetAttr(me, w.walk("m/d"), nil, &fs.SetAttr{Mode: new(uint32(0o600))}))
		}, "m/ m/d m/s p"},
	} {
		assert.OK(t, c.do(), c.what)
		w.crash(false)
		assert.Equal(t, strings.Join(w.allNames(fs.RootIno, ""), " "), c.want, c.what)
	}
	a := assert.Of(w.Attr(me, w.walk("m/d"), nil)).OK(t)
	assert.True(t, a.Mode == syscall.S_IFREG|0o600 && a.Nlink == 1, "attributes", a)
}

// The stream of a directory that others removed after it was opened ends, and one that was
// found to be elsewhere is listed there.
func TestStreamOfWhatOthersRemoved(t *testing.T) {
	for removed, want := range map[bool]string{true: "", false: ". .. f"} {
		w := newWorld(t)
		d := w.mkdir("d")
		w.put("d/f", "0")
		o := assert.Of(w.OpenDir(me, d)).OK(t)
		w.o.Remote.Load = func(op *fs.Op, dir table.Ino) error {
			w.o.Remote.Load = w.load
			w.update(func(tx *tree.Tx) {
				if removed {
					l := table.Link{Dir: dir, Name: "f"}
					tx.SetLocal(l, 0, false, false)
					tx.SetLocal(table.Link{Dir: table.Root, Name: "d"}, 0, false, false)
				}
			})
			return fs.ErrStale
		}
		var names []string
		for {
			e, more, err := o.Next(me)
			assert.OK(t, err)
			if !more {
				break
			}
			names = append(names, e.Name)
		}
		assert.Equal(t, strings.Join(names, " "), want, "removed", removed)
	}
}

// A table that has failed knows nothing: what is asked of it then fails as it did, and no name
// is said to be missing.
func TestFailedTableMissesNothing(t *testing.T) {
	w := newWorld(t)
	d := w.mkdir("d")
	w.put("d/f", "content")
	w.broken.Store(true)
	assert.Is(t, w.Unlink(me, d, "f"), syscall.EIO, "the first change, which finds out")
	_, _, created := w.Create(me, d, "h", syscall.O_RDWR, 0o666)
	for what, err := range map[string]error{
		"mkdir": assert.ErrOf(w.Mkdir(me, fs.RootIno, "new", 0o777)), "unlink": w.Unlink(me, d, "f"), "rmdir": w.Rmdir(me, fs.RootIno, "d"),
		"rename": w.Rename(me, d, "f", fs.RootIno, "g", 0), "lookup": assert.ErrOf(w.Lookup(me, d, "f")), "create": created,
	} {
		assert.Is(t, err, syscall.EIO, what)
	}
}
