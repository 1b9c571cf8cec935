package content

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
)

// smallDisk is a store on a disk of its own.
func smallDisk(t *testing.T, options string, o Options) *Store {
	t.Helper()
	return openStore(t, mountDisk(t, options), o)
}

func mountDisk(t *testing.T, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, options); err != nil {
		tier.RequireRoot(t) // to mount a disk
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// stopped is a clock that stands still.
func stopped() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

// fill takes all that is free from a disk, as others do.
func fill(t *testing.T, s *Store) {
	t.Helper()
	f := assert.Of(os.CreateTemp(s.dir, "other")).OK(t)
	defer f.Close()
	if free := s.room.available(); free > 0 {
		assert.OK(t, unix.Fallocate(int(f.Fd()), 0, 0, free))
	}
}

// TestFullInSpiteOfTheBudget: a disk that others filled since it was last looked at
// is told by the write. Whatever writes gives up clean content then, and goes on.
func TestFullInSpiteOfTheBudget(t *testing.T) {
	const n = 256 << 10
	for _, c := range []struct {
		name string
		do   func(t *testing.T, s *Store, f *File) error
	}{
		{"write", func(t *testing.T, _ *Store, f *File) error {
			return assert.ErrOf(f.WriteAt(t.Context(), pattern(n, 1), 0))
		}},
		{"append", func(t *testing.T, _ *Store, f *File) error {
			off, done, err := f.Append(t.Context(), pattern(n, 1))
			assert.True(t, err != nil || off == 0 && done == n, "appended", done, "at", off)
			return err
		}},
		{"allocate", func(t *testing.T, _ *Store, f *File) error { return f.Allocate(t.Context(), 0, n, 0) }},
		{"copy", func(t *testing.T, s *Store, f *File) error {
			from := opened(t, s, 3) // the last of the clean, which is in use then
			defer from.Release()
			return assert.ErrOf(from.CopyRange(t.Context(), 0, f, 0, n))
		}},
		{"fetch", func(t *testing.T, s *Store, _ *File) error {
			b := &backend{data: pattern(n, 1)}
			g := using(t, sparse(t, s, 60, b, digestOf(b.data)))
			err := g.FetchAll(t.Context())
			assert.True(t, err != nil || b.count() == 1, "the source was asked at", b.calls)
			return err
		}},
		{"history", func(t *testing.T, s *Store, _ *File) error {
			from := using(t, opened(t, s, 3))
			return keepCopy(t, s, from, "kept")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := smallDisk(t, "size=4m", Options{Floor: 64 << 10, Ballast: 128 << 10, Now: stopped()})
			s.SetEvictor(func(int64) { s.Evict(yes) })
			for ino := uint64(1); ino <= 3; ino++ {
				clean(t, s, ino, 512<<10)
			}
			f := using(t, create(t, s, 50))
			assert.OK(t, s.room.take(1)) // so that it believes that there is room, and no second passes
			fill(t, s)
			assert.OK(t, c.do(t, s, f))
			assert.AtLeast(t, s.room.available(), s.room.floor, "bytes that are free")
			s.room.look(0)
			assert.True(t, hasBallast(s), "there is no ballast")
		})
	}
}

// TestFullWithoutClean: with nothing to be given up, a write of content ends, and the
// ballast goes to those that it is for; names and maps are among them.
func TestFullWithoutClean(t *testing.T) {
	s := smallDisk(t, "size=4m", Options{Floor: 64 << 10, Ballast: 512 << 10, Now: stopped()})
	var asked atomic.Int64 // in the background too, once the ballast is gone
	s.SetEvictor(func(int64) { asked.Add(1); s.Evict(yes) })
	f := using(t, create(t, s, 50))
	assert.OK(t, s.room.take(1))
	fill(t, s)
	wantErr(t, assert.ErrOf(f.WriteAt(t.Context(), pattern(64<<10, 1), 0)), unix.ENOSPC)
	assert.True(t, asked.Load() > 0 && asked.Load() <= fullTries, "times asked:", asked.Load())
	assert.False(t, hasBallast(s), "the ballast is kept")
	assert.Equal(t, f.Size(), 0, "bytes written")
	b := &backend{data: pattern(8<<20, 1)}
	g := sparse(t, s, 60, b, "") // has a map
	defer g.Release()
	got := make([]byte, 4096)
	assert.OK(t, assert.ErrOf(g.ReadAt(t.Context(), got, 0)))
	assert.Equal(t, string(got), string(b.data[:4096]), "read on a full disk")
}

// TestFullQuota: a quota that is used up, which nothing tells of beforehand, is a full disk:
// clean content is given up, and without any the write is told.
func TestFullQuota(t *testing.T) {
	s := openStore(t, t.TempDir(), small())
	s.SetEvictor(func(int64) { s.Evict(yes) })
	clean(t, s, 1, 4096)
	assert.OK(t, s.room.whileFull(1, func() error {
		if len(left(t, s)) > 0 {
			return unix.EDQUOT
		}
		return nil
	}))
	wantErr(t, s.room.whileFull(1, func() error { return unix.EDQUOT }), unix.EDQUOT)
}

// TestNoInodes: a disk that has bytes and no inodes is full, too, and what could not be
// made once can be later.
func TestNoInodes(t *testing.T) {
	s := smallDisk(t, "size=4m,nr_inodes=64", Options{Floor: 64 << 10, Ballast: -1})
	s.SetEvictor(func(int64) { s.Evict(yes) })
	clean(t, s, 1, 4096)
	for i := 0; ; i++ {
		if os.WriteFile(filepath.Join(s.dir, "other", nameOf(uint64(i))), nil, 0o600) != nil && i > 0 {
			break
		}
		if i == 0 {
			assert.OK(t, os.Mkdir(filepath.Join(s.dir, "other"), 0o700))
		}
	}
	create(t, s, 2).Release()
	assert.Slice(t, left(t, s), []uint64{2}, "left")
	wantErr(t, assert.ErrOf(s.Create(5000, "")), unix.ENOSPC) // needs a directory as well
	assert.OK(t, os.RemoveAll(filepath.Join(s.dir, "other")))
	create(t, s, 5000).Release()
}

// TestFetchLeavesTheFloor: what comes while others fill the disk is not kept at the cost
// of the floor, though there was room for it when it was asked for.
func TestFetchLeavesTheFloor(t *testing.T) {
	var free atomic.Int64
	free.Store(10_000)
	o := small()
	o.Floor, o.Statfs = 4000, func(_ string, st *unix.Statfs_t) error {
		*st = unix.Statfs_t{Bsize: 1, Frsize: 1, Blocks: 1 << 30, Bavail: uint64(free.Load())}
		return nil
	}
	b := &backend{data: pattern(640, 1), do: func(context.Context, int, int64, int64, io.WriterAt) (bool, error) {
		free.Store(4100)
		return false, nil
	}}
	f := using(t, sparse(t, openStore(t, t.TempDir(), o), 7, b, ""))
	wantErr(t, f.FetchAll(t.Context()), unix.ENOSPC)
	assert.Equal(t, f.Missing(), 640, "bytes missing")
	wantBytes(t, f, b.data)
}

// waitsFor wants try to wait for the release of a file, and then to succeed. It is for a
// bubble of synctest.
func waitsFor(t *testing.T, used *File, try func() error) {
	t.Helper()
	done := make(chan error)
	go func() { done <- try() }()
	synctest.Wait()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	used.Release()
	assert.OK(t, <-done)
}

// TestOpenWaitsForReleases: likewise for a file that is made, which takes room for its name
// and its map alone.
func TestOpenWaitsForReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, free := small(), int64(10_000) // others take at once what is given up
		o.Statfs = disk(&free)
		s := openStore(t, t.TempDir(), o)
		s.SetEvictor(func(int64) { s.Evict(yes) })
		clean(t, s, 1, 100)
		used := opened(t, s, 1)
		waitsFor(t, used, func() error {
			f, err := s.make(func() (*File, error) {
				if got := left(t, s); len(got) > 0 {
					return s.newFile(2, ""), unix.ENOSPC
				}
				return s.newFile(2, ""), nil
			})
			if err == nil {
				f.Release()
			}
			return err
		})
	})
}

// TestOthersTakeWhatIsGivenUp: clean content is given up until a write has its room, also
// when another program takes what the first of it frees.
func TestOthersTakeWhatIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *Store) error
	}{
		{"before the write", func(s *Store) error { return s.room.take(100) }},
		{"after it failed", func(s *Store) error {
			return s.room.whileFull(100, func() error {
				if s.room.available() < 5000 {
					return unix.ENOSPC
				}
				return nil
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, free := tight(t)
			for ino := range uint64(3) {
				clean(t, s, ino+1, 100)
			}
			runs := 0
			s.SetEvictor(func(int64) {
				s.EvictFor(1, yes)
				if runs++; runs == 2 {
					*free += 4096
				}
			})
			*free = 4000
			s.room.forget()
			assert.OK(t, c.do(s))
			assert.Slice(t, left(t, s), []uint64{3}, "left")
			*free = 4000
			runs = 2
			s.room.forget()
			wantErr(t, c.do(s), unix.ENOSPC) // when there is no more
			assert.Slice(t, left(t, s), nil, "left")
		})
	}
}

// TestWriterWaitsForReleases: content that another program has just closed makes room for
// a write, though the kernel tells of that later; content that stays in use does not hold
// up the error.
func TestWriterWaitsForReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, free := tight(t)
		s.SetEvictor(func(int64) { s.Evict(func(uint64) bool { *free += 4096; return true }) })
		clean(t, s, 1, 100)
		used := opened(t, s, 1)
		f := using(t, create(t, s, 2))
		*free = 4000
		s.room.forget()
		wantErr(t, assert.ErrOf(f.WriteAt(t.Context(), pattern(1000, 1), 0)), unix.ENOSPC) // ends in the bubble's time
		waitsFor(t, used, func() error {
			return assert.ErrOf(f.WriteAt(t.Context(), pattern(1000, 1), 0))
		})
		assert.Slice(t, left(t, s), []uint64{2}, "left")
	})
}

// Where not even a name fits, what is not here is opened and read, and kept once there is
// room again.
func TestOpensOnAFullDisk(t *testing.T) {
	for _, size := range []int{640, 10} { // with a map, and without
		s := smallDisk(t, "size=1m,nr_inodes=300", small())
		for n := 0; os.WriteFile(filepath.Join(s.dir, fmt.Sprint("other", n)), nil, 0o600) == nil; n++ {
		}
		b := &backend{data: pattern(size, 1)}
		f := using(t, sparse(t, s, 7, b, ""))
		wantBytes(t, f, b.data)
		assert.Equal(t, f.Missing(), int64(size), "bytes missing: something was stored")
		assert.OK(t, f.Sync())
		assert.True(t, f.Quiet(), "is quiet")
		wantErr(t, assert.ErrOf(f.ReadAt(t.Context(), make([]byte, 1), int64(size))), io.EOF)
		at := assert.Of(f.Seek(5, unix.SEEK_DATA)).OK(t)
		assert.Equal(t, at, 5, "data at")
		wantErr(t, assert.ErrOf(f.WriteAt(t.Context(), []byte("new"), 0)), unix.ENOSPC)
		for n := range 4 { // its data, its map, and their directories
			assert.OK(t, os.Remove(filepath.Join(s.dir, fmt.Sprint("other", n))))
		}
		write(t, f, []byte("new"), 0)
		wantBytes(t, f, append([]byte("new"), b.data[3:]...))
		assert.Equal(t, f.Missing(), 0, "bytes missing with room again")
	}
}
