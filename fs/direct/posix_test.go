package direct

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
	"golang.org/x/sys/unix"
)

func TestNamesAreOneName(t *testing.T) {
	v, _ := serve(t, Options{})
	for _, c := range []struct {
		name string
		want syscall.Errno
	}{
		{"", syscall.EINVAL},
		{".", syscall.EINVAL},
		{"..", syscall.EINVAL},
		{"a/b", syscall.EINVAL},
		{"a\x00b", syscall.EINVAL},
		{strings.Repeat("x", 256), syscall.ENAMETOOLONG},
	} {
		_, err := v.Lookup(op(), wsfs.RootIno, c.name)
		wantErr(t, err, c.want)
		_, err = v.Mkdir(op(), wsfs.RootIno, c.name, 0o755)
		wantErr(t, err, c.want)
		wantErr(t, v.Unlink(op(), wsfs.RootIno, c.name), c.want)
		wantErr(t, v.Rename(op(), wsfs.RootIno, c.name, wsfs.RootIno, "ok", 0), c.want)
		wantErr(t, v.Rename(op(), wsfs.RootIno, "ok", wsfs.RootIno, c.name, 0), c.want)
	}
	long := strings.Repeat("x", 255)
	create(t, v, wsfs.RootIno, long, "")
	lookup(t, v, wsfs.RootIno, long)
}

// Errors of the disk come through unchanged.
func TestErrno(t *testing.T) {
	v, _ := serve(t, Options{})
	d := must[wsfs.Entry](t)(v.Mkdir(op(), wsfs.RootIno, "d", 0o755))
	f := create(t, v, d.Ino, "f", "x")
	_, err := v.Mkdir(op(), wsfs.RootIno, "d", 0o755)
	wantErr(t, err, syscall.EEXIST)
	wantErr(t, v.Rmdir(op(), wsfs.RootIno, "d"), syscall.ENOTEMPTY)
	wantErr(t, v.Unlink(op(), wsfs.RootIno, "d"), syscall.EISDIR)
	wantErr(t, v.Rmdir(op(), d.Ino, "f"), syscall.ENOTDIR)
	wantErr(t, v.Unlink(op(), d.Ino, "none"), syscall.ENOENT)
	wantErr(t, v.Rename(op(), wsfs.RootIno, "d", d.Ino, "sub", 0), syscall.EINVAL)
	wantErr(t, v.Rename(op(), d.Ino, "f", wsfs.RootIno, "g", 1<<10), syscall.EINVAL)
	_, err = v.Readlink(op(), f.Ino)
	wantErr(t, err, syscall.EINVAL)
	_, _, err = v.Create(op(), d.Ino, "f", unix.O_RDWR|unix.O_EXCL, 0o644)
	wantErr(t, err, syscall.EEXIST)
	_, err = v.OpenDir(op(), f.Ino)
	wantErr(t, err, syscall.ENOTDIR)
	_, err = v.GetXattr(op(), f.Ino, "user.none")
	wantErr(t, err, syscall.ENODATA)
	_, err = v.Attr(op(), 1<<40, nil)
	wantErr(t, err, syscall.ESTALE)
	e, err := v.Lookup(op(), d.Ino, "none")
	assert.True(t, e.Ino == 0 && err == nil && e.TTL != 0, "missing name:", e, err)
}

func TestReadWrite(t *testing.T) {
	v, dir := serve(t, Options{})
	e := create(t, v, wsfs.RootIno, "f", "hello")
	o := must[wsfs.Opened](t)(v.Open(op(), e.Ino, unix.O_WRONLY|unix.O_APPEND))
	must[int](t)(o.File.Write(op(), []byte(" world"), 0)) // appends all the same
	o.File.Release()
	o = must[wsfs.Opened](t)(v.Open(op(), e.Ino, unix.O_RDWR))
	defer o.File.Release()
	assert.Equal(t, read(t, o.File), "hello world")
	d, err := o.File.Read(op(), make([]byte, 10), 100)
	assert.True(t, err == nil && len(d.Bytes) == 0, "past the end:", len(d.Bytes), err)
	ok(t, o.File.Fsync(op(), true))
	ok(t, o.File.Fsync(op(), false))
	ok(t, o.File.Flush(op()))
	got, _ := os.ReadFile(filepath.Join(dir, "f"))
	assert.Equal(t, string(got), "hello world", "disk")
}

// An fsync reaches the disk: of what was written no page is dirty afterwards.
func TestFsyncReachesTheDisk(t *testing.T) {
	v, dir := serve(t, Options{})
	e := create(t, v, wsfs.RootIno, "f", "")
	o := must[wsfs.Opened](t)(v.Open(op(), e.Ino, unix.O_RDWR))
	defer o.File.Release()
	path := filepath.Join(dir, "f")
	for _, dataOnly := range []bool{true, false} {
		tier.Dirty(t, func() string {
			must[int](t)(o.File.Write(op(), make([]byte, 64<<10), 0))
			return path
		})
		ok(t, o.File.Fsync(op(), dataOnly))
		assert.Equal(t, tier.DirtyPages(t, path), 0, "dirty pages, of data only", dataOnly)
	}
}

// A name that was made, moved or removed before the fsync of its directory is so after a
// loss of power. One thing is done with each boot: what the disk writes for the next would
// bring it there too.
func TestNamesSurviveALossOfPower(t *testing.T) {
	if !testrun.Private(t) {
		return
	}
	disk := testrun.NewDisk(t, t.TempDir(), 64<<20)
	for _, step := range []struct {
		do   func(v *Volume) error
		want string
	}{
		{func(v *Volume) error { return assert.ErrOf(v.Mkdir(op(), wsfs.RootIno, "a", 0o755)) }, "a/"},
		{func(v *Volume) error { return v.Rename(op(), wsfs.RootIno, "a", wsfs.RootIno, "b", 0) }, "b/"},
		{func(v *Volume) error { return v.Rmdir(op(), wsfs.RootIno, "b") }, ""},
	} {
		v := must[*Volume](t)(Open(t.Context(), disk.Dir, Options{}))
		ok(t, step.do(v))
		dir := must[wsfs.Dir](t)(v.OpenDir(op(), wsfs.RootIno))
		ok(t, dir.Fsync(op(), false))
		dir.Release()
		disk.Off()
		v.Close()
		disk.On()
		assert.Equal(t, disk.Files(), step.want, "after the loss of power")
	}
}

// O_TRUNC empties the file that was opened, with a read-only descriptor too.
func TestOpenTruncates(t *testing.T) {
	v, _ := serve(t, Options{})
	e := create(t, v, wsfs.RootIno, "f", "hello")
	for _, flags := range []uint32{unix.O_WRONLY, unix.O_RDWR, unix.O_RDONLY} {
		a := must[wsfs.Attr](t)(v.SetAttr(op(), e.Ino, nil, &wsfs.SetAttr{Size: ptr(uint64(9))}))
		assert.Must(t, a.Size == 9, "size", a.Size, "after truncate")
		o := must[wsfs.Opened](t)(v.Open(op(), e.Ino, flags|unix.O_TRUNC))
		if got := must[wsfs.Attr](t)(v.Attr(op(), e.Ino, o.File)).Size; got != 0 {
			t.Errorf("flags %#x: size %d", flags, got)
		}
		o.File.Release()
	}
}

func TestHolesAndRanges(t *testing.T) {
	v, _ := serve(t, Options{})
	_, o, err := v.Create(op(), wsfs.RootIno, "f", unix.O_RDWR, 0o644)
	ok(t, err)
	defer o.File.Release()
	must[int](t)(o.File.Write(op(), make([]byte, 4096), 1<<20))
	assert.Of(o.File.Seek(op(), 0, unix.SEEK_DATA)).Equal(t, 1<<20, "data at")
	assert.Of(o.File.Seek(op(), 0, unix.SEEK_HOLE)).Equal(t, 0, "hole at")
	_, err = o.File.Seek(op(), 2<<20, unix.SEEK_DATA)
	wantErr(t, err, syscall.ENXIO)
	_, err = o.File.Seek(op(), 0, unix.SEEK_SET)
	wantErr(t, err, syscall.EINVAL)
	ok(t, o.File.Allocate(op(), 2<<20, 4096, 0))
	ok(t, o.File.Allocate(op(), 1<<20, 4096, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE))
	a := must[wsfs.Attr](t)(v.Attr(op(), lookup(t, v, 1, "f").Ino, o.File))
	assert.Equal(t, a.Size, 2<<20+4096, "size")
	e, to, err := v.Create(op(), wsfs.RootIno, "g", unix.O_RDWR, 0o644)
	ok(t, err)
	defer to.File.Release()
	must[int](t)(o.File.Write(op(), []byte("abcdef"), 0))
	assert.Of(o.File.CopyRange(op(), 2, to.File, 1, 3)).Equal(t, 3, "copied")
	assert.Equal(t, read(t, to.File), "\x00cde", "copy")
	assert.Equal(t, attr(t, v, e.Ino).Size, 4, "size of the copy")
}

func TestTimes(t *testing.T) {
	v, _ := serve(t, Options{})
	e := create(t, v, wsfs.RootIno, "f", "")
	old, late := time.Unix(-123456789, 987654321), time.Unix(1<<32+5, 123456789)
	a := must[wsfs.Attr](t)(v.SetAttr(op(), e.Ino, nil, &wsfs.SetAttr{Atime: &old, Mtime: &late}))
	assert.True(t, a.Atime.Equal(old) && a.Mtime.Equal(late), "got", a.Atime, a.Mtime)
	a = must[wsfs.Attr](t)(v.SetAttr(op(), e.Ino, nil, &wsfs.SetAttr{MtimeNow: true}))
	assert.True(t, a.Atime.Equal(old) && time.Since(a.Mtime).Abs() <= time.Minute, "after now:", a.Atime, a.Mtime)
	l := must[wsfs.Entry](t)(v.Symlink(op(), wsfs.RootIno, "l", "f"))
	a = must[wsfs.Attr](t)(v.SetAttr(op(), l.Ino, nil, &wsfs.SetAttr{Mtime: &old}))
	if !a.Mtime.Equal(old) || a.Mode&unix.S_IFMT != unix.S_IFLNK {
		t.Errorf("link: %v, %o", a.Mtime, a.Mode)
	}
	assert.False(t, attr(t, v, e.Ino).Mtime.Equal(old), "the link was followed")
	_, err := v.SetAttr(op(), l.Ino, nil, &wsfs.SetAttr{Mode: ptr(uint32(0o600))})
	wantErr(t, err, syscall.EOPNOTSUPP)
}

func TestLinksOfEveryKind(t *testing.T) {
	needRoot(t)
	v, _ := serve(t, Options{})
	dev := unix.Mkdev(259, 300000)
	for _, c := range []struct {
		name string
		mode uint32
		rdev uint32
	}{
		{"file", unix.S_IFREG | 0o640, 0},
		{"fifo", unix.S_IFIFO | 0o644, 0},
		{"sock", unix.S_IFSOCK | 0o755, 0},
		{"char", unix.S_IFCHR | 0o600, encodeDev(1, 3)},
		{"block", unix.S_IFBLK | 0o600, encodeDev(unix.Major(dev), unix.Minor(dev))},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := must[wsfs.Entry](t)(v.Mknod(op(), wsfs.RootIno, c.name, c.mode, c.rdev))
			if e.Attr.Mode != c.mode || e.Attr.Rdev != c.rdev {
				t.Errorf("mode %o rdev %#x, want %o %#x", e.Attr.Mode, e.Attr.Rdev, c.mode, c.rdev)
			}
			l := must[wsfs.Entry](t)(v.Link(op(), e.Ino, wsfs.RootIno, c.name+"2"))
			assert.True(t, l.Ino == e.Ino && l.Attr.Nlink == 2, "link is inode", l.Ino, "of", l.Attr.Nlink, "links, want", e.Ino, "of 2")
			if c.mode&unix.S_IFMT != unix.S_IFREG {
				_, err := v.Open(op(), e.Ino, unix.O_RDONLY)
				wantErr(t, err, syscall.ENXIO)
			}
		})
	}
	s := must[wsfs.Entry](t)(v.Symlink(op(), wsfs.RootIno, "link", "../../etc/passwd"))
	l := must[wsfs.Entry](t)(v.Link(op(), s.Ino, wsfs.RootIno, "link2"))
	assert.Equal(t, must[string](t)(v.Readlink(op(), l.Ino)), "../../etc/passwd", "target")
}

func TestTmpfile(t *testing.T) {
	v, _ := serve(t, Options{})
	e, o, err := v.Tmpfile(op(), wsfs.RootIno, unix.O_RDWR, 0o666)
	ok(t, err)
	must[int](t)(o.File.Write(op(), []byte("x"), 0))
	a := attr(t, v, e.Ino)
	assert.True(t, a.Nlink == 0 && a.Size == 1 && a.Mode == unix.S_IFREG|0o644, a)
	l := must[wsfs.Entry](t)(v.Link(op(), e.Ino, wsfs.RootIno, "named"))
	assert.True(t, l.Ino == e.Ino && l.Attr.Nlink == 1, "linked as", l.Ino, "of", l.Attr.Nlink, "links")
	o.File.Release()
	o = must[wsfs.Opened](t)(v.Open(op(), e.Ino, unix.O_RDONLY))
	assert.Equal(t, read(t, o.File), "x")
	o.File.Release()
}

func TestRename(t *testing.T) {
	v, _ := serve(t, Options{})
	d := must[wsfs.Entry](t)(v.Mkdir(op(), wsfs.RootIno, "d", 0o755))
	s := must[wsfs.Entry](t)(v.Mkdir(op(), d.Ino, "s", 0o755))
	f := create(t, v, s.Ino, "f", "deep")
	ok(t, v.Rename(op(), wsfs.RootIno, "d", wsfs.RootIno, "e", 0))
	p, _ := v.Path(f.Ino)
	assert.True(t, p == "e/s/f", "path", p)
	assert.Equal(t, attr(t, v, f.Ino).Size, 4, "size")
	a, b := create(t, v, wsfs.RootIno, "a", "A"), create(t, v, wsfs.RootIno, "b", "BB")
	wantErr(t, v.Rename(op(), wsfs.RootIno, "a", wsfs.RootIno, "b", unix.RENAME_NOREPLACE), syscall.EEXIST)
	ok(t, v.Rename(op(), wsfs.RootIno, "a", s.Ino, "f", unix.RENAME_EXCHANGE))
	p, _ = v.Path(a.Ino)
	assert.True(t, p == "e/s/f", "a lies at", p)
	p, _ = v.Path(f.Ino)
	assert.True(t, p == "a", "f lies at", p)
	ok(t, v.Rename(op(), wsfs.RootIno, "a", wsfs.RootIno, "b", 0))
	got := attr(t, v, b.Ino)
	assert.True(t, got.Nlink == 0 && got.Size == 2, "replaced file:", got)
	assert.Equal(t, lookup(t, v, wsfs.RootIno, "b").Ino, f.Ino, "b")
	// Two names of one file: nothing happens.
	must[wsfs.Entry](t)(v.Link(op(), f.Ino, wsfs.RootIno, "b2"))
	r := record(v)
	ok(t, v.Rename(op(), wsfs.RootIno, "b", wsfs.RootIno, "b2", 0))
	lookup(t, v, wsfs.RootIno, "b")
	if a := attr(t, v, f.Ino); a.Nlink != 2 || len(r.all()) != 0 {
		t.Errorf("%d links, told %v", a.Nlink, r.all())
	}
}

func TestXattr(t *testing.T) {
	v, _ := serve(t, Options{})
	d := must[wsfs.Entry](t)(v.Mkdir(op(), wsfs.RootIno, "d", 0o755))
	f := create(t, v, d.Ino, "f", "")
	for _, ino := range []wsfs.Ino{f.Ino, d.Ino} {
		ok(t, v.SetXattr(op(), ino, "user.a", []byte("1"), unix.XATTR_CREATE))
		wantErr(t, v.SetXattr(op(), ino, "user.a", []byte("2"), unix.XATTR_CREATE), syscall.EEXIST)
		wantErr(t, v.SetXattr(op(), ino, "user.b", nil, unix.XATTR_REPLACE), syscall.ENODATA)
		big := strings.Repeat("v", 2000)
		ok(t, v.SetXattr(op(), ino, "user.big", []byte(big), 0))
		got := must[[]byte](t)(v.GetXattr(op(), ino, "user.big"))
		assert.True(t, string(got) == big, len(got), "bytes")
		assert.Equal(t, len(must[[]string](t)(v.ListXattr(op(), ino))), 2, "list")
		ok(t, v.RemoveXattr(op(), ino, "user.a"))
		wantErr(t, v.RemoveXattr(op(), ino, "user.a"), syscall.ENODATA)
	}
	if os.Geteuid() != 0 {
		return
	}
	l := must[wsfs.Entry](t)(v.Symlink(op(), d.Ino, "l", "f"))
	ok(t, v.SetXattr(op(), l.Ino, "trusted.t", []byte("on the link"), 0))
	assert.Is(t, assert.ErrOf(v.GetXattr(op(), f.Ino, "trusted.t")), syscall.ENODATA, "the link was followed")
	assert.Equal(t, string(must[[]byte](t)(v.GetXattr(op(), l.Ino, "trusted.t"))), "on the link")
}

func TestStatfsAndDescribe(t *testing.T) {
	v, dir := serve(t, Options{Provider: "dev-local"})
	var want unix.Statfs_t
	ok(t, unix.Statfs(dir, &want))
	got := must[wsfs.Statfs](t)(v.Statfs(op(), wsfs.RootIno))
	assert.True(t, got.Blocks == want.Blocks && got.NameLen == 255 && got.Frsize == uint32(want.Frsize), "got", got)
	p, ok := v.Describe(op(), wsfs.RootIno, "provider")
	assert.True(t, p == "dev-local" && ok, "provider", p)
	_, ok = v.Describe(op(), wsfs.RootIno, "etag")
	assert.False(t, ok, "a local file has no etag")
}

// An entry that stays in the directory is listed once, whatever comes and goes,
// and every cookie leads back to its place.
func TestDirStream(t *testing.T) {
	v, dir := serve(t, Options{})
	const many = 3000
	for i := range many {
		writeFile(t, "", dir, fmt.Sprintf("stays-%04d", i))
	}
	d := must[wsfs.Dir](t)(v.OpenDir(op(), wsfs.RootIno))
	defer d.Release()
	seen := map[string]int{}
	var all []wsfs.DirEntry
	for i := 0; ; i++ {
		e, more, err := d.Next(op())
		ok(t, err)
		if !more {
			break
		}
		dots := e.Name == "." || e.Name == ".."
		assert.Must(t, e.Cookie != 0 && (e.Mode == unix.S_IFREG || dots), e)
		seen[e.Name]++
		all = append(all, e)
		if i%10 == 0 {
			writeFile(t, "", dir, fmt.Sprintf("comes-%d", i))
		}
		if i%2 == 0 { // as a reader whose buffer was full
			ok(t, d.Seek(all[max(0, len(all)-2)].Cookie))
			again, _, err := d.Next(op())
			ok(t, err)
			assert.Must(t, len(all) <= 1 || again.Name == e.Name, "after a step back", again.Name, "want", e.Name)
			ok(t, d.Seek(e.Cookie))
		}
	}
	for _, name := range []string{".", ".."} {
		assert.Equal(t, seen[name], 1, name, "listed ... times")
	}
	for i := range many {
		assert.Equal(t, seen[fmt.Sprintf("stays-%04d", i)], 1, "entry", i, "listed ... times")
	}
	for i := 0; i < len(all)-1; i += 500 {
		ok(t, d.Seek(all[i].Cookie))
		if e, _, _ := d.Next(op()); e.Name != all[i+1].Name {
			t.Errorf("cookie %d leads to %q, want %q", i, e.Name, all[i+1].Name)
		}
	}
	ok(t, d.Seek(0))
	if e, _, _ := d.Next(op()); e.Name != all[0].Name {
		t.Errorf("begins with %q, want %q", e.Name, all[0].Name)
	}
	last := all[len(all)-1]
	a := lookup(t, v, wsfs.RootIno, last.Name).Attr
	assert.True(t, a.Ino == last.Ino, "number", last.Ino, "in the listing", a.Ino, "by stat")
}

// "." and ".." are listed with the numbers that stat gives them; the root is its
// own parent, for what lies above it is not to be told.
func TestDots(t *testing.T) {
	v, _ := serve(t, Options{})
	d := must[wsfs.Entry](t)(v.Mkdir(op(), wsfs.RootIno, "d", 0o755))
	root := attr(t, v, wsfs.RootIno).Ino
	for _, c := range []struct {
		dir       wsfs.Ino
		dot, dots wsfs.Ino
	}{
		{wsfs.RootIno, root, root},
		{d.Ino, d.Attr.Ino, root},
	} {
		s := must[wsfs.Dir](t)(v.OpenDir(op(), c.dir))
		got := map[string]wsfs.DirEntry{}
		for e, more, err := s.Next(op()); more; e, more, err = s.Next(op()) {
			ok(t, err)
			got[e.Name] = e
		}
		s.Release()
		for name, want := range map[string]wsfs.Ino{".": c.dot, "..": c.dots} {
			if e := got[name]; e.Ino != want || e.Mode != unix.S_IFDIR {
				t.Errorf("directory %d: %s is %d of mode %o, want %d", c.dir, name, e.Ino, e.Mode, want)
			}
		}
	}
}

func TestRootMustBeTheOneAsked(t *testing.T) {
	dir := t.TempDir()
	var st unix.Stat_t
	ok(t, unix.Stat(dir, &st))
	v := serveDir(t, dir, Options{Dev: st.Dev, Ino: st.Ino})
	attr(t, v, wsfs.RootIno)
	assert.True(t, assert.ErrOf(Open(t.Context(), dir, Options{Dev: st.Dev, Ino: st.Ino + 1})) != nil, "another directory was taken")
	f := must[*os.File](t)(os.Open(dir))
	defer f.Close()
	v = serveDir(t, "/nowhere", Options{Root: f})
	got := attr(t, v, wsfs.RootIno)
	assert.True(t, got.Ino == foldIno(st.Ino), "root is", got.Ino, "want", st.Ino)
	writeFile(t, "", dir, "file")
	assert.True(t, assert.ErrOf(Open(t.Context(), filepath.Join(dir, "file"), Options{})) != nil, "a file was taken for a directory")
}
