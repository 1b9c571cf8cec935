package content

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

func TestCreateOpenRemove(t *testing.T) {
	s := openStore(t, t.TempDir(), small())
	wantErr(t, assert.ErrOf(s.Open(7)), fs.ErrNotExist)
	f := assert.Of(s.Create(7, "a")).OK(t)
	write(t, f, []byte("hello"), 0)
	g := opened(t, s, 7)
	assert.Equal(t, f, g, "two Files for one inode")
	f.Release()
	wantBytes(t, g, []byte("hello"))
	s.Remove(7)
	wantBytes(t, g, []byte("hello")) // lives on
	write(t, g, []byte("J"), 0)
	wantBytes(t, g, []byte("Jello"))
	wantErr(t, assert.ErrOf(s.Open(7)), fs.ErrNotExist)
	g.Release()
	s.Remove(7) // again
}

func TestReplacedContentLivesOn(t *testing.T) {
	data := pattern(640, 1)
	for _, c := range []struct {
		name string
		make func(s *Store) (*File, error)
		size int64
	}{
		{"by Create", func(s *Store) (*File, error) { return s.Create(7, "") }, 0},
		{"by Sparse of many blocks", func(s *Store) (*File, error) { return s.Sparse(7, "", 640, "") }, 640},
		{"by Sparse of one block", func(s *Store) (*File, error) { return s.Sparse(7, "", 10, "") }, 10},
	} {
		for _, whole := range []bool{true, false} {
			t.Run(fmt.Sprint(c.name, ", whole ", whole), func(t *testing.T) {
				s := openStore(t, t.TempDir(), small())
				b := &backend{data: data}
				old := using(t, sparse(t, s, 7, b, ""))
				assert.OK(t, old.Fetch(t.Context(), 0, 10))
				if whole {
					assert.OK(t, old.FetchAll(t.Context()))
				}
				f := assert.Of(c.make(s)).OK(t)
				defer f.Release()
				f.SetSource(b.source)
				assert.Equal(t, f.Size(), c.size, "size")
				assert.OK(t, f.Fetch(t.Context(), 0, min(10, c.size)))
				wantBytes(t, old, data) // also what it fetches only now
				assert.True(t, c.size != 640 || s.dirs.mapped(7), "the old file took the new one's map away")
				write(t, old, []byte("late"), 0)
				wantBytes(t, f, data[:c.size])
				assert.OK(t, old.Sync())
				g := using(t, opened(t, s, 7))
				assert.True(t, g == f && g.Whole(), "the old file is still in the way")
			})
		}
	}
}

// TestOpenDuringReplace lets inodes be opened while their content is replaced:
// whoever opens gets one or the other, and one File serves all.
func TestOpenDuringReplace(t *testing.T) {
	s := openStore(t, t.TempDir(), small())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 300 {
				f, err := s.Open(7)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if got := make([]byte, 1); f.Size() > 0 {
					_, err := f.ReadAt(t.Context(), got, 0)
					assert.True(t, err == nil && got[0] == 'x', "read", got, err)
				}
				f.Release()
			}
		})
	}
	for range 300 {
		f := create(t, s, 7)
		write(t, f, []byte("x"), 0)
		f.Release()
		g := opened(t, s, 7)
		wantBytes(t, g, []byte("x"))
		g.Release()
	}
	wg.Wait()
}

func TestNoDescriptorsLeft(t *testing.T) {
	dir := t.TempDir()
	before := descriptors(t)
	s := openStore(t, dir, small())
	b := &backend{data: pattern(640, 1)}
	for ino := uint64(1); ino < 30; ino++ {
		f := sparse(t, s, ino, b, "")
		assert.OK(t, assert.ErrOf(f.ReadAt(t.Context(), make([]byte, 10), 100)))
		write(t, f, []byte("x"), 3)
		v := assert.Of(f.Snapshot(t.Context())).OK(t)
		write(t, f, []byte("y"), 3)
		if ino%3 == 0 {
			s.Remove(ino)
		}
		f.Quiet()
		f.Release()
		v.Close()
		v.Close() // does nothing
	}
	s.work.running.Wait() // fetches that end
	open := descriptors(t)
	opened(t, s, 1).Release()
	assert.Equal(t, descriptors(t), open, "descriptors after a release")
	assert.OK(t, s.Close())
	assert.Equal(t, descriptors(t), before, "descriptors after Close")
	wantErr(t, assert.ErrOf(s.Open(1)), ErrClosed)
	wantErr(t, assert.ErrOf(s.Create(2, "")), ErrClosed)
}

func TestEachKnowsPaths(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, small())
	for ino, path := range map[uint64]string{7: "a/b", 5000: "c", 1 << 40: "d"} {
		f := assert.Of(s.Create(ino, path)).OK(t)
		write(t, f, pattern(int(ino%100), 1), 0)
		f.Release()
	}
	s.SetPath(5000, "moved")
	b := &backend{data: pattern(640, 1)}
	p := sparse(t, s, 8, b, "") // partial and clean
	assert.OK(t, p.Fetch(t.Context(), 0, 1))
	p.Release()
	assert.OK(t, s.Close())

	s = openStore(t, dir, small())
	var got []string
	assert.OK(t, s.Each(func(ino uint64, path string, size int64, partial bool) {
		got = append(got, fmt.Sprint(ino, " ", path, " ", size, " ", partial))
	}))
	slices.Sort(got)
	want := []string{"1099511627776 d 76 false", "5000 moved 0 false", "7 a/b 7 false", "8  640 true"}
	assert.Slice(t, got, want)
}

func TestHalfMadeThingsGo(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, small())
	b := &backend{data: pattern(640, 1)}
	one := sparse(t, s, 7, &backend{data: pattern(10, 1)}, "") // never comes
	many := sparse(t, s, 8, b, "")
	assert.OK(t, many.Fetch(t.Context(), 0, 1))
	assert.OK(t, os.Remove(filepath.Join(dir, "data/00/8"))) // an unlink that was cut off

	openStore(t, dir, small())
	for _, d := range []string{"part", "map"} {
		left, _ := os.ReadDir(filepath.Join(dir, d))
		assert.Equal(t, len(left), 0, "files left in", d, left)
	}
	one.Release()
	many.Release()
}

func TestDamagedMap(t *testing.T) {
	dir := t.TempDir()
	for name, damage := range map[string]func(data []byte) []byte{
		"empty":        func(data []byte) []byte { return nil },
		"cut":          func(data []byte) []byte { return data[:len(data)-1] },
		"a bit":        func(data []byte) []byte { data[16] ^= 1; return data },
		"another file": func(data []byte) []byte { return pattern(len(data), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, dir, small())
			f := sparse(t, s, 8, &backend{data: pattern(640, 1)}, "")
			assert.OK(t, f.Fetch(t.Context(), 0, 1))
			f.Release()
			path := filepath.Join(dir, "map/8")
			data := assert.Of(os.ReadFile(path)).OK(t)
			assert.OK(t, os.WriteFile(path, damage(data), 0o600))
			wantErr(t, assert.ErrOf(s.Open(8)), ErrDamaged)
			s.Remove(8)
		})
	}
}

// A kill while content is made, or takes the place of older content, leaves nothing
// of the one for the other: all is fetched. kills leave a map, and a file that has
// not its size yet, or is the older one.
func TestMakingIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	for name, left := range map[string][]byte{
		"no size yet": nil, "shorter": pattern(200, 9), "longer": pattern(1000, 9),
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, dir, small())
			b := &backend{data: pattern(640, 1)}
			made := sparse(t, s, 8, b, digestOf(b.data))
			assert.OK(t, made.Fetch(t.Context(), 0, 1)) // else nothing is left of it
			made.Release()
			path := filepath.Join(dir, "data/00/8")
			assert.OK(t, assert.ErrOf(os.Stat(path)))
			assert.OK(t, os.WriteFile(path, left, 0o600))
			for range 2 { // once more, after a kill before the first byte came
				f := opened(t, openStore(t, dir, small()), 8)
				assert.Equal(t, f.Size(), 640, "size")
				assert.False(t, f.Present(0, 1) || f.Present(639, 1), "something is here")
				f.Release()
			}
			f := opened(t, s, 8)
			f.SetSource(b.source)
			wantBytes(t, f, b.data)
			f.Release()
			s.Remove(8)
		})
	}
}

func TestAfterAnotherBoot(t *testing.T) {
	dir := t.TempDir()
	o := small()
	o.boot = "one"
	b := &backend{data: pattern(640, 1)}
	f := sparse(t, openStore(t, dir, o), 7, b, "")
	assert.OK(t, f.Fetch(t.Context(), 0, 64))
	assert.OK(t, f.Sync())
	assert.OK(t, f.Fetch(t.Context(), 64, 64))  // may be lost
	write(t, f, pattern(64, 9), 128)            // may be lost too, but only we had it
	assert.OK(t, f.Fetch(t.Context(), 192, 64)) // and written after
	write(t, f, []byte("x"), 200)
	f.Release()

	for _, c := range []struct {
		boot string
		want []bool
	}{
		{"one", []bool{true, true, true, true, false}},
		{"two", []bool{true, false, true, true, false}},
		{"two", []bool{true, false, true, true, false}},
	} {
		o.boot = c.boot
		f := opened(t, openStore(t, dir, o), 7)
		for i, want := range c.want {
			assert.Equal(t, f.Present(int64(i)*64, 1), want, "boot", c.boot, "block", i, "is present")
		}
		f.Release()
	}
}

// A block that comes after a sync has begun may have missed it: after another boot it is
// fetched again.
func TestFetchedDuringSync(t *testing.T) {
	dir := t.TempDir()
	o := small()
	o.boot = "one"
	var during func()
	o.Fsync = func(fd int) error {
		err := unix.Fsync(fd)
		if f := during; f != nil {
			during = nil
			f()
		}
		return err
	}
	f := sparse(t, openStore(t, dir, o), 7, &backend{data: pattern(640, 1)}, "")
	assert.OK(t, f.Fetch(t.Context(), 0, 64))
	during = func() { assert.OK(t, f.Fetch(t.Context(), 64, 64)) }
	assert.OK(t, f.Sync())
	f.Release()

	o.boot, o.Fsync = "two", nil
	f = using(t, opened(t, openStore(t, dir, o), 7))
	for i, want := range []bool{true, false} {
		assert.Equal(t, f.Present(int64(i)*64, 1), want, "block", i, "is present")
	}
}

func TestSyncLetsTheMapGo(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, small())
	f := using(t, sparse(t, s, 7, &backend{data: pattern(640, 1)}, ""))
	write(t, f, []byte("x"), 100)
	assert.OK(t, f.FetchAll(t.Context()))
	assert.Must(t, s.dirs.mapped(7), "the map of a changed file went before its bytes were synced")
	assert.OK(t, f.Sync())
	assert.False(t, s.dirs.mapped(7), "the map is still there")
}

func TestSyncErrorsStay(t *testing.T) {
	o := small()
	fails := true
	o.Fsync = func(fd int) error {
		if fails {
			fails = false
			return unix.EIO
		}
		return unix.Fsync(fd)
	}
	f := using(t, create(t, openStore(t, t.TempDir(), o), 7))
	write(t, f, []byte("x"), 0)
	wantErr(t, f.Sync(), unix.EIO)
	wantErr(t, f.Sync(), unix.EIO)
}

// Where a disk keeps no name with the content, the first sync of a file is of both.
func TestSyncOfTheName(t *testing.T) {
	o, dir := small(), assert.Of(filepath.EvalSymlinks(t.TempDir())).OK(t)
	var synced []string
	o.Fsync = func(fd int) error {
		synced = append(synced, assert.Of(os.Readlink(fmt.Sprint("/proc/self/fd/", fd))).OK(t))
		return unix.Fsync(fd)
	}
	s := openStore(t, dir, o)
	s.dirs.syncDir = true
	f := using(t, create(t, s, 7))
	for range 2 {
		write(t, f, []byte("x"), 0)
		assert.OK(t, f.Sync())
	}
	assert.Slice(t, synced, []string{dir + "/data/00/7", dir + "/data/00"})
}

func TestQuiet(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, small())
	f := using(t, create(t, s, 7))
	write(t, f, pattern(4096, 1), 0)
	path := filepath.Join(dir, "data/00/7")
	quiet := func(when string, want bool) {
		t.Helper()
		assert.Equal(t, f.Quiet(), want, when, "quiet")
	}
	quiet("only ours", true)
	write(t, f, []byte("more"), 0)
	quiet("after our write", true)

	other := assert.Of(os.OpenFile(path, os.O_RDWR, 0)).OK(t)
	quiet("with a writer", false)
	mem := assert.Of(unix.Mmap(int(other.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)).OK(t)
	other.Close()
	quiet("with a mapping", false)
	assert.OK(t, unix.Munmap(mem))
	quiet("after it went", true)

	other = assert.Of(os.Open(path)).OK(t)
	defer other.Close()
	quiet("with a reader", true)
	write(t, f, []byte("still writable"), 0)
	wantBytes(t, f, append([]byte("still writable"), pattern(4096, 1)[14:]...))
}

func TestFdIsReadOnly(t *testing.T) {
	s := openStore(t, t.TempDir(), small())
	f := using(t, create(t, s, 7))
	write(t, f, []byte("x"), 0)
	flags := assert.Of(unix.FcntlInt(uintptr(f.Fd()), unix.F_GETFL, 0)).OK(t)
	assert.Equal(t, flags&unix.O_ACCMODE, unix.O_RDONLY, "flags")
	st, _ := f.held.stat()
	assert.True(t, f.Blocks() == st.Blocks && f.Mtime() != 0, f.Blocks(), "blocks, mtime", f.Mtime())
}

func TestZerosAreNotStored(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{Floor: -1, Ballast: -1})
	f := assert.Of(s.Sparse(7, "", 1<<40, "")).OK(t)
	defer f.Release()
	assert.OK(t, f.Truncate(t.Context(), 1<<41))
	assert.AtMost(t, f.Blocks()*512, 64<<10, "bytes taken for content that is not here")
}

// A truncation fetches nothing, and lasts: what it took does not come back.
func TestTruncateFetchesNothing(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, small())
	b := &backend{data: pattern(640, 1)}
	f := sparse(t, s, 7, b, "")
	assert.OK(t, f.Truncate(t.Context(), 100))
	assert.OK(t, f.Truncate(t.Context(), 700))
	one := using(t, sparse(t, s, 8, &backend{data: pattern(60, 1), do: b.do}, ""))
	assert.OK(t, one.Truncate(t.Context(), 0))
	assert.Equal(t, b.count(), 0, "calls", b.calls)
	f.Release()
	f = using(t, opened(t, openStore(t, dir, small()), 7)) // by another process
	f.SetSource(b.source)
	wantBytes(t, f, append(slices.Clone(b.data[:100]), make([]byte, 600)...))
	assert.Slice(t, b.calls, [][2]int64{{0, 100}}, "calls, of which one is for what is left")
}

func TestWritesFetchOnlyTheEdges(t *testing.T) {
	b := &backend{data: pattern(640, 1)}
	for _, c := range []struct {
		name   string
		off, n int64
		want   string
	}{
		{"aligned", 64, 128, "[]"},
		{"head", 70, 122, "[[64 64]]"},
		{"tail", 64, 130, "[[192 64]]"},
		{"both", 70, 200, "[[64 64] [256 64]]"},
		{"inside one", 70, 5, "[[64 64]]"},
		{"to the end", 600, 40, "[[576 64]]"},
		{"over the end", 576, 500, "[]"},
		{"behind the end", 700, 5, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.calls = nil
			f := alone(t, b, "")
			write(t, f, pattern(int(c.n), 9), c.off)
			assert.Equal(t, fmt.Sprint(b.calls), c.want, "calls")
		})
	}
}

// TestAppendsThatWait: who had to wait for a fetch appends where the file ends
// by then.
func TestAppendsThatWait(t *testing.T) {
	b := &backend{data: pattern(10, 1)}
	goOn := make(chan struct{})
	b.do = func(context.Context, int, int64, int64, io.WriterAt) (bool, error) {
		<-goOn
		return false, nil
	}
	f := alone(t, b, "")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, n, err := f.Append(t.Context(), []byte("abc"))
			assert.True(t, n == 3 && err == nil, "appended", n, err)
		})
	}
	waitFor(f, func(f *lockedFile) bool { return len(f.flights) == 1 && f.flights[0].waiters == 8 })
	close(goOn)
	wg.Wait()
	wantBytes(t, f, append(slices.Clone(b.data), bytes.Repeat([]byte("abc"), 8)...))
}

// TestShortWrites: what a write says that it wrote is there, also when the disk
// took less than was asked.
func TestShortWrites(t *testing.T) {
	for _, c := range []struct {
		off, n, takes, want int64
	}{
		{64, 256, 100, 64}, // the rest lies in a block that is to be fetched
		{64, 256, 64, 64},
		{64, 256, 63, 0},
		{70, 256, 100, 58}, // its first block had to be fetched
		{70, 10, 5, 5},
		{640, 100, 50, 50}, // behind the source
		{576, 100, 64, 64},
		{576, 100, 80, 80},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			o := small()
			left := c.takes
			o.write = func(fd int, p []byte, off int64) (int, error) {
				n, err := pwrite(fd, p[:min(left, int64(len(p)))], off)
				if left -= int64(n); n < len(p) {
					err = errors.Join(err, unix.ENOSPC)
				}
				return n, err
			}
			b := &backend{data: pattern(640, 1)}
			f := using(t, sparse(t, openStore(t, t.TempDir(), o), 7, b, ""))
			p := pattern(int(c.n), 9)
			n, err := f.WriteAt(t.Context(), p, c.off)
			wantErr(t, err, unix.ENOSPC)
			assert.Equal(t, int64(n), c.want, "wrote", n)
			want := slices.Clone(b.data)
			if more := c.off + c.want - 640; more > 0 {
				want = append(want, make([]byte, more)...)
			}
			copy(want[c.off:], p[:n])
			wantBytes(t, f, want)
		})
	}
}

func TestMissingIsDataToSeek(t *testing.T) {
	const block = 4096
	s := openStore(t, t.TempDir(), Options{Block: block, Floor: -1, Ballast: -1})
	f := using(t, sparse(t, s, 7, &backend{data: pattern(4*block, 1)}, ""))
	assert.OK(t, f.Fetch(t.Context(), block, 1))
	assert.OK(t, f.Truncate(t.Context(), 6*block))
	for _, c := range []struct {
		off    int64
		whence int
		want   int64
		err    error
	}{
		{0, unix.SEEK_HOLE, 4 * block, nil},
		{block + 1, unix.SEEK_HOLE, 4 * block, nil},
		{5 * block, unix.SEEK_HOLE, 5 * block, nil},
		{10, unix.SEEK_DATA, 10, nil},
		{3*block + 1, unix.SEEK_DATA, 3*block + 1, nil},
		{4 * block, unix.SEEK_DATA, 0, unix.ENXIO},
		{6 * block, unix.SEEK_HOLE, 0, unix.ENXIO},
		{0, 0, 0, unix.EINVAL},
	} {
		got, err := f.Seek(c.off, c.whence)
		assert.Is(t, err, c.err, "seek", c.whence, "from", c.off)
		assert.True(t, err != nil || got == c.want, "seek", c.whence, "from", c.off, "leads to", got, "want", c.want)
	}
}

func TestShiftingRanges(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{Block: 4096, Floor: -1, Ballast: -1, boot: "one"})
	b := &backend{data: pattern(5*4096, 1)}
	f := sparse(t, s, 7, b, "")
	write(t, f, b.data[:4096], 0) // changed, so that its map stays
	err := f.Allocate(t.Context(), 4096, 4096, unix.FALLOC_FL_COLLAPSE_RANGE)
	tier.Require(t, "a file system that shifts ranges", err != unix.EOPNOTSUPP)
	assert.OK(t, err)
	want := append(slices.Clone(b.data[:4096]), b.data[2*4096:]...)
	wantBytes(t, f, want)
	assert.OK(t, f.Allocate(t.Context(), 0, 4096, unix.FALLOC_FL_INSERT_RANGE))
	want = append(make([]byte, 4096), want...)
	wantBytes(t, f, want)
	f.Release()
	f = using(t, opened(t, openStore(t, s.dir, Options{Block: 4096, Floor: -1, Ballast: -1, boot: "two"}), 7))
	wantBytes(t, f, want) // nothing is fetched to where it was before
}

func TestCopyBetweenFiles(t *testing.T) {
	s := openStore(t, t.TempDir(), small())
	b := &backend{data: pattern(640, 1)}
	from := using(t, sparse(t, s, 7, b, ""))
	to := using(t, create(t, s, 8))
	n := assert.Of(from.CopyRange(t.Context(), 100, to, 10, 10000)).OK(t)
	assert.Equal(t, n, 540, "copied")
	wantBytes(t, to, append(make([]byte, 10), b.data[100:]...))
}

func TestBigFilesHaveBigBlocks(t *testing.T) {
	o := Options{}.withDefaults()
	for _, c := range []struct{ size, want int64 }{
		{0, 1 << 20}, {1 << 36, 1 << 20}, {1<<36 + 1, 1 << 21}, {1 << 44, 1 << 28},
	} {
		assert.Equal(t, o.blockOf(c.size), c.want, "size", c.size, "block")
	}
}
