package content

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/integration/assert"
)

// clean makes whole clean content of a size.
func clean(t testing.TB, s *Store, ino uint64, size int) {
	t.Helper()
	f := create(t, s, ino)
	write(t, f, pattern(size, byte(ino)), 0)
	f.Release()
	s.Clean(ino, int64(size), true)
}

func left(t testing.TB, s *Store) []uint64 {
	t.Helper()
	var out []uint64
	assert.OK(t, s.Each(func(ino uint64, _ string, _ int64, _ bool) { out = append(out, ino) }))
	slices.Sort(out)
	return out
}

func yes(uint64) bool { return true }

func TestEvictsWhatWasUsedLongestAgo(t *testing.T) {
	o := small()
	o.Limit = 3000
	s := openStore(t, t.TempDir(), o)
	for ino := uint64(1); ino <= 5; ino++ {
		clean(t, s, ino, 1000)
	}
	opened(t, s, 1).Release()
	var asked []uint64
	freed := s.Evict(func(ino uint64) bool { asked = append(asked, ino); return true })
	assert.Slice(t, asked, []uint64{2, 3}, "asked for")
	assert.Slice(t, left(t, s), []uint64{1, 4, 5}, "left")
	assert.AtLeast(t, freed, 2000, "freed")
	u := s.Usage()
	assert.True(t, u.Clean == 3000 && u.Files == 3, "usage", u)
	assert.Equal(t, s.Evict(yes), 0, "evicted more than it must")
}

func TestEvictLeavesAlone(t *testing.T) {
	o := small()
	o.Limit = 1
	dir := t.TempDir()
	s := openStore(t, dir, o)
	for ino := uint64(1); ino <= 7; ino++ {
		clean(t, s, ino, 1000)
	}
	s.Clean(1, 1000, false) // dirty
	inUse := opened(t, s, 2)
	foreign := assert.Of(os.OpenFile(filepath.Join(dir, "data/00/3"), os.O_RDWR, 0)).OK(t)
	var also *File
	s.Evict(func(ino uint64) bool {
		switch ino {
		case 1, 2, 3:
			t.Errorf("asked for %d", ino)
		case 4:
			return false
		case 5:
			also = opened(t, s, 5)
		case 7:
			opened(t, s, 7).Release()
		case 6:
			create(t, s, 6).Release()
		}
		return true
	})
	assert.Slice(t, left(t, s), []uint64{1, 2, 3, 4, 5, 6, 7}, "left")
	u := s.Usage()
	assert.True(t, u.Clean == 5000 && u.Dirty == 1000, "usage", u)
	inUse.Release()
	also.Release()
	foreign.Close()
	s.Evict(yes)
	assert.Slice(t, left(t, s), []uint64{1, 6}, "left")
}

func TestOverTheLimitTheEvictorIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small()
		o.Limit = 2500
		s := openStore(t, t.TempDir(), o)
		s.SetEvictor(func(int64) { s.Evict(yes) })
		for ino := uint64(1); ino <= 3; ino++ {
			clean(t, s, ino, 1000)
		}
		synctest.Wait()
		assert.Slice(t, left(t, s), []uint64{2, 3}, "left")
	})
}

// What was in use when there was too much goes when it no longer is, though
// nothing else happens then.
func TestEvictsLaterWhatWasInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small()
		o.Limit = 1000
		s := openStore(t, t.TempDir(), o)
		evicted := make(chan int64)
		s.SetEvictor(func(int64) { evicted <- s.Evict(yes) })
		f := create(t, s, 1)
		write(t, f, pattern(2000, 1), 0)
		s.Clean(1, 2000, true)
		for range 3 {
			assert.Must(t, <-evicted == 0, "content in use was given up")
		}
		f.Release()
		assert.AtLeast(t, <-evicted, 2000, "freed of what was in use before")
		time.Sleep(time.Hour) // of the bubble, where somebody who looked again would wait for ever
	})
}

// disk is a made-up disk.
func disk(free *int64) func(string, *unix.Statfs_t) error {
	return func(_ string, st *unix.Statfs_t) error {
		*st = unix.Statfs_t{Bsize: 1, Frsize: 1, Blocks: 1 << 30, Bfree: uint64(*free), Bavail: uint64(*free)}
		return nil
	}
}

func TestFloor(t *testing.T) {
	s, free := tight(t)
	b := &backend{data: pattern(6400, 1)}
	f := using(t, sparse(t, s, 50, b, ""))
	write(t, f, pattern(64, 2), 0) // here, with room on the disk
	assert.OK(t, f.Sync())
	assert.OK(t, s.room.take(6000))
	s.room.forget()
	wantErr(t, s.room.take(6001), unix.ENOSPC)

	*free = 4100
	g := using(t, create(t, s, 7))
	wantErr(t, assert.ErrOf(g.WriteAt(t.Context(), pattern(101, 1), 0)), unix.ENOSPC)
	_, _, err := g.Append(t.Context(), pattern(101, 1))
	wantErr(t, err, unix.ENOSPC)
	wantErr(t, g.Allocate(t.Context(), 0, 101, 0), unix.ENOSPC)
	assert.Equal(t, g.Size(), 0, "size")
	write(t, g, pattern(100, 1), 0)
	write(t, f, pattern(64, 3), 0) // takes no more
	*free = 3000
	write(t, f, pattern(64, 4), 0)
	n, err := f.CopyRange(t.Context(), 0, g, 1<<20, 64)
	assert.True(t, n == 0 && errors.Is(err, unix.ENOSPC), "copied", n, err)
	assert.OK(t, g.Truncate(t.Context(), 0)) // always goes

	*free = 100000
	assert.OK(t, g.Allocate(t.Context(), 0, 8192, 0))
	*free = 3000
	s.room.forget()
	write(t, g, pattern(8000, 1), 100) // was promised
	wantErr(t, assert.ErrOf(g.WriteAt(t.Context(), pattern(8000, 1), 200)), unix.ENOSPC)
	assert.OK(t, g.Truncate(t.Context(), 40000))
	wantErr(t, assert.ErrOf(g.WriteAt(t.Context(), pattern(100, 1), 20000)), unix.ENOSPC) // into a hole
}

// Available is just what may be written: what is free above the floor without the room of a
// ballast that was given up, and clean content, which is free as well.
func TestStatfs(t *testing.T) {
	free := int64(10000)
	o := small()
	o.Floor, o.Ballast, o.Statfs = 4000, 500, disk(&free)
	s := openStore(t, t.TempDir(), o)
	is := func(what string, free, available uint64) {
		t.Helper()
		st := assert.Of(s.Statfs()).OK(t)
		assert.Equal(t, [3]uint64{st.Blocks, st.Bfree, st.Bavail}, [3]uint64{1 << 30, free, available}, what)
	}
	is("a disk", 10000, 6000)
	assert.OK(t, s.room.take(6000))
	s.room.forget()
	wantErr(t, s.room.take(6001), unix.ENOSPC)
	clean(t, s, 1, 700)
	is("with clean content", 10700, 6700)
	s.Clean(1, 700, false)
	is("with content that is not clean", 10000, 6000)
	free = 3000
	is("below the floor", 3000, 0)
	s.Clean(1, 700, true)
	free = 1<<30 - 100
	is("no more than there is", 1<<30, 1<<30-4000)
	s.Clean(1, 700, false)
	free = 4900 // too little for another ballast to be made, which is looked at from here on
	assert.True(t, s.Relieve(), "there is a ballast")
	is("without the ballast", 4900, 400)
}

// On a disk that says that it is full while it shows room, as under a quota, the ballast is
// not made again of what it was given up for: not before others made as much room, or time
// went by.
func TestBallastUnderAQuota(t *testing.T) {
	free, now := int64(10000), time.Now()
	o := small()
	o.Floor, o.Ballast, o.Statfs = 4000, 500, disk(&free)
	o.Now = func() time.Time { return now }
	s := openStore(t, t.TempDir(), o)
	looks := func(want bool, when string) {
		t.Helper()
		s.work.running.Wait() // a look in the background, which giving it up asks for
		s.room.look(0)
		assert.Equal(t, hasBallast(s), want, when)
	}
	assert.True(t, s.Relieve(), "there is a ballast")
	looks(false, "at once")
	free += 999
	looks(false, "with too little room")
	free++
	looks(true, "with room for two")
	assert.True(t, s.Relieve(), "there is a ballast")
	looks(false, "at once, again")
	now = now.Add(unusableFor)
	looks(true, "after a while")
}

func TestRoomEvicts(t *testing.T) {
	s, free := tight(t)
	*free = 5000
	for ino := uint64(1); ino <= 3; ino++ {
		clean(t, s, ino, 100)
	}
	var need int64
	s.SetEvictor(func(n int64) {
		need = n
		s.Evict(func(uint64) bool { *free += 4096; return true })
	})
	s.room.forget()
	assert.OK(t, s.room.take(6000))
	assert.Equal(t, need, 6000, "asked for")
	assert.Slice(t, left(t, s), []uint64{3}, "left")
}

// TestReadsOnAFullDisk: what is not here can be read all the same.
func TestReadsOnAFullDisk(t *testing.T) {
	s, free := tight(t)
	b := &backend{data: pattern(640, 1)}
	f := using(t, sparse(t, s, 7, b, ""))
	write(t, f, []byte("abc"), 100)
	*free = 4000
	f.s.room.forget()
	want := slices.Clone(b.data)
	copy(want[100:], "abc")
	wantBytes(t, f, want)
	assert.Equal(t, f.Missing(), 640-64, "bytes missing: something was stored")
	assert.OK(t, assert.ErrOf(f.ReadAt(t.Context(), make([]byte, 300), 90)))
	wantErr(t, f.FetchAll(t.Context()), unix.ENOSPC)
	b.do = func(context.Context, int, int64, int64, io.WriterAt) (bool, error) { return true, nil }
	wantErr(t, assert.ErrOf(f.ReadAt(t.Context(), make([]byte, 10), 300)), io.ErrUnexpectedEOF)
}

// TestFullDisk fills a real one.
func TestFullDisk(t *testing.T) {
	s := smallDisk(t, "size=16m", Options{Floor: 1 << 20, Ballast: 2 << 20})
	avail := s.room.available
	assert.AtMost(t, avail(), 14<<20, "bytes free beside the ballast")
	f := using(t, create(t, s, 7))
	buf := pattern(256<<10, 1)
	var off int64
	var err error
	for err == nil {
		var n int
		n, err = f.WriteAt(t.Context(), buf, off)
		off += int64(n)
	}
	wantErr(t, err, unix.ENOSPC)
	assert.AtLeast(t, avail(), 1<<20, "bytes free, of which is the floor")
	assert.AtLeast(t, off, 12<<20, "bytes written")
	assert.True(t, hasBallast(s), "the ballast is gone while the floor held")

	// Others fill the rest.
	other := filepath.Join(s.dir, "other")
	_ = os.WriteFile(other, make([]byte, 4<<20), 0o600)
	assert.Equal(t, avail(), 0, "bytes free")
	wantErr(t, s.room.take(1), unix.ENOSPC)
	assert.AtLeast(t, avail(), 2<<20, "bytes free with the room of the ballast")
	assert.False(t, s.Relieve(), "gave the ballast up twice")
	assert.OK(t, os.WriteFile(filepath.Join(s.dir, "database"), buf, 0o600))

	// And go.
	assert.OK(t, os.Remove(other))
	assert.OK(t, f.Truncate(t.Context(), 1<<20))
	assert.OK(t, s.room.take(1))
	assert.True(t, hasBallast(s), "the ballast was not made again")
	got := make([]byte, 256<<10)
	assert.OK(t, assert.ErrOf(f.ReadAt(t.Context(), got, 0)))
	assert.True(t, bytes.Equal(got, buf), "the content is not what was written")
}

// Stores of one disk have one ballast, and none of them takes what another gave up.
func TestSharedBallast(t *testing.T) {
	disk := mountDisk(t, "size=16m")
	var stores []*Store
	for i := range 4 {
		dir := filepath.Join(disk, strconv.Itoa(i))
		assert.OK(t, os.Mkdir(dir, 0o700))
		assert.OK(t, os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 2<<20), 0o600)) // as there was before
		stores = append(stores, openStore(t, dir, Options{Floor: 1 << 20, Ballast: 2 << 20, BallastFile: filepath.Join(disk, "ballast")}))
	}
	free := stores[0].room.available
	assert.True(t, free() >= 13<<20 && free() <= 14<<20, free(), "bytes free beside one ballast")
	other := filepath.Join(disk, "other")
	_ = os.WriteFile(other, make([]byte, 16<<20), 0o600)
	for i, s := range stores {
		wantErr(t, s.room.take(1), unix.ENOSPC)
		s.work.running.Wait() // what making room does in the background, which would give up a later ballast
		assert.AtLeast(t, free(), 2<<20, "bytes free after store", i, "looked, with the room of the ballast")
		assert.False(t, s.Relieve(), "store", i, "gave up what another had given up")
	}
	assert.OK(t, os.Remove(other))
	for _, s := range stores {
		assert.OK(t, s.room.take(1))
	}
	assert.True(t, free() >= 13<<20 && free() <= 14<<20, free(), "bytes free once there is one ballast again")
	_ = os.WriteFile(other, make([]byte, 16<<20), 0o600)
	assert.True(t, stores[3].Relieve() && !stores[0].Relieve(), "the one ballast was not given up once")
}

func TestDefaultsFitTheDisk(t *testing.T) {
	for _, c := range []struct {
		name                string
		blocks              uint64
		floor, wantF, wantB int64
	}{
		{"large", 1 << 40, 0, 256 << 20, 64 << 20},
		{"medium", 10 << 30, 0, (10 << 30) / 50, 32 << 20},
		{"small", 1 << 30, 0, (1 << 30) / 50, 8 << 20},
		{"tiny", 30 << 20, 0, (30 << 20) / 50, (30 << 20) / 12},
		{"given", 1 << 40, 5, 5, 64 << 20},
		{"none", 1 << 40, -1, 0, 64 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t, t.TempDir(), Options{Floor: c.floor, Statfs: func(_ string, st *unix.Statfs_t) error {
				*st = unix.Statfs_t{Bsize: 1, Blocks: c.blocks}
				return nil
			}})
			assert.Equal(t, s.room.floor, c.wantF, "floor")
			assert.Equal(t, s.room.held.size, c.wantB, "ballast")
		})
	}
}

func TestHistory(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, small())
	clean(t, s, 1, 5000)
	f := opened(t, s, 1)
	assert.OK(t, keepCopy(t, s, f, "a"))
	write(t, f, []byte("later"), 0)
	assert.OK(t, s.Keep(1, "b"))
	f.Release()
	wantErr(t, assert.ErrOf(s.Open(1)), fs.ErrNotExist)
	kept := func(s *Store, id string, want []byte) {
		t.Helper()
		k := assert.Of(s.OpenKept(id)).OK(t)
		defer k.Close()
		got, err := io.ReadAll(k)
		assert.True(t, err == nil && bytes.Equal(got, want), id, "has", len(got), "bytes", err)
	}
	old := pattern(5000, 1)
	changed := append([]byte("later"), old[5:]...)
	kept(s, "a", old)
	kept(s, "b", changed)
	assert.Equal(t, s.KeptBytes(), 16384, "bytes kept")
	assert.OK(t, s.Close())

	s = openStore(t, dir, small())
	assert.Equal(t, s.Usage().Kept, 16384, "usage")
	g := assert.Of(s.Restore(t.Context(), "a", 9, "back")).OK(t)
	wantBytes(t, g, old)
	assert.OK(t, keepCopy(t, s, g, "b")) // in place of the other
	g.Release()
	kept(s, "b", old)
	assert.OK(t, s.DropKept("a"))
	assert.OK(t, s.DropKept("a"))
	assert.Equal(t, s.KeptBytes(), 8192, "bytes kept")
	var ids []string
	assert.OK(t, s.EachKept(func(id string) { ids = append(ids, id) }))
	assert.Slice(t, ids, []string{"b"}, "ids")
	wantErr(t, assert.ErrOf(s.OpenKept("a")), fs.ErrNotExist)
	wantErr(t, assert.ErrOf(s.Restore(t.Context(), "a", 10, "")), fs.ErrNotExist)
	for _, id := range []string{"", "..", "x/y", string(make([]byte, 300))} {
		wantErr(t, s.Keep(9, id), fs.ErrInvalid)
	}
	wantErr(t, s.Keep(100, "c"), fs.ErrNotExist)

	b := &backend{data: pattern(640, 1)}
	p := using(t, sparse(t, s, 11, b, ""))
	assert.OK(t, p.Fetch(t.Context(), 0, 1))
	wantErr(t, s.Keep(11, "c"), ErrPartial)
	assert.OK(t, keepCopy(t, s, p, "c"))
	kept(s, "c", b.data)
}

func TestKeptHolesStayHoles(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{Floor: -1, Ballast: -1})
	f := using(t, create(t, s, 1))
	assert.OK(t, f.Truncate(t.Context(), 64<<20))
	write(t, f, []byte("x"), 32<<20)
	assert.OK(t, keepCopy(t, s, f, "a"))
	g := assert.Of(s.Restore(t.Context(), "a", 2, "")).OK(t)
	defer g.Release()
	assert.Equal(t, g.Size(), 64<<20, "size")
	assert.AtMost(t, g.Blocks(), 1024, "blocks")
	assert.AtMost(t, s.KeptBytes(), 1<<20, "bytes kept")
}

// TestEvictionProtocol plays a caller who keeps a record of what is here under
// a lock of its own: whatever the record says is here can be opened under that
// lock, while others are evicted and come back.
func TestEvictionProtocol(t *testing.T) {
	o := small()
	o.Limit = 1
	s := openStore(t, t.TempDir(), o)
	const inos = 4
	var mu sync.Mutex
	var here [inos]bool
	take := func(ino uint64) *File {
		mu.Lock()
		defer mu.Unlock()
		if here[ino] {
			f, err := s.Open(ino)
			assert.Is(t, err, nil, "the record says that", ino, "is here")
			return f
		}
		f, err := s.Create(ino, "")
		if err != nil {
			t.Error(err)
			return nil
		}
		assert.Is(t, assert.ErrOf(f.WriteAt(t.Context(), pattern(100, byte(ino)), 0)), nil)
		here[ino] = true
		return f
	}
	evicted := 0
	may := func(ino uint64) bool {
		mu.Lock()
		defer mu.Unlock()
		all := s.inodes.lock()
		defer all.unlock()
		if all.files[ino] != nil {
			return false
		}
		evicted++
		here[ino] = false
		return true
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for i := range 400 {
				ino := uint64(i % inos)
				f := take(ino)
				if f == nil {
					return
				}
				got := make([]byte, 100)
				_, err := f.ReadAt(t.Context(), got, 0)
				assert.True(t, err == nil && bytes.Equal(got, pattern(100, byte(ino))), ino, "wrong content", err)
				mu.Lock()
				assert.True(t, here[ino], "the record lost", ino, "while it was in use")
				mu.Unlock()
				f.Release()
				s.Clean(ino, 100, true)
				if i%3 == 0 {
					s.Evict(may)
				}
			}
		})
	}
	wg.Wait()
	s.Evict(may)
	assert.False(t, evicted == 0, "nothing was evicted")
}
