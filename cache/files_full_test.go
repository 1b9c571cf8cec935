package cache

import (
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

// What gave up its clean content while it was not mounted, and could not say so in its table,
// goes on as if that had been evicted.
func TestRoomInWhatIsNotMounted(t *testing.T) {
	block := strings.Repeat("x", 60<<10)
	for how, end := range map[string]func(w *world) (freed int64, err error){
		"clean": func(w *world) (int64, error) {
			w.ok(w.v.Close())
			return MakeRoomIn(w.o.StateDir, 1<<20, nil)
		},
		"killed": func(w *world) (freed int64, err error) {
			old := w.v
			w.dead.Store(true)
			w.o.StateDir = copyState(t, old)
			t.Cleanup(func() { old.Close() })
			_, freed, err = ContentOf(w.o.StateDir, true, nil)
			return freed, err
		},
	} {
		w := newWorld(t, unwaited, holding("clean", block, "mine", block))
		w.get("clean")
		w.ok(w.put("mine", block+"ours"))
		w.idle()
		w.gone = true // until it starts again
		assert.Of(end(w)).Equal(t, 60<<10, how, "freed")
		w.start()
		assert.True(t, w.get("clean") == block && w.get("mine") == block+"ours", how, "the content is another")
		w.check()
	}
}

// Of a file of which a part was fetched, that part counts.
func TestContentUsageOfAPart(t *testing.T) {
	const size = 4 << 20
	w := newWorld(t, unwaited, holding("f", strings.Repeat("x", size)))
	w.open("f", syscall.O_RDONLY).File.Release() // firstFetch came
	u := w.v.ContentUsage()
	assert.True(t, u.Clean >= firstFetch && u.Clean <= size/2 && u.Unsaved == 0, firstFetch, "bytes were fetched, and there is", u)
}
