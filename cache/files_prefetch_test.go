package cache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/cache/internal/files"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// rows are a directory of small files in a store that counts its reads, in a bubble.
type rows struct {
	*world
	reads   atomic.Int64
	waiting atomic.Int64                  // of them, now
	hold    atomic.Pointer[chan struct{}] // reads wait for it to be closed; nil: they do not
}

const rowDir = "d"

// inRows runs a test with so many files.
func inRows(t *testing.T, files int, test func(*rows), change ...func(*world, *Options)) {
	synctest.Test(t, func(t *testing.T) { test(newRows(t, files, change...)) })
}

func newRows(t *testing.T, files int, change ...func(*world, *Options)) *rows {
	r := &rows{}
	store := func(w *world, o *Options) {
		o.far = 1
		w.p = memory.New(memory.Options{Hook: func(ctx context.Context, m providers.Method, _ providers.Locator) error {
			if m != providers.MethodRead {
				return nil
			}
			r.reads.Add(1)
			time.Sleep(time.Millisecond) // it is far
			if gate := r.hold.Load(); gate != nil {
				r.waiting.Add(1)
				defer r.waiting.Add(-1)
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

// settled waits until nothing is being fetched ahead that the store answers, and says how
// many reads there were.
func (r *rows) settled() int64 {
	time.Sleep(time.Second) // which passes when nothing else happens
	synctest.Wait()
	return r.reads.Load()
}

// Who reads one file after the other finds the next ones here, each read once.
func TestSiblingsComeAhead(t *testing.T) {
	inRows(t, 100, func(r *rows) {
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
	})
}

// Threads side by side open names out of order, and each file is read once.
func TestSiblingsOfThreads(t *testing.T) {
	inRows(t, 200, func(r *rows) {
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
					d, err := o.File.Read(me, make([]byte, 100), 0)
					assert.True(t, err == nil && string(d.Bytes) == rowText(i), "file", i, "has", d.Bytes, err)
					o.File.Release()
				}
			})
		}
		all.Wait()
		assert.Equal(t, r.settled(), 200, "reads of 200 files")
	})
}

// Who has read a directory finds files of the next ones ahead from the first on, until
// he reads one file of a directory and no more.
func TestSiblingsOfTheNextDirectory(t *testing.T) {
	inRows(t, 40, func(r *rows) {
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
			assert.Equal(t, r.get(c.path), "x", c.path)
			assert.Equal(t, r.settled()-was, c.want, c.path, "reads")
		}
	}, many(40, "e/f0"), many(40, "f/f0"), many(40, "g/f0"), many(40, "h/f0"))
}

// What nobody has opened is given up before what somebody has.
func TestUnreadGoesFirst(t *testing.T) {
	inRows(t, 30, func(r *rows) {
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
			order = append(order, locked.Inode(ino).Links[0].Name)
			return false
		})
		got := strings.Join(order, " ")
		assert.True(t, strings.HasSuffix(got, " f000 f001 f002") && len(order) >= 5, "given up in the order", got)
	}, func(_ *world, o *Options) { o.CacheSize = 1 })
}

// A directory that is removed has nothing more fetched for it.
func TestSiblingsEndWithTheDirectory(t *testing.T) {
	inRows(t, 6, func(r *rows) {
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
		assert.Equal(t, r.settled(), 2+4, "reads") // all that there is
		for i := range 6 {
			r.do("rm " + rowPath(i))
		}
		r.do("rmdir " + rowDir)
		r.settled()
		assert.Equal(t, r.waiting.Load(), 1, "reads that go on, of a store that does not answer") // the program's
		close(gate)
		<-done
	}, onlyAsked, func(_ *world, o *Options) { o.Patience = time.Hour })
}

// A version that is gone is found out by a fetch ahead that nobody hears of: who
// opens the file is sent back to its name all the same.
func TestStaleSiblingIsTold(t *testing.T) {
	inRows(t, 10, func(r *rows) {
		old := r.walk(rowPath(3))
		r.do("chmod " + rowPath(3)) // so that its inode cannot become the new version
		r.tamper(rowPath(3), "changed!")
		oi := assert.Of(r.v.openContent(table.Ino(old), files.ForPrefetch)).OK(r)
		assert.True(t, oi.Content().FetchAhead(context.Background(), r) != nil, "a version that is gone was fetched")
		r.ok(r.v.opener.Close(oi, false))
		r.is(assert.ErrOf(r.v.Open(me, old, syscall.O_RDONLY)), fs.ErrStale)
	}, func(_ *world, o *Options) { o.Policy = Policy{NoWait: true, Commit: DueAsked} })
}
