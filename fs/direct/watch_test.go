package direct

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/fs/direct/internal/inotify"
	"github.com/wsmount/wsmount/integration/assert"
	"golang.org/x/sys/unix"
)

func serveWatched(t *testing.T, tune tuning) (*Volume, string, *recorder) {
	t.Helper()
	v, dir := serve(t, Options{Watch: true, tune: tune})
	r := record(v)
	settled(t, v)
	return v, dir, r
}

// settled waits until the walk is over.
func settled(t *testing.T, v *Volume) {
	t.Helper()
	waitFor(t, "end of the walk", func() bool { return v.Status().Watch != "partial" })
}

// flush makes sure that all events so far have been judged: those of one queue
// come in order, so a file of our own marks the end; then what a walk finds is waited
// for, and files have rested that were not closed.
func flush(t *testing.T, v *Volume, dir string, r *recorder) {
	t.Helper()
	mark := fmt.Sprintf("mark-%d", flushes.Add(1))
	writeFile(t, "", dir, mark)
	r.wait(t, note{kind: "wrote", name: mark})
	waitFor(t, "pending work", func() bool {
		walked := v.Status().Watch != "partial"
		j := v.watch.judge()
		defer j.done()
		j.now = j.now.Add(resting)
		j.settleDue()
		return walked && len(j.retries) == 0
	})
}

// resting is how long files rest in tests that count events, where a pause of the machine
// must not pass for a rest: what is not closed is told by flush.
const resting = time.Hour

var flushes atomic.Int64

// Every kind of change by others reaches the kernel and the bus.
func TestWatchOthers(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	root := wsfs.RootIno
	path := func(elem ...string) string { return filepath.Join(append([]string{dir}, elem...)...) }

	lookupNone(t, v, root, "new") // negative
	writeFile(t, "1", dir, "new")
	r.wait(t, note{"entry", root, "new"}, note{kind: "wrote", name: "new"}, note{kind: "attr", ino: root})

	f := lookup(t, v, root, "new")
	writeFile(t, "22", dir, "new")
	r.wait(t, note{kind: "content", ino: f.Ino})

	ok(t, os.Chmod(path("new"), 0o600))
	r.wait(t, note{kind: "attr", ino: f.Ino})

	ok(t, os.Mkdir(path("d"), 0o755))
	r.wait(t, note{"entry", root, "d"})
	d := lookup(t, v, root, "d")
	ok(t, os.Rename(path("new"), path("d", "moved")))
	r.wait(t, note{"entry", root, "new"}, note{"entry", d.Ino, "moved"},
		note{kind: "deleted", name: "new"}, note{kind: "wrote", name: "d/moved"})
	assert.Equal(t, attr(t, v, f.Ino).Size, 2, "moved file")

	ok(t, os.Rename(path("d"), path("e")))
	r.wait(t, note{"entry", root, "d"}, note{"entry", root, "e"})
	p, _ := v.Path(f.Ino)
	assert.True(t, p == "e/moved", "path", p)
	attr(t, v, f.Ino)

	writeFile(t, "x", dir, "tmp")
	ok(t, os.Rename(path("tmp"), path("e", "moved"))) // as editors save
	r.wait(t, note{"entry", d.Ino, "moved"}, note{kind: "wrote", name: "e/moved"})
	g := lookup(t, v, d.Ino, "moved")
	assert.True(t, g.Ino != f.Ino, "the replacing file has the old number")

	ok(t, os.RemoveAll(path("e")))
	r.wait(t, note{kind: "deleted", name: "e/moved"}, note{kind: "deleted", name: "e"}, note{"entry", root, "e"})
}

// A file in whose place others put another one that the kernel knows has lost its name,
// and its link count is told.
func TestWatchReplacedByAKnownFile(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	f, g := create(t, v, wsfs.RootIno, "f", "old"), create(t, v, wsfs.RootIno, "g", "new")
	flush(t, v, dir, r)
	ok(t, os.Rename(filepath.Join(dir, "g"), filepath.Join(dir, "f")))
	r.wait(t, note{"entry", wsfs.RootIno, "f"}, note{"entry", wsfs.RootIno, "g"})
	flush(t, v, dir, r)
	if p, named := v.Path(f.Ino); named || r.count(note{kind: "attr", ino: f.Ino}) == 0 {
		t.Errorf("the replaced file is called %q, and the kernel was told %v", p, r.all())
	}
	p, _ := v.Path(g.Ino)
	assert.True(t, p == "f", "the other is called", p)
}

// What comes through the mount is told to nobody who knows it already, and is
// one event.
func TestWatchOwn(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{quiet: resting})
	root := wsfs.RootIno
	d := must[wsfs.Entry](t)(v.Mkdir(op(), root, "d", 0o755))
	lookupNone(t, v, d.Ino, "f")
	f := create(t, v, d.Ino, "f", "one")
	o := must[wsfs.Opened](t)(v.Open(op(), f.Ino, unix.O_WRONLY))
	for i := range 20 {
		must[int](t)(o.File.Write(op(), []byte("x"), int64(i)))
	}
	must[wsfs.Attr](t)(v.SetAttr(op(), f.Ino, nil, &wsfs.SetAttr{Mode: ptr(uint32(0o600))}))
	ok(t, v.SetXattr(op(), f.Ino, "user.x", nil, 0))
	o.File.Release()
	must[wsfs.Entry](t)(v.Symlink(op(), root, "l", "d/f"))
	must[wsfs.Entry](t)(v.Link(op(), f.Ino, root, "h"))
	ok(t, v.Rename(op(), root, "l", d.Ino, "l2", 0))
	ok(t, v.Rename(op(), root, "h", d.Ino, "f2", 0))
	g := create(t, v, root, "over", "")
	create(t, v, root, "with", "")
	ok(t, v.Rename(op(), root, "with", root, "over", 0))
	ok(t, v.Unlink(op(), d.Ino, "l2"))
	ok(t, v.Unlink(op(), root, "over"))
	v.Forget(g.Ino, 1)
	flush(t, v, dir, r)
	for n, count := range r.all() {
		switch n.kind {
		case "entry", "content":
			assert.True(t, n.ino == root && n.name[:4] == "mark", "told the kernel what it did:", n)
		case "attr":
			assert.False(t, n.ino == f.Ino, "told the kernel of attributes:", n)
		case "wrote", "deleted":
			want := 1
			if n == (note{kind: "wrote", name: "d/f"}) || n == (note{kind: "wrote", name: "over"}) {
				want = 2 // created, and written (or replaced)
			}
			assert.Equal(t, count, want, n.kind, n.name, "events")
		}
	}
	for _, n := range []note{
		{kind: "wrote", name: "l"}, {kind: "wrote", name: "h"}, {kind: "deleted", name: "h"},
		{kind: "wrote", name: "d/f2"}, {kind: "deleted", name: "d/l2"}, {kind: "deleted", name: "over"},
	} {
		assert.Equal(t, r.count(n), 1, n.kind, n.name, "events")
	}
}

// A request that meets a change by others before its report does not hide it.
func TestWatchNoticedEarly(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{quiet: resting}) // only closes tell
	f := create(t, v, wsfs.RootIno, "f", "one")
	flush(t, v, dir, r)
	j := v.watch.judge() // no report now
	writeFile(t, "by others", dir, "f")
	writeFile(t, "new", dir, "n")
	assert.Equal(t, attr(t, v, f.Ino).Size, 9, "size")
	lookup(t, v, wsfs.RootIno, "n")
	j.done()
	r.wait(t, note{kind: "content", ino: f.Ino}, note{kind: "wrote", name: "n"})
	flush(t, v, dir, r)
	if n := r.count(note{kind: "wrote", name: "f"}); n != 2 { // ours, and theirs
		t.Errorf("%d events for f, want 2", n)
	}
}

// One change is one event, also of a file that is written slowly.
func TestWatchWritesOnce(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{quiet: resting}) // only the close tells
	f := must[*os.File](t)(os.Create(filepath.Join(dir, "f")))
	r.wait(t, note{"entry", wsfs.RootIno, "f"})
	for range 3 {
		f.WriteString("x")
	}
	f.Close()
	flush(t, v, dir, r)
	written := note{kind: "wrote", name: "f"}
	assert.Equal(t, r.count(written), 1, "events")
	ok(t, os.Chmod(filepath.Join(dir, "f"), 0o600))
	flush(t, v, dir, r)
	assert.Equal(t, r.count(written), 1, "a change of mode is an event of content")
	flush(t, v, dir, r)
}

// A directory that still exists is never told of.
func TestWatchLeavesDirectoriesAlone(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	ok(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	r.wait(t, note{"entry", wsfs.RootIno, "d"})
	flush(t, v, dir, r) // it may be told by a look and by an event
	told := r.count(note{"entry", wsfs.RootIno, "d"})
	d := lookup(t, v, wsfs.RootIno, "d")
	ok(t, os.Chmod(filepath.Join(dir, "d"), 0o700))
	r.wait(t, note{kind: "attr", ino: d.Ino})
	ok(t, os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "away")))
	ok(t, os.Rename(filepath.Join(dir, "away"), filepath.Join(dir, "d")))
	writeFile(t, "", dir, "d", "f")
	flush(t, v, dir, r)
	v.watch.in.Rescan()
	settled(t, v)
	// A rename there and back that is judged in the middle is told once.
	if got := r.count(note{"entry", wsfs.RootIno, "d"}); got > told+1 {
		t.Errorf("told %d times more", got-told)
	}
}

// The kernel is not told that a directory has appeared once it has looked it up: a
// sandbox may have mounted something on it by then.
func TestWatchOfWhatIsLookedUpMeanwhile(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	ok(t, os.MkdirAll(filepath.Join(dir, "d", "sub"), 0o755))
	r.wait(t, note{"entry", wsfs.RootIno, "d"})
	flush(t, v, dir, r)
	r.mu.Lock()
	seen := r.seen["d"]
	r.mu.Unlock()
	assert.Must(t, seen != nil && !seen(), "seen before a lookup")
	d := lookup(t, v, wsfs.RootIno, "d")
	assert.True(t, seen(), "not seen after a lookup")
	v.Forget(d.Ino, 1)
	assert.False(t, seen(), "seen when the kernel has forgotten it")
}

// A tree that appears at once is met whole, though most of it was there before
// anybody watched it.
func TestWatchNewTree(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{quiet: resting})
	for i := range 3 {
		for j := range 3 {
			d := filepath.Join(dir, "t", fmt.Sprint(i), fmt.Sprint(j))
			ok(t, os.MkdirAll(d, 0o755))
			writeFile(t, "x", d, "f")
		}
	}
	side := t.TempDir()
	ok(t, os.MkdirAll(filepath.Join(side, "a", "b"), 0o755))
	writeFile(t, "x", side, "a", "b", "c")
	ok(t, os.Rename(filepath.Join(side, "a"), filepath.Join(dir, "in")))
	flush(t, v, dir, r)
	for i := range 9 {
		n := note{kind: "wrote", name: fmt.Sprintf("t/%d/%d/f", i/3, i%3)}
		assert.Equal(t, r.count(n), 1, n.name, "events")
	}
	assert.Equal(t, r.count(note{kind: "wrote", name: "in/b/c"}), 1, "moved in: ... events")
	writeFile(t, "y", dir, "in", "b", "c")
	writeFile(t, "y", dir, "t", "2", "2", "g")
	r.wait(t, note{kind: "wrote", name: "t/2/2/g"})
	assert.Equal(t, v.Status().Watched, 1+1+3+9+2, "directories watched")
}

// What was moved out is none of our business any more.
func TestWatchMovedOut(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	ok(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	settledAt(t, v, 3)
	out := filepath.Join(t.TempDir(), "a")
	ok(t, os.Rename(filepath.Join(dir, "a"), out))
	r.wait(t, note{"entry", wsfs.RootIno, "a"}, note{kind: "deleted", name: "a"})
	settledAt(t, v, 1)
	writeFile(t, "x", out, "b", "private")
	flush(t, v, dir, r)
	for n := range r.all() {
		assert.False(t, filepath.Base(n.name) == "private", "told of", n)
	}
}

func settledAt(t *testing.T, v *Volume, watched int) {
	t.Helper()
	waitFor(t, fmt.Sprint(watched, " watches"), func() bool { return v.Status().Watched == watched })
	settled(t, v)
}

// When the kernel loses events everything is compared anew.
func TestWatchOverflow(t *testing.T) {
	var drop atomic.Bool
	v, dir, r := serveWatched(t, tuning{loseEvents: func() bool { return drop.Load() }})
	kept := create(t, v, wsfs.RootIno, "kept", "same")
	changed := create(t, v, wsfs.RootIno, "changed", "old")
	create(t, v, wsfs.RootIno, "removed", "")
	ok(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	settledAt(t, v, 2)
	flush(t, v, dir, r)
	told := r.count(note{kind: "wrote", name: "kept"})
	lookupNone(t, v, wsfs.RootIno, "new")

	drop.Store(true)
	writeFile(t, "different", dir, "changed")
	ok(t, os.Remove(filepath.Join(dir, "removed")))
	writeFile(t, "", dir, "new")
	writeFile(t, "", dir, "d", "unseen")
	waitFor(t, "overflow", func() bool { return v.Status().Overflows > 0 })
	drop.Store(false)
	r.wait(t, note{kind: "content", ino: changed.Ino}, note{kind: "wrote", name: "changed"},
		note{"entry", wsfs.RootIno, "removed"}, note{kind: "deleted", name: "removed"},
		note{"entry", wsfs.RootIno, "new"}, note{kind: "wrote", name: "new"},
		note{kind: "wrote", name: "d/unseen"})
	flush(t, v, dir, r)
	assert.True(t, r.count(note{kind: "content", ino: kept.Ino}) == 0 && r.count(note{kind: "wrote", name: "kept"}) == told, "what did not change was told of")
	waitFor(t, "long TTL again", func() bool { return lookup(t, v, wsfs.RootIno, "kept").TTL == longTTL })
}

// While events are missing nothing is believed for long.
func TestWatchBehind(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	writeFile(t, "", dir, "f")
	flush(t, v, dir, r)
	assert.Equal(t, lookup(t, v, wsfs.RootIno, "f").Attr.TTL, longTTL, "TTL ... before")
	defer v.watch.judge().done() // nothing is compared meanwhile
	v.watch.in.Rescan()
	e := lookup(t, v, wsfs.RootIno, "f")
	assert.True(t, e.TTL == shortTTL && e.Attr.TTL == shortTTL, "TTL", e.TTL, e.Attr.TTL)
	assert.Equal(t, lookupNone(t, v, wsfs.RootIno, "g").TTL, shortTTL, "negative TTL")
	st := v.Status()
	assert.True(t, st.Watch == "partial" && st.WatchWhy != "", st)
}

// Without enough watches the rest is believed for a second, and Status says so;
// when there are some again, all is watched.
func TestWatchExhausted(t *testing.T) {
	now := time.Now()
	var offset, most atomic.Int64
	most.Store(2)
	dir := t.TempDir()
	for i := range 5 {
		ok(t, os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o755))
	}
	v := serveDir(t, dir, Options{Watch: true, tune: tuning{refuseWatch: func(n int) bool { return n >= int(most.Load()) }},
		Now: func() time.Time { return now.Add(time.Duration(offset.Load())) }})
	waitFor(t, "exhaustion", func() bool { return v.Status().Watch == "exhausted" })
	st := v.Status()
	assert.True(t, st.Watched == 2 && st.WatchWhy != "", st)
	if told := record(v); told.count(note{"failed", 0, ""}) == 0 { // twice, if the watch has not told of it before
		t.Errorf("told %v", told.all())
	}
	assert.Equal(t, lookupNone(t, v, wsfs.RootIno, "x").TTL, longTTL, "watched directory: TTL")
	short := 0
	for i := range 5 {
		d := lookup(t, v, wsfs.RootIno, fmt.Sprint(i))
		if lookupNone(t, v, d.Ino, "x").TTL == shortTTL {
			short++
		}
	}
	assert.Equal(t, short, 4, "directories with a short TTL")
	most.Store(100)
	offset.Store(int64(inotify.RetryWatch))
	d := lookup(t, v, wsfs.RootIno, "4")
	lookupNone(t, v, d.Ino, "x")
	settledAt(t, v, 6)
	assert.Equal(t, v.Status().Watch, "on", "watch")
}

// The walk reads nobody's directories as far as atime tells.
func TestWatchLeavesAtime(t *testing.T) {
	dir := t.TempDir()
	ok(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	old := time.Unix(1000, 0)
	ok(t, os.Chtimes(filepath.Join(dir, "d"), old, time.Now()))
	v := serveDir(t, dir, Options{Watch: true})
	settledAt(t, v, 2)
	a := lookup(t, v, wsfs.RootIno, "d").Attr
	assert.True(t, a.Atime.Equal(old), "atime", a.Atime)
}

func TestTTL(t *testing.T) {
	for _, watch := range []bool{true, false} {
		v, dir := serve(t, Options{Watch: watch, NoPassthrough: os.Geteuid() != 0})
		if watch {
			settled(t, v)
		}
		long := shortTTL
		if watch {
			long = longTTL
		}
		create(t, v, wsfs.RootIno, "read", "x")
		writeFile(t, "x", dir, "plain")
		writeFile(t, "x", dir, "linked")
		ok(t, os.Link(filepath.Join(dir, "linked"), filepath.Join(dir, "linked2")))
		check := func(name string, wantName, wantAttr time.Duration) {
			t.Helper()
			e := lookup(t, v, wsfs.RootIno, name)
			assert.True(t, e.TTL == wantName && e.Attr.TTL == wantAttr, "watch", watch, name, "TTL", e.TTL, "and", e.Attr.TTL, "want", wantName, "and", wantAttr)
			assert.Equal(t, attr(t, v, e.Ino).TTL, wantAttr, "watch", watch, name, "attr TTL")
		}
		check("plain", long, long)
		check("linked", long, shortTTL)
		assert.Equal(t, lookupNone(t, v, wsfs.RootIno, "none").TTL, long, "watch", watch, "negative")
		if os.Geteuid() != 0 {
			continue
		}
		p := lookup(t, v, wsfs.RootIno, "plain")
		r := must[wsfs.Opened](t)(v.Open(op(), p.Ino, unix.O_RDONLY))
		check("plain", long, long)
		w := must[wsfs.Opened](t)(v.Open(op(), p.Ino, unix.O_RDWR))
		check("plain", long, 0)
		w.File.Release()
		check("plain", long, long)
		r.File.Release()

		// A mapping outlives the descriptor that the kernel wrote with.
		w = must[wsfs.Opened](t)(v.Open(op(), p.Ino, unix.O_RDWR))
		f := must[*os.File](t)(os.OpenFile(filepath.Join(dir, "plain"), os.O_RDWR, 0))
		m := must[[]byte](t)(unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_WRITE, unix.MAP_SHARED))
		f.Close()
		w.File.Release()
		check("plain", long, 0)
		m[0]++
		ok(t, unix.Msync(m, unix.MS_SYNC))
		check("plain", long, 0)
		ok(t, unix.Munmap(m))
		check("plain", long, long)
	}
}

// Pages of the kernel are good until somebody else writes.
func TestKeepCache(t *testing.T) {
	for _, watch := range []bool{true, false} {
		v, dir := serve(t, Options{Watch: watch, NoPassthrough: true})
		r := record(v)
		e := create(t, v, wsfs.RootIno, "f", "one")
		opens := func() bool {
			o := must[wsfs.Opened](t)(v.Open(op(), e.Ino, unix.O_RDWR))
			defer o.File.Release()
			must[int](t)(o.File.Write(op(), []byte("two"), 0))
			return o.KeepCache
		}
		first, second := opens(), opens()
		assert.True(t, first && second, "watch", watch, "pages dropped after own writes")
		must[wsfs.Attr](t)(v.SetAttr(op(), e.Ino, nil, &wsfs.SetAttr{Mode: ptr(uint32(0o600))}))
		assert.True(t, opens(), "watch", watch, "pages dropped after own chmod")
		writeFile(t, "by others", dir, "f")
		if watch {
			r.wait(t, note{kind: "content", ino: e.Ino})
		} else { // whoever sees it first says so
			attr(t, v, e.Ino)
			assert.Equal(t, r.count(note{kind: "content", ino: e.Ino}), 1, "the kernel was not told")
		}
		assert.False(t, opens(), "watch", watch, "pages kept after a write by others")
		assert.True(t, opens(), "watch", watch, "pages dropped for ever")
	}
}

// Who stands in a directory that others moved out sees nothing of what happens
// there; in one that was removed he sees that it is removed.
func TestWatchAbandons(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	for _, name := range []string{"out", "removed"} {
		ok(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	settledAt(t, v, 3)
	out, removed := lookup(t, v, wsfs.RootIno, "out"), lookup(t, v, wsfs.RootIno, "removed")
	lookupNone(t, v, out.Ino, "x")
	lookupNone(t, v, removed.Ino, "x")
	away := filepath.Join(t.TempDir(), "out")
	ok(t, os.Rename(filepath.Join(dir, "out"), away))
	ok(t, os.Remove(filepath.Join(dir, "removed")))
	settledAt(t, v, 1)
	flush(t, v, dir, r)
	writeFile(t, "private", away, "secret")
	e, err := v.Lookup(op(), out.Ino, "secret")
	assert.True(t, err != nil, "served from outside:", e)
	assert.Equal(t, attr(t, v, removed.Ino).Nlink, 0, "removed directory has ... links")
}

// A report that overtakes the request it is about waits for it.
func TestWatchWaitsForRequests(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	own := v.ownBegin(true, wsfs.RootIno, "f")
	writeFile(t, "x", dir, "f") // as the request would
	waitFor(t, "report to be put off", func() bool {
		j := v.watch.judge()
		defer j.done()
		return len(j.retries) > 0
	})
	e := lookup(t, v, wsfs.RootIno, "f")
	n, _ := v.tab.lock(e.Ino)
	own.changed, own.made = true, n.ident()
	n.unlock()
	own.end()
	flush(t, v, dir, r)
	for n := range r.all() {
		assert.False(t, n.name == "f", "told", n)
	}
}

// A change that is met twice, in a report and by reading the directory, is one
// event.
func TestWatchSaysOnce(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{quiet: resting})
	writeFile(t, "x", dir, "f")
	r.wait(t, note{kind: "wrote", name: "f"})
	v.watch.found(key{Dir: wsfs.RootIno, Name: "f"}, inotify.Found)
	flush(t, v, dir, r)
	assert.Equal(t, r.count(note{kind: "wrote", name: "f"}), 1, "events")
}

// What the walker or a request came to know while it was judged keeps its name,
// and what only the walker saw is told.
func TestWatchKnownMeanwhile(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	w := v.watch
	j := w.judge() // no report now
	ok(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	k := key{Dir: wsfs.RootIno, Name: "d"}
	ino := w.know(k.Dir, k.Name) // busy from now on
	met := seen{key: k, mask: unix.IN_CREATE | unix.IN_ISDIR, there: true}
	w.look(&met)
	defer met.in.drop()
	j.tell(&met, j.unknown(&met))
	p, _ := v.Path(ino)
	assert.True(t, p == "d", "path", p)
	entry := note{"entry", k.Dir, k.Name}
	before := r.count(entry)
	n, _ := v.tab.lock(ino)
	n.ext.busy, n.ext.wd = 0, -1 // which holds it instead
	n.unlock()
	j.report(inotify.Report{Key: k, Mask: unix.IN_CREATE | unix.IN_ISDIR}, 0)
	j.done()
	if before != 1 || r.count(entry) < 2 {
		t.Errorf("told the kernel %d times, then %d", before, r.count(entry))
	}
	settledAt(t, v, 2)
}

// What a request met under a name after a look at it keeps the name.
func TestWatchMetMeanwhile(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	create(t, v, wsfs.RootIno, "f", "old")
	flush(t, v, dir, r)
	w := v.watch
	j := w.judge() // no report now
	defer j.done()
	ok(t, os.Remove(filepath.Join(dir, "f")))
	met := seen{key: key{Dir: wsfs.RootIno, Name: "f"}, mask: unix.IN_DELETE}
	w.look(&met)
	defer met.in.drop()
	writeFile(t, "another", dir, "f")
	f := lookup(t, v, wsfs.RootIno, "f")
	got := j.enter(&met)
	assert.True(t, got.lost == 0 && got.entry, "the look made", got)
	attr(t, v, f.Ino)
}

// A report that is judged late finds more than it tells of: a chmod or a link,
// and the write that came after it, whose own report then finds nothing new. The
// kernel hears of the content all the same, and keeps no pages at an open.
func TestWatchLooksEarly(t *testing.T) {
	for _, c := range []struct {
		name, at string
		mask     uint32
		before   func(path string) error
	}{
		{"chmod", "f", unix.IN_ATTRIB, func(path string) error { return os.Chmod(path, 0o600) }},
		{"link", "g", unix.IN_CREATE, func(path string) error { return os.Link(path, filepath.Join(filepath.Dir(path), "g")) }},
		{"half a write", "f", unix.IN_MODIFY, func(string) error { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, dir, r := serveWatched(t, tuning{})
			writeFile(t, "1", dir, "f")
			flush(t, v, dir, r)
			f := lookup(t, v, wsfs.RootIno, "f")
			must[wsfs.Opened](t)(v.Open(op(), f.Ino, unix.O_RDONLY)).File.Release()

			w := v.watch
			j := w.judge()
			ok(t, c.before(filepath.Join(dir, "f")))
			writeFile(t, "2", dir, c.at)
			j.report(inotify.Report{Key: key{Dir: wsfs.RootIno, Name: c.at}, Mask: c.mask}, 0)
			o := must[wsfs.Opened](t)(v.Open(op(), f.Ino, unix.O_RDONLY))
			o.File.Release()
			told := r.count(note{kind: "content", ino: f.Ino})
			j.report(inotify.Report{Key: key{Dir: wsfs.RootIno, Name: c.at}, Mask: unix.IN_MODIFY | unix.IN_CLOSE_WRITE}, 0)
			again := r.count(note{kind: "content", ino: f.Ino})
			j.done()
			assert.False(t, o.KeepCache, "the kernel may keep pages of the content before")
			assert.True(t, again > told, "the report of the write told the kernel nothing")
			flush(t, v, dir, r)
			j = w.judge()
			j.report(inotify.Report{Key: key{Dir: wsfs.RootIno, Name: c.at}, Mask: unix.IN_MODIFY | unix.IN_CLOSE_WRITE}, 0)
			j.done()
			if n := r.count(note{kind: "content", ino: f.Ino}); n > again+1 {
				t.Errorf("told of content %d times more, where nothing came", n-again)
			}
		})
	}
}

// What others write into a file that is open for writing through the page cache,
// although passthrough was offered, is told like any other change.
func TestWatchUnpassed(t *testing.T) {
	v, dir, r := serveWatched(t, tuning{})
	writeFile(t, "1", dir, "f")
	flush(t, v, dir, r)
	f := lookup(t, v, wsfs.RootIno, "f")
	o := must[wsfs.Opened](t)(v.Open(op(), f.Ino, unix.O_RDWR))
	defer o.File.Release()
	o.File.(wsfs.Unpassed).Unpassed()
	writeFile(t, "2", dir, "f")
	r.wait(t, note{kind: "content", ino: f.Ino})
}
