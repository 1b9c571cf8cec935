package cache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// rows are a directory of small files in a store that counts its reads.
type rows struct {
	*world
	reads atomic.Int64
	hold  atomic.Pointer[chan struct{}] // reads wait for it to be closed; nil: they do not
}

const rowDir = "d"

func newRows(t *testing.T, files int, far time.Duration, change ...func(*world, *Options)) *rows {
	r := &rows{}
	store := func(w *world, o *Options) {
		o.far = far
		w.p = memory.New(memory.Options{Hook: func(ctx context.Context, m providers.Method, _ providers.Locator) error {
			if m != providers.MethodRead {
				return nil
			}
			r.reads.Add(1)
			if gate := r.hold.Load(); gate != nil {
				select {
				case <-*gate:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		}})
		for i := range files {
			w.tamper(rowPath(i), rowText(i))
		}
	}
	r.world = newWorld(t, append([]func(*world, *Options){store}, change...)...)
	r.list(rowDir)
	return r
}

func rowPath(i int) string { return fmt.Sprintf("%s/f%03d", rowDir, i) }
func rowText(i int) string { return fmt.Sprint("content of ", i) }

// readRow reads one file as a program does.
func (r *rows) readRow(i int) {
	r.Helper()
	assert.Equal(r, r.get(rowPath(i)), rowText(i), "file", i)
}

// settled waits until nothing is being fetched ahead, and says how many reads
// there were.
func (r *rows) settled() int64 {
	r.Helper()
	r.until(func() bool {
		if r.v.prefetch.Busy() > 0 {
			return false
		}
		locked := r.v.lock()
		defer locked.unlock()
		for _, ino := range r.v.prefetch.Unopened(locked.View) {
			if n := locked.table.Inode(ino); n == nil || n.State != table.Whole || locked.open.IsOpen(locked.View, ino) {
				return false
			}
		}
		return true
	})
	return r.reads.Load()
}

// Who reads one file gets one.
func TestOneFileIsOneRead(t *testing.T) {
	r := newRows(t, 20, 1)
	r.readRow(7)
	assert.Equal(t, r.settled(), 1, "reads")
}

// Who reads one file after the other finds the next ones here, each read once.
func TestSiblingsComeAhead(t *testing.T) {
	r := newRows(t, 100, 1)
	r.readRow(0)
	r.readRow(1)
	assert.Equal(t, r.settled(), int64(2+files.PrefetchLeast), "reads after two files")
	was := r.reads.Load()
	for i := 2; i < 2+files.PrefetchLeast; i++ {
		assert.Equal(t, r.record(rowPath(i)).State, table.Whole, "file", i)
	}
	r.readRow(2)
	assert.Equal(t, r.reads.Load(), was, "what was fetched ahead is read again")
	for i := 3; i < 100; i++ {
		r.readRow(i)
		r.settled()
	}
	assert.Equal(t, r.settled(), 100, "reads of 100 files")
}

// The number that is fetched ahead doubles as long as it is used, up to a bound.
func TestSiblingsDouble(t *testing.T) {
	r := newRows(t, 400, 1)
	most := 0
	for i := range 300 {
		r.readRow(i)
		r.settled()
		locked := r.v.lock()
		most = max(most, len(r.v.prefetch.Unopened(locked.View)))
		locked.unlock()
	}
	assert.Equal(t, most, files.PrefetchMost, "the most that were ahead")
}

// Threads side by side open names out of order, and each file is read once.
func TestSiblingsOfThreads(t *testing.T) {
	r := newRows(t, 200, 1)
	var next atomic.Int64
	var all sync.WaitGroup
	inos := map[int]fs.Ino{}
	for i := range 200 {
		inos[i] = r.walk(rowPath(i))
	}
	for range 8 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < 200; i = int(next.Add(1)) - 1 {
				o, err := r.v.Open(me, inos[i], syscall.O_RDONLY)
				if err != nil {
					t.Error(err)
					return
				}
				if d, err := o.File.Read(me, make([]byte, 100), 0); err != nil || string(d.Bytes) != rowText(i) {
					t.Errorf("file %d has %q, %v", i, d.Bytes, err)
				}
				o.File.Release()
			}
		})
	}
	all.Wait()
	assert.Equal(t, r.settled(), 200, "reads of 200 files")
	locked := r.v.lock()
	defer locked.unlock()
	assert.Equal(t, len(r.v.prefetch.Unopened(locked.View)), 0, "files count as unread")
}

// What was fetched ahead for nothing makes it harder to begin again.
func TestUnusedSiblingsStopIt(t *testing.T) {
	r := newRows(t, 300, 1)
	waste := []int64{}
	for i := 0; i < 300; i += 60 { // two neighbours here and there
		was := r.settled()
		r.readRow(i)
		r.readRow(i + 1)
		waste = append(waste, r.settled()-was-2)
	}
	assert.Equal(t, fmt.Sprint(waste), "[4 0 0 0 0]", "fetched for nothing")
}

// Who has read a directory finds files of the next ones ahead from the first on, until
// he reads one file of a directory and no more.
func TestSiblingsOfTheNextDirectory(t *testing.T) {
	r := newRows(t, 40, 1, func(w *world, _ *Options) {
		for _, dir := range "efgh" {
			for i := range 40 {
				w.tamper(fmt.Sprintf("%c/f%03d", dir, i), "text")
			}
		}
	})
	for _, dir := range "efgh" {
		r.list(string(dir))
	}
	for i := range 40 {
		r.readRow(i)
		r.settled()
	}
	for _, c := range []struct {
		path string
		want int64
	}{
		{"e/f000", 1 + 32}, {"e/f001", 0}, {"e/f002", 0},
		{"f/f000", 1 + 32}, // and no more of it
		{"g/f000", 1}, {"h/f000", 1}, {"h/f001", 1 + files.PrefetchLeast},
	} {
		was := r.settled()
		assert.Equal(t, r.get(c.path), "text", c.path)
		assert.Equal(t, r.settled()-was, c.want, c.path, "reads")
	}
}

// Nothing is fetched ahead of a service that is near, and of large files.
func TestNoSiblings(t *testing.T) {
	large := func(w *world, _ *Options) {
		for i := range 6 {
			w.tamper(fmt.Sprintf("d/large%d", i), strings.Repeat("x", files.PrefetchSize+1))
		}
	}
	for _, c := range []struct {
		name string
		far  time.Duration
		path func(i int) string
	}{
		{"near", time.Hour, rowPath},
		{"large", 1, func(i int) string { return fmt.Sprintf("d/large%d", i) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRows(t, 20, c.far, large)
			for i := range 4 {
				r.get(c.path(i))
			}
			r.settled()
			for i := 4; i < 6; i++ {
				if got := r.record(c.path(i)).State; got != table.None {
					t.Errorf("%s is here", c.path(i))
				}
			}
		})
	}
}

// What nobody has opened is given up before what somebody has.
func TestUnreadGoesFirst(t *testing.T) {
	r := newRows(t, 30, 1, func(_ *world, o *Options) { o.CacheSize = 1 })
	r.v.store.SetEvictor(func(int64) {}) // when the test says so, and not before
	for i := range 3 {
		r.readRow(i)
		r.settled()
	}
	r.idle()
	var order []string
	r.v.store.Evict(func(ino table.Ino) bool {
		locked := r.v.lock()
		defer locked.unlock()
		order = append(order, locked.table.Inode(ino).Links[0].Name)
		return false
	})
	if got := strings.Join(order, " "); !strings.HasSuffix(got, " f000 f001 f002") || len(order) < 5 {
		t.Errorf("given up in the order %s", got)
	}
}

// A directory that is removed has nothing more fetched for it.
func TestSiblingsEndWithTheDirectory(t *testing.T) {
	r := newRows(t, 6, 1, onlyAsked, func(_ *world, o *Options) { o.Patience = time.Hour })
	r.readRow(0)
	gate := make(chan struct{})
	inos := []fs.Ino{r.walk(rowPath(1)), r.walk(rowPath(2))}
	done := make(chan struct{})
	r.hold.Store(&gate)
	go func() {
		defer close(done)
		o, err := r.v.Open(me, inos[0], syscall.O_RDONLY)
		if err == nil {
			o.File.Release()
		}
	}()
	r.until(func() bool { return r.reads.Load() == 2+4 }) // all that there is
	for i := range 6 {
		r.do("rm " + rowPath(i))
	}
	r.do("rmdir " + rowDir)
	r.until(func() bool { return r.v.prefetch.Busy() == 0 }) // though the store does not answer
	close(gate)
	<-done
}

// A version that is gone is found out by a fetch ahead that nobody hears of: who
// opens the file is sent back to its name all the same.
func TestStaleSiblingIsTold(t *testing.T) {
	r := newRows(t, 10, 1, func(_ *world, o *Options) {
		o.Policy = Policy{NoWait: true, Commit: DueAsked}
	})
	old := r.walk(rowPath(3))
	r.do("chmod " + rowPath(3)) // so that its inode cannot become the new version
	r.tamper(rowPath(3), "changed!")
	oi, err := r.v.openContent(table.Ino(old), files.ForPrefetch)
	r.ok(err)
	if err := oi.Content().FetchAhead(context.Background(), r); err == nil {
		t.Error("a version that is gone was fetched")
	}
	r.ok(r.v.opener.Close(oi, false))
	_, err = r.v.Open(me, old, syscall.O_RDONLY)
	r.is(err, fs.ErrStale)
}
