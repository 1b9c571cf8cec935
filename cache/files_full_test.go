package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/wsmount/wsmount/cache/internal/content"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
)

// fullUntilGone has the table find the disk full until a file is gone. It is gone as well
// when another of its name was made since, for which the real disk has room.
func fullUntilGone(full *atomic.Pointer[stuffing]) func(*world, *Options) {
	return func(_ *world, o *Options) {
		o.names = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if by := full.Load(); by != nil && op.Kind == errorfs.OpFilePreallocate {
				if st, err := os.Stat(by.path); err == nil && st.ModTime().Equal(by.made) {
					return syscall.ENOSPC
				}
				full.Store(nil)
			}
			return nil
		}))
	}
}

// stuffing is a file that holds room, and when it was made.
type stuffing struct {
	path string
	made time.Time
}

func holds(t *testing.T, path string) *stuffing {
	t.Helper()
	st := assert.Of(os.Stat(path)).OK(t)
	return &stuffing{path: path, made: st.ModTime()}
}

// changesUntil makes changes until something has happened, for which a log must be begun.
func (w *world) changesUntil(happened func() bool) {
	w.Helper()
	for i := 0; !happened(); i++ {
		assert.Must(w, i != 10_000, "the log has room without end")
		w.mkdir("d" + strconv.Itoa(i))
	}
}

// A change that the table has no room for gets that of the ballast.
func TestChangesGetTheRoomOfTheBallast(t *testing.T) {
	var full atomic.Pointer[stuffing]
	w := newWorld(t, unwaited, fullUntilGone(&full))
	ballast := filepath.Join(w.o.StateDir, content.BallastName)
	w.until(func() bool { _, err := os.Stat(ballast); return err == nil })
	full.Store(holds(t, ballast))
	w.changesUntil(func() bool { return full.Load() == nil })
}

// A change that the table has no room for, not even that of the ballast, has clean
// content given up and then succeeds. What is not clean stays.
func TestChangesGetTheRoomOfCleanContent(t *testing.T) {
	block := strings.Repeat("x", 60<<10)
	var full atomic.Pointer[stuffing]
	w := newWorld(t, unwaited, holding("clean", block, "open", block, "mine", block), fullUntilGone(&full))
	w.v.store.SetEvictor(func(int64) {})
	ino := w.walk("clean")
	for _, name := range []string{"clean", "open", "mine"} {
		w.get(name)
	}
	w.ok(w.put("mine", block+"ours"))
	o := w.open("open", syscall.O_RDONLY)
	defer o.File.Release()
	path := filepath.Join(w.o.StateDir, "data", "00", strconv.FormatUint(uint64(ino), 10))
	full.Store(holds(t, path))
	w.changesUntil(func() bool { return w.record("clean").State == table.None })
	for _, name := range []string{"open", "mine"} {
		assert.Equal(t, w.record(name).State, table.Whole, name)
	}
	assert.True(t, w.get("clean") == block && w.get("mine") == block+"ours", "the content is another")
}

// The clean content of a working copy that is not mounted can be given up, however the
// last session ended, and the next goes on as if it had been evicted.
func TestContentOfWhatIsNotMounted(t *testing.T) {
	block := strings.Repeat("x", 60<<10)
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint("killed ", killed), func(t *testing.T) {
			w := newWorld(t, unwaited, holding("clean", block, "mine", block))
			for _, name := range []string{"clean", "mine"} {
				w.get(name)
			}
			w.ok(w.put("mine", block+"ours"))
			w.idle()
			_, _, err := ContentOf(w.o.StateDir, true, nil)
			assert.Is(t, err, ErrInUse, "of what is mounted")
			if killed {
				old := w.v
				w.dead.Store(true)
				w.o.StateDir = copyState(t, old)
				t.Cleanup(func() { old.Close() })
			} else {
				w.ok(w.v.Close())
			}
			w.gone = true // until it starts again
			was, freed, err := ContentOf(w.o.StateDir, false, nil)
			assert.True(t, err == nil && freed == 0 && was.Clean == 60<<10 && was.Unsaved >= 60<<10, "there is", was, "freed", freed, err)
			is, freed, err := ContentOf(w.o.StateDir, true, nil)
			w.ok(err)
			assert.Equal(t, freed, 60<<10, "freed")
			assert.True(t, is.Clean == 0 && is.Unsaved == was.Unsaved, "after clearing there is", is)
			w.start()
			assert.True(t, w.get("clean") == block && w.get("mine") == block+"ours", "the content is another")
			w.check()
		})
	}
}

// Of a file of which a part was fetched, that part counts, while it is mounted and when it
// is not.
func TestContentUsageOfAPart(t *testing.T) {
	const size = 4 << 20
	w := newWorld(t, unwaited, holding("f", strings.Repeat("x", size)))
	w.open("f", syscall.O_RDONLY).File.Release() // firstFetch came
	was := w.v.ContentUsage()
	assert.True(t, was.Clean >= firstFetch && was.Clean <= size/2 && was.Unsaved == 0, firstFetch, "bytes were fetched, and there is", was)
	w.ok(w.v.Close())
	w.gone = true // until it starts again
	is, freed, err := ContentOf(w.o.StateDir, true, nil)
	w.ok(err)
	assert.Equal(t, freed, was.Clean, "freed when it was not mounted")
	assert.Equal(t, is.Clean, 0, "clean then")
	w.start()
}

// Of a working copy that is not mounted as much clean content can be given up as others
// need of the disk, without a byte written.
func TestMakeRoomInWhatIsNotMounted(t *testing.T) {
	const size = 60 << 10
	block := strings.Repeat("x", size)
	w := newWorld(t, unwaited, holding("a", block, "b", block, "c", block, "mine", block))
	for _, name := range []string{"a", "b", "c"} {
		w.get(name)
	}
	w.ok(w.put("mine", block+"ours"))
	w.idle()
	w.is(assert.ErrOf(MakeRoomIn(w.o.StateDir, 1, nil)), ErrInUse)
	w.ok(w.v.Close())
	w.gone = true // until it starts again
	for _, want := range []int64{2 * size, size, 0} {
		freed := assert.Of(MakeRoomIn(w.o.StateDir, size+1, nil)).OK(w)
		assert.Equal(t, freed, want, "freed")
	}
	u, _, err := ContentOf(w.o.StateDir, false, nil)
	assert.True(t, err == nil && u.Unsaved >= size && u.Clean == 0, "then there is", u, err)
	w.start()
	for _, name := range []string{"a", "b", "c"} {
		assert.Equal(t, w.get(name), block, "the content is another")
	}
	assert.Equal(t, w.get("mine"), block+"ours", "what was changed is lost")
	w.check()
}
