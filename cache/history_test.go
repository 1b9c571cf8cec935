package cache

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/past"
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
	for ino, last := fs.RootIno+1, fs.Ino(locked.table.Alloc()); ino < last; ino++ {
		if n := locked.References(table.Ino(ino)); n > 0 {
			refs[ino] = n
		}
	}
	locked.unlock()
	for ino, n := range refs {
		v.Forget(ino, n)
	}
}

func TestHistoryOfOneFile(t *testing.T) {
	w, c := historic(t)
	w.saves(c, "f", "one", "two")
	w.ok(w.put("f", "three"))
	w.logs("f",
		"written written f: three",
		"written written f: two",
		"written written f: one")
	w.later(c, 3*time.Second)
	list := w.versions(LogFilter{Path: "f", Limit: 1})
	const sum = "8b5b9db0c13db24256c829aa364aa90c6d2eba318b9232a4ab9313b954d3555f" // sha256 of "three"
	assert.True(t, len(list) == 1 && list[0].Number == 3 && list[0].Size == 5 && list[0].SHA256 == sum && list[0].Current, "got", list)
	w.saves(c, "f", "")
	list = w.versions(LogFilter{Path: "f", Limit: 2})
	assert.True(t, len(list) == 2 && list[0].Current && !list[1].Current, "after it was emptied: got", list)
}

// One version in two seconds is kept, and the last.
func TestHistoryOfABurst(t *testing.T) {
	w, c := historic(t)
	for _, s := range []string{"1", "2", "3", "4"} {
		w.ok(w.put("f", s))
		c.pass(100 * time.Millisecond)
	}
	w.later(c, 3*time.Second)
	w.ok(w.put("f", "5"))
	w.logs("f",
		"written written f: 5",
		"written written f: 4",
		"written written f: -",
		"written written f: -",
		"written written f: 1")
}

// Who writes all the time does not keep the worker from looking.
func TestHistoryLooksAtBusyFiles(t *testing.T) {
	w, c := historic(t)
	for range 3 {
		w.ok(w.put("f", c.now().String()))
		c.pass(900 * time.Millisecond)
	}
	w.v.history.Work()
	list := w.versions(LogFilter{Path: "f", Limit: 1})
	assert.False(t, list[0].SHA256 == "", "not looked at:", list[0])
}

// What was written after the name was gone is not what was removed.
func TestHistoryOfWhatWasWrittenAfterwards(t *testing.T) {
	w, _ := historic(t)
	w.ok(w.put("f", "first"))
	w.ok(w.put("f", "closed")) // too soon after the first to be copied before a change
	o := w.open("f", syscall.O_RDWR)
	w.ok(w.unlink("f"))
	w.writeLast(o, "AFTER", 0)
	w.forgetAll()
	for _, line := range w.log("f") {
		assert.False(t, strings.Contains(line, "AFTER"), line)
	}
	w.settle() // till then the store has it
	w.logs("f", "ended removed f: -", "written written f: -", "written written f: first")
}

// What the backend had is kept before a program changes it.
func TestHistoryKeepsWhatWasPulled(t *testing.T) {
	w, _ := historic(t, holding("f", "theirs"))
	assert.Equal(t, w.get("f"), "theirs")
	w.ok(w.put("f", "ours"))
	w.logs("f", "written written f: ours", "ended changed f: theirs")
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

// A save by rename is one file to whoever looks at the name.
func TestHistoryOfSavesByRename(t *testing.T) {
	w, c := historic(t)
	for _, s := range []string{"one", "two", "three"} {
		w.ok(w.put("f.tmp", s))
		w.ok(w.rename("f.tmp", "f"))
		w.forgetAll()
		w.later(c, 3*time.Second)
	}
	w.logs("f",
		"moved renamed f from f.tmp: three",
		"ended replaced f: two",
		"written written f was f.tmp: three",
		"moved renamed f from f.tmp: two",
		"ended replaced f: one",
		"moved renamed f from f.tmp: one")
	list := w.versions(LogFilter{Path: "f", Limit: 1})
	assert.Equal(t, list[0].Number, 5, "the number of the name")
}

// A rename of a directory is one record, and what was recorded below follows.
func TestHistoryFollowsDirectories(t *testing.T) {
	w, c := historic(t)
	w.do("mkdir d", "put d/f one")
	w.later(c, 3*time.Second)
	w.do("put d/f two", "mv d e")
	w.logs("e",
		"moved renamed e from d: -",
		"written written e/f was d/f: two",
		"written written e/f was d/f: one",
		"made made e was d: -")
	w.logs("d/f",
		"written written e/f was d/f: two",
		"written written e/f was d/f: one")
}

func TestLogFilters(t *testing.T) {
	w, c := historic(t)
	w.v.SetActor(Actor{Name: "bob", Turn: "1", Conversation: "x"})
	w.ok(w.put("a", "1"))
	c.pass(time.Hour)
	mid := c.now()
	w.v.SetActor(Actor{Name: "eve", Turn: "2", Conversation: "x", Event: "turn-start"})
	w.ok(w.put("b", "2"))
	for _, test := range []struct {
		name string
		f    LogFilter
		want string
	}{
		{"all", LogFilter{}, "b a"},
		{"limit", LogFilter{Limit: 1}, "b"},
		{"turn", LogFilter{Turn: "1"}, "a"},
		{"conversation", LogFilter{Conversation: "x"}, "b a"},
		{"no such", LogFilter{Conversation: "y"}, ""},
		{"event", LogFilter{Event: "turn-start"}, "b"},
		{"since", LogFilter{Since: mid}, "b"},
		{"until", LogFilter{Until: mid}, "a"},
		{"path", LogFilter{Path: "/a"}, "a"},
		{"part of a name", LogFilter{Path: "aa"}, ""},
	} {
		var got []string
		for _, ver := range w.versions(test.f) {
			got = append(got, ver.Path)
		}
		assert.Equal(t, strings.Join(got, " "), test.want, test.name, "got", got)
	}
	list := w.versions(LogFilter{Turn: "2"})
	assert.Equal(t, list[0].Name, "eve", "actor", list[0])
}

func TestDiff(t *testing.T) {
	w, c := historic(t)
	w.saves(c, "f", "a\nb\n", "a\nc\n")
	got := w.diff(DiffOptions{Path: "f"})
	assert.True(t, strings.Contains(got, "\n-b\n+c\n") && strings.HasPrefix(got, "--- f@"), "got", got)
	w.ok(w.put("f", "a\x00c\n"))
	got = w.diff(DiffOptions{Path: "f"})
	assert.True(t, strings.HasPrefix(got, "Binary files f@"), "got", got)
	w.is(assert.ErrOf(w.v.Diff(t.Context(), DiffOptions{Path: "f", From: State{Version: "4711"}})), ErrNoVersion)
}

// The budget is kept: by count, by age and by bytes.
func TestHistoryBudget(t *testing.T) {
	small := func(_ *world, o *Options) { o.Policy.History = Budget{Versions: 4, Age: time.Hour, Bytes: 1 << 20} }
	t.Run("count", func(t *testing.T) {
		w, c := historic(t, small)
		w.until(func() bool { return w.v.HistoryUsage().Versions == 0 }) // what is there when they are counted may count twice
		for i := range 2 * history.PruneEach {
			w.v.SetActor(Actor{Turn: fmt.Sprint(i)}) // the last of each would stay otherwise
			w.ok(w.put("f", c.now().String()))
			w.later(c, 3*time.Second)
		}
		w.until(func() bool { // the worker prunes too
			u, n := w.v.HistoryUsage(), len(w.versions(LogFilter{Path: "f"})) // it may prune what is read, too
			return u.Pruned.Versions > 0 && u.Versions == n && n == 4
		})
	})
	t.Run("age", func(t *testing.T) {
		w, c := historic(t, small)
		w.do("put old x", "rm old")
		w.forgetAll()
		w.later(c, 59*time.Minute)
		w.ok(w.put("new", "x"))
		w.later(c, 10*time.Minute)
		w.logs("", "written written new: x")
		assert.Equal(t, w.v.store.KeptBytes(), 0, "content without a record")
	})
	t.Run("bytes", func(t *testing.T) {
		w, c := historic(t, small, func(_ *world, o *Options) { o.Policy.History.Age = 1e6 * time.Hour }) // however long the disk takes
		big := strings.Repeat("x", 400<<10)
		for _, name := range []string{"a", "b", "c", "d"} {
			w.ok(w.put(name, big))
			w.ok(w.unlink(name))
			w.forgetAll()
		}
		w.until(func() bool { // content goes there when the disk knows of it
			w.later(c, 10*time.Second)
			kept := w.v.store.KeptBytes()
			return kept <= 1<<20 && kept >= 400<<10 && w.v.HistoryUsage().Pruned.Contents == 2
		})
		log := w.log("")
		assert.True(t, len(log) == 8 && strings.HasSuffix(log[0], big) && strings.HasSuffix(log[6], ": -"), len(log), "records")
	})
}

// What leaves the working copy after it was found there is opened where it went.
func TestContentOnTheMove(t *testing.T) {
	w, _ := historic(t)
	found := func(want string) past.Item {
		t.Helper()
		list := w.versions(LogFilter{Path: "f"})
		pl := assert.Of(w.v.past.Plan(t.Context(), "f", State{Version: list[0].ID})).OK(w)
		assert.Must(t, len(pl.Items) == 1 && list[0].Change == want, list[0].Change, pl)
		return pl.Items[0]
	}
	opens := func(src past.Item, want string) {
		t.Helper()
		r, size, err := w.v.past.Open(src)
		w.ok(err)
		defer r.Close()
		data := assert.Of(io.ReadAll(r)).OK(w)
		assert.Equal(t, string(data), want)
		assert.Equal(t, size, int64(len(want)), "size")
	}
	w.ok(w.put("f", "one"))
	src := found(Written)
	o := w.open("f", syscall.O_RDWR) // which keeps it first
	w.write(o, "two", 0)
	opens(src, "one")
	w.ok(w.shut(o))

	o = w.open("f", syscall.O_RDONLY)
	w.ok(w.unlink("f"))
	src = found(Ended)
	o.File.Release()
	w.forgetAll()
	opens(src, "two")
}

// Content too large to be copied while an open waits is copied when it was
// left alone.
func TestHistoryOfLargeFiles(t *testing.T) {
	t.Parallel()
	w, c := historic(t)
	big := strings.Repeat("0123456789abcdef", history.KeepSmall/16) + "x"
	w.ok(w.put("f", big))
	w.later(c, 3*time.Second)
	w.ok(w.put("f", "small"))
	w.logs("f", "written written f: small", "written written f: "+big)
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

// Each version that somebody asked to be committed is kept, however soon the next
// followed.
func TestHistoryKeepsEachTurn(t *testing.T) {
	w, _ := historic(t, onlyAsked)
	for i := range 4 {
		w.ok(w.put("f", fmt.Sprint("turn ", i)))
		w.upload()
	}
	w.logs("f", "written written f: turn 3", "written written f: turn 2", "written written f: turn 1", "written written f: turn 0")
}

// The last version of each actor is kept, however soon the next followed.
func TestHistoryKeepsTheLastOfEachActor(t *testing.T) {
	save := func(w *world, s string) {
		w.ok(w.put("f.tmp", s))
		w.ok(w.rename("f.tmp", "f"))
		w.forgetAll()
	}
	change := func(w *world, s string) { w.ok(w.put("f", s)) }
	for name, put := range map[string]func(*world, string){"changed": change, "replaced": save} {
		t.Run(name, func(t *testing.T) {
			w, _ := historic(t)
			for _, turn := range []string{"1", "2", "3"} {
				w.v.SetActor(Actor{Turn: turn})
				put(w, turn+" first")
				put(w, turn+" last")
			}
			w.v.SetActor(Actor{Event: "tool-call", Turn: "3"})
			w.v.SetActor(Actor{Turn: "3"})
			put(w, "3 again")
			for _, turn := range []string{"1", "2"} {
				w.restore(RestoreOptions{Path: "f", To: State{Turn: turn}})
				assert.Equal(t, w.get("f"), turn+" last", "turn", turn)
			}
			w.versionOf("f", "3 last")
		})
	}
}
