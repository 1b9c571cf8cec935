package cache

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/chores"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// clock is a time that only tests move.
type testClock struct {
	mu sync.Mutex
	t  time.Time
}

func newTestClock() *testClock { return &testClock{t: time.Unix(1_700_000_000, 0)} }

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(time.Microsecond) // no two things happen at once
	return c.t
}

func (c *testClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// historic is a world with a clock of its own.
func historic(t *testing.T, change ...func(*world, *Options)) (*world, *testClock) {
	t.Helper()
	c := newTestClock()
	return newWorld(t, append([]func(*world, *Options){func(_ *world, o *Options) { o.Now = c.now }}, change...)...), c
}

// later lets time pass and the history do what is due.
func (w *world) later(c *testClock, d time.Duration) {
	w.Helper()
	c.pass(d)
	w.v.history.Work()
}

// saves writes a file again and again, with a while after each time.
func (w *world) saves(c *testClock, path string, contents ...string) {
	w.Helper()
	for _, content := range contents {
		w.ok(w.put(path, content))
		w.later(c, 3*time.Second)
	}
}

// turn begins one, some time after all that was done before; "" is none.
func (w *world) turn(c *testClock, name string) {
	w.Helper()
	w.later(c, 3*time.Second)
	w.v.SetActor(Actor{Turn: name})
}

func (w *world) versions(f LogFilter) []Version {
	w.Helper()
	list := assert.Of(w.v.Log(w.Context(), f)).OK(w)
	return list
}

// log is the history of a path, the newest first, as "number change why: content".
func (w *world) log(path string) []string {
	w.Helper()
	lines := []string{}
	for _, ver := range w.versions(LogFilter{Path: path}) {
		line := ver.Change + " " + ver.Why + " " + ver.Path
		if ver.Was != "" {
			line += " was " + ver.Was
		}
		if ver.From != "" {
			line += " from " + ver.From
		}
		lines = append(lines, line+": "+w.content(ver.ID))
	}
	return lines
}

// content is that of a version, or "-".
func (w *world) content(id string) string {
	w.Helper()
	r, size, err := w.v.Content(id)
	if errors.Is(err, ErrNotKept) {
		return "-"
	}
	w.ok(err)
	defer r.Close()
	data := assert.Of(io.ReadAll(r)).OK(w)
	assert.Equal(w, int64(len(data)), size, "version", id, len(data), "bytes, said")
	return string(data)
}

func (w *world) logs(path string, want ...string) {
	w.Helper()
	got := w.log(path)
	assert.Must(w, strings.Join(got, "\n") == strings.Join(want, "\n"), "the history of", path, "is", strings.Join(got, "\n\t"), "want", strings.Join(want, "\n\t"))
}

// forgetAll has the kernel forget what it knows of, so that content moves.
func (w *world) forgetAll() { forgetAll(w.v) }

func forgetAll(v *Volume) {
	locked := v.lock()
	refs := map[fs.Ino]uint64{}
	for ino, last := fs.RootIno+1, fs.Ino(locked.Alloc()); ino < last; ino++ {
		if n := locked.References(table.Ino(ino)); n > 0 {
			refs[ino] = n
		}
	}
	locked.unlock()
	for ino, n := range refs {
		v.Forget(ino, n)
	}
}

func TestHistoryOfWhatWasRemoved(t *testing.T) {
	w, c := historic(t)
	w.do("mkdir d", "put d/f precious")
	o := w.open("d/f", syscall.O_RDONLY)
	w.ok(w.unlink("d/f"))
	w.logs("d", "ended removed d/f: precious", "written written d/f: precious", "made made d: -")
	o.File.Release()
	w.forgetAll()
	w.settle()
	w.idle()
	w.logs("d", "ended removed d/f: precious", "written written d/f: precious", "made made d: -")
	w.later(c, time.Second)
	w.again()
	w.logs("d/f", "ended removed d/f: precious", "written written d/f: precious")
}

// A record says who it was, also when the change is seen later than it was made.
func TestHistorySaysWho(t *testing.T) {
	w, _ := historic(t)
	op := &fs.Op{UID: 1234, GID: 8, PID: uint32(os.Getpid())}
	_, o, err := w.v.Create(op, fs.RootIno, "f", syscall.O_RDWR, 0o666)
	w.ok(err)
	w.writeLast(o, "x", 0)
	w.ok(w.v.Unlink(&fs.Op{UID: 5}, fs.RootIno, "f"))
	list := w.versions(LogFilter{})
	assert.Must(t, len(list) == 2, "got", list)
	assert.True(t, list[0].UID == 5 && list[0].Command == "", "who removed it", list[0])
	assert.True(t, list[1].UID == 1234 && list[1].Command != "" && strings.HasPrefix("cache.test", list[1].Command), "who made it", list[1])
}

// Each version that somebody asked to be committed is kept, however soon the next followed, as
// long as the budget allows.
func TestHistoryKeepsEachTurn(t *testing.T) {
	w, c := historic(t, onlyAsked, func(_ *world, o *Options) { o.Policy.History = Budget{Versions: 9, Age: time.Hour, Bytes: 1 << 20} })
	for i := range 3 {
		w.ok(w.put("f", fmt.Sprint("turn ", i)))
		w.upload()
	}
	w.logs("f", "written written f: turn 2", "written written f: turn 1", "written written f: turn 0")
	w.later(c, 2*time.Hour)
	w.logs("f")
}

// Content that cannot be moved into the history is not said to be there, and a person is told.
func TestVersionThatCannotBeKept(t *testing.T) {
	w := newScene(t, holding("f", "one"), held(SplitConflicts))
	w.do("put f precious")
	dir := filepath.Join(w.o.StateDir, "history")
	w.ok(os.RemoveAll(dir))
	w.ok(os.MkdirAll(dir, 0o700))
	for i := range 256 { // where directories are to be
		w.ok(os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02x", i)), nil, 0o600))
	}
	ino := w.walk("f")
	w.do("rm f")
	locked := w.v.lock()
	refs := locked.References(table.Ino(ino))
	locked.unlock()
	w.v.Forget(ino, refs)
	w.v.unlinks.Run()
	for _, v := range assert.Of(w.v.Log(t.Context(), LogFilter{Path: "f"})).OK(t) {
		assert.False(t, v.Kept && v.Size == int64(len("precious")), "it is said to be kept:", v)
	}
	assert.True(t, slices.ContainsFunc(w.v.Status().Failing, func(f Failing) bool { return f.Activity == chores.Keep }), "failures:", w.v.Status().Failing)
}
