package direct

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// A file that lost its name can still be asked about, for as long as the kernel
// knows it, open or not; then nothing of it is left.
func TestUnlinkedFileLivesOn(t *testing.T) {
	v, _ := serve(t, Options{})
	base := v.fds.open.Load()
	e := create(t, v, wsfs.RootIno, "f", "content")
	ok(t, v.Unlink(op(), wsfs.RootIno, "f"))
	a := attr(t, v, e.Ino)
	assert.True(t, a.Nlink == 0 && a.Size == 7, a.Nlink, "links", a.Size, "bytes")
	o := must[wsfs.Opened](t)(v.Open(op(), e.Ino, unix.O_RDWR)) // by /proc/self/fd, say
	assert.Equal(t, read(t, o.File), "content")
	ok(t, v.SetXattr(op(), e.Ino, "user.x", []byte("y"), 0))
	must[wsfs.Attr](t)(v.SetAttr(op(), e.Ino, nil, &wsfs.SetAttr{Mode: ptr(uint32(0o600)), Size: ptr(uint64(2))}))
	o.File.Release()
	got := attr(t, v, e.Ino)
	assert.True(t, got.Size == 2 && got.Mode == unix.S_IFREG|0o600, got)
	create(t, v, wsfs.RootIno, "f", "another")
	assert.Equal(t, attr(t, v, e.Ino).Size, 2, "the number leads to the new file")
	v.Forget(e.Ino, 1)
	_, err := v.Attr(op(), e.Ino, nil)
	wantErr(t, err, syscall.ESTALE)
	waitFor(t, "descriptors to go", func() bool { return v.fds.open.Load() == base })
}

// The descriptor of an open file does for a pin, and stays for one after close.
func TestUnlinkedOpenFile(t *testing.T) {
	v, _ := serve(t, Options{})
	e, o, err := v.Create(op(), wsfs.RootIno, "f", unix.O_RDWR, 0o644)
	ok(t, err)
	ok(t, v.Unlink(op(), wsfs.RootIno, "f"))
	must[int](t)(o.File.Write(op(), []byte("xyz"), 0))
	a := attr(t, v, e.Ino)
	assert.True(t, a.Nlink == 0 && a.Size == 3, "open:", a)
	v.Forget(e.Ino, 1) // the kernel does so only after release, but may
	o2 := must[wsfs.Opened](t)(v.Open(op(), e.Ino, unix.O_RDONLY))
	o.File.Release()
	assert.Equal(t, read(t, o2.File), "xyz")
	o2.File.Release()
	_, err = v.Attr(op(), e.Ino, nil)
	wantErr(t, err, syscall.ESTALE)
}

func TestRemovedDirectoryLivesOn(t *testing.T) {
	v, _ := serve(t, Options{Watch: true})
	d := must[wsfs.Entry](t)(v.Mkdir(op(), wsfs.RootIno, "d", 0o755))
	lookupNone(t, v, d.Ino, "x") // it now has a descriptor and a watch
	s := must[wsfs.Dir](t)(v.OpenDir(op(), d.Ino))
	defer s.Release()
	ok(t, v.Rmdir(op(), wsfs.RootIno, "d"))
	assert.Equal(t, attr(t, v, d.Ino).Nlink, 0, "links")
	_, more, err := s.Next(op())
	assert.True(t, !more && err == nil, "stream of a removed directory:", more, err)
	lookupNone(t, v, d.Ino, "x")
	v.Forget(d.Ino, 1)
	waitFor(t, "record to go", func() bool { return v.tab.count() == 1 })
	waitFor(t, "watch to go", func() bool { return v.Status().Watched == 1 })
}

func lookupNone(t testing.TB, v *Volume, dir wsfs.Ino, name string) wsfs.Entry {
	t.Helper()
	e, err := v.Lookup(op(), dir, name)
	assert.Must(t, err == nil && e.Ino == 0, name, e.Ino, err)
	return e
}

func TestOtherLinkStays(t *testing.T) {
	v, _ := serve(t, Options{})
	base := v.fds.open.Load()
	e := create(t, v, wsfs.RootIno, "a", "x")
	must[wsfs.Entry](t)(v.Link(op(), e.Ino, wsfs.RootIno, "b"))
	lookup(t, v, wsfs.RootIno, "a")
	ok(t, v.Unlink(op(), wsfs.RootIno, "a"))
	assert.Equal(t, attr(t, v, e.Ino).Nlink, 1, "links")
	assert.Equal(t, lookup(t, v, wsfs.RootIno, "b").Ino, e.Ino, "b")
	assert.Equal(t, v.fds.open.Load(), base, "descriptors: a file with a name needs none")
	attr(t, v, e.Ino)
}

// What was replaced behind our back is ESTALE, never the other file.
func TestReplacedBehindOurBack(t *testing.T) {
	v, dir := serve(t, Options{})
	e := create(t, v, wsfs.RootIno, "f", "old")
	d := must[wsfs.Entry](t)(v.Mkdir(op(), wsfs.RootIno, "d", 0o755))
	in := create(t, v, d.Ino, "in", "x")
	v.res.ring.cap = 1
	v.res.ring.evict(d.Ino)
	v.res.ring.evict(d.Ino)
	ok(t, os.Rename(filepath.Join(dir, "f"), filepath.Join(dir, "gone")))
	ok(t, os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "dgone")))
	writeFile(t, "new one", dir, "f")
	ok(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	writeFile(t, "wrong", dir, "d", "in")
	for name, f := range map[string]func() error{
		"attr":     func() error { _, err := v.Attr(op(), e.Ino, nil); return err },
		"open":     func() error { _, err := v.Open(op(), e.Ino, unix.O_RDONLY); return err },
		"truncate": func() error { _, err := v.Open(op(), e.Ino, unix.O_WRONLY|unix.O_TRUNC); return err },
		"chmod": func() error {
			_, err := v.SetAttr(op(), e.Ino, nil, &wsfs.SetAttr{Mode: ptr(uint32(0))})
			return err
		},
		"below": func() error { _, err := v.Attr(op(), in.Ino, nil); return err },
		"make":  func() error { _, err := v.Mkdir(op(), d.Ino, "n", 0o755); return err },
		"link":  func() error { _, err := v.Link(op(), e.Ino, wsfs.RootIno, "n"); return err },
		"xattr": func() error { return v.SetXattr(op(), e.Ino, "user.x", nil, 0) },
	} {
		assert.Is(t, f(), syscall.ESTALE, name)
	}
	got, _ := os.ReadFile(filepath.Join(dir, "f"))
	assert.True(t, string(got) == "new one", "the other file is now", got)
}

// Whatever the order of lookups, forgets and changes: a number means one file
// for as long as it is referenced, and nothing is left after the last Forget.
func TestReferences(t *testing.T) {
	tier.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "direct")
		assert.OK(t, err)
		defer os.RemoveAll(dir)
		v, err := Open(context.Background(), dir, Options{Watch: rapid.Bool().Draw(t, "watch"), tune: tuning{ring: 2}})
		assert.OK(t, err)
		m := &model{v: v, refs: map[wsfs.Ino]uint64{}, disk: map[wsfs.Ino]uint64{}}
		t.Repeat(map[string]func(*rapid.T){
			"lookup": m.lookup, "create": m.create, "unlink": m.unlink,
			"rename": m.rename, "link": m.link, "forget": m.forget, "": m.check,
		})
		for ino, n := range m.refs {
			v.Forget(ino, n)
		}
		if got := v.tab.count(); got != 1 {
			t.Fatalf("%d inodes are left", got-1)
		}
		assert.OK(t, v.Close())
	})
}

type model struct {
	v    *Volume
	refs map[wsfs.Ino]uint64 // what the kernel holds
	disk map[wsfs.Ino]uint64 // the disk's number behind each, for good
}

func (m *model) name(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
}

func (m *model) took(t *rapid.T, e wsfs.Entry, err error) {
	if err != nil || e.Ino == 0 {
		return
	}
	was, known := m.disk[e.Ino]
	assert.Must(t, !known || was == uint64(e.Attr.Ino), "number", e.Ino, "meant", was, "now", e.Attr.Ino)
	m.disk[e.Ino] = uint64(e.Attr.Ino)
	for other, n := range m.refs {
		assert.Must(t, n <= 0 || other == e.Ino || m.disk[other] != uint64(e.Attr.Ino), "file", e.Attr.Ino, "has two numbers", other, "and", e.Ino)
	}
	m.refs[e.Ino]++
}

func (m *model) lookup(t *rapid.T) {
	e, err := m.v.Lookup(op(), wsfs.RootIno, m.name(t))
	m.took(t, e, err)
}

func (m *model) create(t *rapid.T) {
	e, o, err := m.v.Create(op(), wsfs.RootIno, m.name(t), unix.O_RDWR, 0o644)
	m.took(t, e, err)
	if err == nil {
		o.File.Release()
	}
}

func (m *model) unlink(t *rapid.T) { m.v.Unlink(op(), wsfs.RootIno, m.name(t)) }

func (m *model) rename(t *rapid.T) {
	flags := rapid.SampledFrom([]uint32{0, unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE}).Draw(t, "flags")
	m.v.Rename(op(), wsfs.RootIno, m.name(t), wsfs.RootIno, m.name(t), flags)
}

func (m *model) link(t *rapid.T) {
	for _, ino := range m.known() {
		if m.refs[ino] > 0 {
			e, err := m.v.Link(op(), ino, wsfs.RootIno, m.name(t))
			m.took(t, e, err)
			return
		}
	}
}

func (m *model) forget(t *rapid.T) {
	for _, ino := range m.known() {
		if n := m.refs[ino]; n > 0 {
			k := rapid.Uint64Range(1, n).Draw(t, "n")
			m.v.Forget(ino, k)
			m.refs[ino] -= k
			return
		}
	}
}

// known are the numbers in an order that a seed repeats.
func (m *model) known() []wsfs.Ino { return slices.Sorted(maps.Keys(m.refs)) }

// check: every referenced inode answers, with its own number.
func (m *model) check(t *rapid.T) {
	for _, ino := range m.known() {
		if m.refs[ino] == 0 {
			delete(m.refs, ino)
			delete(m.disk, ino) // the disk may use it again
			continue
		}
		a, err := m.v.Attr(op(), ino, nil)
		if err != nil || uint64(a.Ino) != m.disk[ino] {
			t.Fatalf("inode %d: %d, %v; want %d", ino, a.Ino, err, m.disk[ino])
		}
	}
}

// The same from many goroutines at once, which forget what they were given; the
// race detector watches.
func TestReferencesInParallel(t *testing.T) {
	v, dir := serve(t, Options{Watch: true, tune: tuning{ring: 2}})
	base := 1
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 150 {
				name, other := fmt.Sprint((i+g)%3), fmt.Sprint((i*7+g)%3)
				switch (i + g) % 6 {
				case 0:
					if e, o, err := v.Create(op(), wsfs.RootIno, name, unix.O_RDWR, 0o644); err == nil {
						o.File.Write(op(), []byte("x"), 0)
						o.File.Release()
						v.Forget(e.Ino, 1)
					}
				case 1:
					v.Unlink(op(), wsfs.RootIno, name)
				case 2:
					v.Rename(op(), wsfs.RootIno, name, wsfs.RootIno, other, 0)
				case 3:
					os.Remove(filepath.Join(dir, name))
				default:
					if e, err := v.Lookup(op(), wsfs.RootIno, name); err == nil && e.Ino != 0 {
						v.Attr(op(), e.Ino, nil)
						v.Forget(e.Ino, 1)
					}
				}
			}
		}()
	}
	wg.Wait()
	waitFor(t, "every inode to be forgotten", func() bool { return v.tab.count() == base })
}

// Someone who swaps a directory for a link to the outside, over and over, never
// gets the outside served.
func TestNoWayOut(t *testing.T) {
	v, dir := serve(t, Options{tune: tuning{ring: 1}})
	out := t.TempDir()
	writeFile(t, "SECRET", out, "f")
	ok(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	writeFile(t, "inside", dir, "d", "f")
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Add(1)
	go func() {
		defer swapper.Done()
		d, side, link := filepath.Join(dir, "d"), filepath.Join(dir, "side"), filepath.Join(dir, "l")
		os.Symlink(out, link)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, r := range [][2]string{{d, side}, {link, d}, {d, link}, {side, d}} {
				os.Rename(r[0], r[1])
				runtime.Gosched() // on one processor, let the others meet it
			}
		}
	}()
	end := sync.OnceFunc(func() { close(stop); swapper.Wait() })
	defer end()
	swapped, reached, raced := 0, 0, 0
	try := func() {
		e, err := v.Lookup(op(), wsfs.RootIno, "d")
		if err != nil || e.Ino == 0 {
			return
		}
		if e.Attr.Mode&unix.S_IFMT == unix.S_IFLNK {
			swapped++
		}
		runtime.Gosched() // here it may be swapped
		f, err := v.Lookup(op(), e.Ino, "f")
		if err == syscall.ESTALE {
			raced++
		}
		if err == nil && f.Ino != 0 {
			reached++
			o, err := v.Open(op(), f.Ino, unix.O_RDONLY)
			if err == nil {
				assert.Equal(t, read(t, o.File), "inside", "served")
				o.File.Release()
			}
			v.Forget(f.Ino, 1)
		}
		if f, o, err := v.Create(op(), e.Ino, "new", unix.O_RDWR, 0o644); err == nil {
			o.File.Release()
			v.Forget(f.Ino, 1)
		}
		v.res.ring.evict(e.Ino)
		v.res.ring.evict(e.Ino)
		v.Forget(e.Ino, 1)
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && (reached < 50 || raced < 50); {
		try()
	}
	waitFor(t, "links, files and swaps between two steps", func() bool {
		try()
		return swapped > 0 && reached > 0 && raced > 0
	})
	end()
	left, _ := os.ReadDir(out)
	assert.True(t, len(left) == 1, "something was made outside:", left)
}

// A mount point below the root is refused, not entered.
func TestOtherMountsAreRefused(t *testing.T) {
	needRoot(t)
	var log bytes.Buffer
	v, dir := serve(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	m := filepath.Join(dir, "m")
	ok(t, os.Mkdir(m, 0o755))
	e := lookup(t, v, wsfs.RootIno, "m")
	assert.OK(t, unix.Mount("none", m, "tmpfs", 0, "size=64k"), "mount")
	defer unix.Unmount(m, unix.MNT_DETACH)
	assert.Is(t, assert.ErrOf(v.Lookup(op(), wsfs.RootIno, "m")), syscall.EACCES)
	v.res.ring.evict(e.Ino)
	_, _, err := v.Create(op(), e.Ino, "f", unix.O_RDWR, 0o644)
	wantErr(t, err, syscall.ESTALE)
	_, _ = v.Lookup(op(), wsfs.RootIno, "m")
	st := v.Status()
	assert.True(t, st.Refused == 2 && slices.Equal(st.OtherMounts, []string{"m"}), st.Refused, "refusals counted, of", st.OtherMounts)
	if n := strings.Count(log.String(), "path=m"); n != 1 {
		t.Errorf("the log has it %d times: %s", n, log.String())
	}
}

// A disk without birth times is told apart by file handles.
func TestWithoutBirthTimes(t *testing.T) {
	v, dir := serve(t, Options{tune: tuning{noBirth: true}})
	a := create(t, v, wsfs.RootIno, "a", "1")
	got := lookup(t, v, wsfs.RootIno, "a")
	assert.True(t, got.Ino == a.Ino, "a is", a.Ino, "then", got.Ino)
	o := must[wsfs.Opened](t)(v.Open(op(), a.Ino, unix.O_RDONLY))
	o.File.Release()
	var reused bool
	for i := 0; i < 200 && !reused; i++ { // until the disk uses the number again
		old := lookup(t, v, wsfs.RootIno, "a")
		ok(t, os.Remove(filepath.Join(dir, "a")))
		writeFile(t, "", dir, "a")
		now := lookup(t, v, wsfs.RootIno, "a")
		reused = now.Attr.Ino == old.Attr.Ino
		assert.Must(t, now.Ino != old.Ino, "two files have one number")
	}
	tier.Require(t, "a disk that uses numbers again", reused)
}

// What others replaced while it is open: an open by name is ESTALE, which makes
// the kernel look again; one that comes back with the same inode is served.
func TestOpenOfAReplacedOpenFile(t *testing.T) {
	v, dir := serve(t, Options{})
	e, o, err := v.Create(op(), wsfs.RootIno, "f", unix.O_RDWR, 0o644)
	ok(t, err)
	defer o.File.Release()
	must[int](t)(o.File.Write(op(), []byte("mine"), 0))
	writeFile(t, "theirs", dir, "new")
	ok(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "f")))
	_, err = v.Open(op(), e.Ino, unix.O_RDONLY)
	wantErr(t, err, syscall.ESTALE)
	o2 := must[wsfs.Opened](t)(v.Open(op(), e.Ino, unix.O_RDONLY))
	assert.Equal(t, read(t, o2.File), "mine", "the inode became")
	o2.File.Release()
	g := lookup(t, v, wsfs.RootIno, "f")
	p, named := v.Path(e.Ino)
	assert.False(t, named, "the replaced file is called", p)
	p, _ = v.Path(g.Ino)
	assert.True(t, p == "f", "the new file is called", p)
}

// A number has at most one file under each name, also when nobody told us that
// the file moved.
func TestLookupDisplaces(t *testing.T) {
	v, dir := serve(t, Options{})
	a := create(t, v, wsfs.RootIno, "a", "")
	ok(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	writeFile(t, "", dir, "a")
	lookup(t, v, wsfs.RootIno, "a")
	p, named := v.Path(a.Ino)
	assert.False(t, named, "moved file is called", p)
	lookup(t, v, wsfs.RootIno, "b")
	p, _ = v.Path(a.Ino)
	assert.True(t, p == "b", "found file is called", p)
}
