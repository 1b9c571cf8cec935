package inotify

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	wsfs "github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"golang.org/x/sys/unix"
)

// Every kind of change is reported with the number of its directory, also in
// directories that were there before.
func TestReports(t *testing.T) {
	w, u := watchTree(t, Options{}, func(dir string) { ok(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755)) })
	b := u.number(u.path(Key{root, "a/b"}))
	f, g := u.path(Key{b, "f"}), u.path(Key{root, "g"})
	ok(t, os.WriteFile(f, []byte("x"), 0o644))
	u.reported(t, b, "f", unix.IN_CREATE|unix.IN_MODIFY|unix.IN_CLOSE_WRITE)
	ok(t, os.Chmod(f, 0o600))
	u.reported(t, b, "f", unix.IN_ATTRIB)
	ok(t, os.Rename(f, g))
	u.reported(t, root, "g", unix.IN_MOVED_TO)
	ok(t, os.Remove(g))
	u.reported(t, root, "g", unix.IN_DELETE)
	ok(t, os.Chmod(filepath.Dir(f), 0o700))
	u.reported(t, b, "", unix.IN_ATTRIB)
	st := w.Status()
	assert.True(t, st.State == "on" && st.Watched == 3, st)
}

// A directory that is removed is reported with its number, and one whose watch was
// taken away not at all.
func TestWatchesGo(t *testing.T) {
	w, u := watchTree(t, Options{}, func(dir string) {
		ok(t, os.Mkdir(filepath.Join(dir, "removed"), 0o755))
		ok(t, os.Mkdir(filepath.Join(dir, "left"), 0o755))
	})
	removed, left := u.number(u.path(Key{root, "removed"})), u.number(u.path(Key{root, "left"}))
	for _, at := range w.Watches() {
		if at.Dir == left {
			w.Remove(at.WD)
		}
	}
	ok(t, os.WriteFile(u.path(Key{left, "f"}), nil, 0o644))
	ok(t, os.Remove(u.path(Key{root, "removed"})))
	for {
		b := <-u.batches
		assert.False(t, slices.ContainsFunc(b.Reports, func(r Report) bool { return r.Dir == left }), "reported of a directory that is not watched:", b.Reports)
		if slices.ContainsFunc(b.Gone, func(at Watch) bool { return at.Dir == removed }) {
			break
		}
	}
	got := w.Watches()
	assert.True(t, len(got) == 1 && got[0].Dir == root, got, "are left")
}

// Lost events have the whole tree compared, and until then nothing is believed.
func TestLostEvents(t *testing.T) {
	var lose atomic.Bool
	w, u := watchTree(t, Options{Lose: lose.Load}, func(dir string) {
		ok(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	})
	var during atomic.Bool
	u.mu.Lock()
	u.visit = func() {
		if w.Current() || w.Status().State != "partial" {
			during.Store(true)
		}
	}
	u.mu.Unlock()
	lose.Store(true)
	ok(t, os.WriteFile(u.path(Key{root, "f"}), nil, 0o644))
	waitFor(t, "an overflow", func() bool { return w.Status().Overflows > 0 })
	lose.Store(false)
	waitFor(t, "the end of it", w.Current)
	u.mu.Lock()
	defer u.mu.Unlock()
	if during.Load() || u.walked == 0 || u.found["f"] != Rescan || u.found["d"] != Rescan {
		t.Errorf("believed %v, walked %d times, found %v", during.Load(), u.walked, u.found)
	}
}

// What is put off has Handle called again, and so has Wake.
func TestHandleIsCalledAgain(t *testing.T) {
	w, u := watchTree(t, Options{})
	called := func() {
		t.Helper()
		select {
		case <-u.handled:
		case <-time.After(assert.Hangs):
			t.Fatal("not called")
		}
	}
	u.again <- time.Millisecond
	w.Wake(0)
	called() // by Wake
	called() // by what that returned
	w.Wake(time.Hour)
	w.Wake(time.Millisecond) // the earlier one counts
	called()
}

// Refused watches are told of once, tried again later, and then the tree is walked.
func TestRefusedWatches(t *testing.T) {
	start := time.Now()
	var offset, most atomic.Int64
	most.Store(2)
	w, u := watchTree(t, Options{
		Now:    func() time.Time { return start.Add(time.Duration(offset.Load())) },
		Refuse: func(n int) bool { return n >= int(most.Load()) },
	}, func(dir string) {
		for _, name := range []string{"a", "b", "c"} {
			ok(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		}
	})
	st := w.Status()
	assert.True(t, st.State == "exhausted" && st.Why != "" && st.Watched == 2, st)
	u.mu.Lock()
	assert.True(t, len(u.failure) == 1 && w.Failure() != nil, "told", u.failure)
	u.mu.Unlock()
	a := u.number(u.path(Key{root, "a"}))
	most.Store(100)
	_, added := w.Add(a, u.path(Key{Dir: a}))
	assert.False(t, added, "tried at once")
	offset.Store(int64(RetryWatch))
	_, added = w.Add(a, u.path(Key{Dir: a}))
	assert.True(t, added, "not tried again")
	waitFor(t, "a walk", func() bool { return w.Status().Watched == 4 && w.Status().State == "on" })
	if w.Failure() != nil {
		t.Errorf("still %v", w.Failure())
	}
}

// What others do there cannot be seen: a watcher that is off says so.
func TestRemoteFileSystem(t *testing.T) {
	w, u := watchTree(t, Options{Remote: "NFS"})
	st := w.Status()
	assert.True(t, st.State == "off" && st.Why != "", st)
	_, added := w.Add(root, u.path(Key{Dir: root}))
	assert.True(t, !added && w.Descriptors() == 0 && w.Closed(), "it watches")
	w.Walk(Key{Dir: root}, 0)
	w.Rescan()
	assert.Equal(t, len(u.visits), 0, "it walks:", u.visits)
}

// Close ends a walk where it is, and all that it holds is let go of.
func TestCloseEndsAWalk(t *testing.T) {
	w, u := watchTree(t, Options{}, func(dir string) {
		for _, name := range []string{"a", "b", "c"} {
			ok(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		}
	})
	reached, closed := make(chan struct{}), make(chan struct{})
	var visits atomic.Int32
	u.mu.Lock()
	u.visit = func() {
		if visits.Add(1) == 1 {
			close(reached)
			for !w.Closed() {
				time.Sleep(time.Millisecond)
			}
		}
	}
	u.mu.Unlock()
	w.Walk(Key{Dir: root}, Found)
	<-reached
	go func() { w.Close(); close(closed) }()
	<-closed
	assert.Equal(t, visits.Load(), 1, "directories were visited")
}

// Events of one name come to one mask, in the order in which the names came first.
func TestBatch(t *testing.T) {
	d := &dirs{by: map[int32]wsfs.Ino{7: root, 8: 2}}
	c := collector{dirs: d, at: map[Key]int{}}
	var raw []byte
	event := func(wd int32, mask uint32, name string) {
		padded := make([]byte, (len(name)+16)/16*16) // as the kernel aligns it
		if name == "" {
			padded = nil
		}
		copy(padded, name)
		raw = binary.NativeEndian.AppendUint32(raw, uint32(wd))
		raw = binary.NativeEndian.AppendUint32(raw, mask)
		raw = binary.NativeEndian.AppendUint32(raw, 0)
		raw = binary.NativeEndian.AppendUint32(raw, uint32(len(padded)))
		raw = append(raw, padded...)
	}
	event(7, unix.IN_CREATE, "f")
	event(8, unix.IN_ATTRIB, "")
	event(7, unix.IN_CLOSE_WRITE, "f")
	event(9, unix.IN_CREATE, "of a watch that was removed")
	event(8, unix.IN_IGNORED, "")
	event(8, unix.IN_CREATE, "late")
	c.decode(raw)
	assert.Slice(t, c.Reports, []Report{{Key{root, "f"}, unix.IN_CREATE | unix.IN_CLOSE_WRITE}, {Key{2, ""}, unix.IN_ATTRIB}})
	want := []Watch{{8, 2}}
	assert.True(t, slices.Equal(c.Gone, want) && !c.Overflow, "gone", c.Gone, "overflow", c.Overflow)
	raw = nil
	event(-1, unix.IN_Q_OVERFLOW, "")
	c.decode(raw)
	assert.True(t, c.Overflow, "the overflow was not seen")
}
