package cache

import (
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// shown is what a file of the control directory has, which says how much that is.
func (w *world) shown(path string) string {
	w.Helper()
	s, err := w.v.Show(me, path)
	w.ok(err)
	f, err := s.Open(me)
	w.ok(err)
	defer f.Close()
	content, err := io.ReadAll(io.NewSectionReader(f, 0, s.Size+1))
	w.ok(err)
	assert.Equal(w, int64(len(content)), s.Size, "bytes of", path)
	return string(content)
}

// The history can be read in the mount, by its owner.
func TestShowHistory(t *testing.T) {
	w, c := historic(t)
	w.do("mkdir d", "put d/f one")
	w.later(c, 3*time.Second)
	w.ok(w.put("d/f", "two!"))
	show := func(path string) fs.Shown {
		t.Helper()
		s, err := w.v.Show(me, path)
		w.ok(err)
		return s
	}
	for path, want := range map[string]string{"": "conflicts/ history/", "history": "d/", "history/d": "f/", "conflicts": ""} {
		assert.Equal(t, strings.Join(show(path).Names, " "), want, path)
	}
	names := show("history/d/f").Names
	if len(names) != 2 || !strings.HasSuffix(names[0], "-written") {
		t.Fatalf("versions %q", names)
	}
	for i, want := range []string{"one", "two!"} {
		s := show("history/d/f/" + names[i])
		if s.Names != nil || s.Mode != 0o400 || s.UID != w.v.o.Owner.UID || s.Size != int64(len(want)) {
			t.Errorf("%+v", s)
		}
		assert.Equal(t, w.shown("history/d/f/"+names[i]), want, "read")
	}
	_, err := w.v.Show(me, "history/d/f/nothing")
	w.is(err, syscall.ENOENT)
	for _, s := range []string{"new", "newer", "newest"} {
		w.ok(w.put("d/g", s))
	}
	assert.Equal(t, len(show("history/d/g").Names), 2, "of a burst")
	assert.Equal(t, strings.Join(show("history/d").Names, " "), "f/ g/", "later")
}

// The names of versions sort as the versions came to be: an agent goes by ls.
func TestShowHistoryInOrder(t *testing.T) {
	w, c := historic(t)
	for i := range 30 {
		w.ok(w.put("f", strconv.Itoa(i)))
		w.ok(w.unlink("f"))
	}
	w.later(c, time.Hour) // for what is shown to be looked for again
	s, err := w.v.Show(me, "history/f")
	w.ok(err)
	for i, last := 0, -1; i < len(s.Names); i++ {
		at, err := strconv.Atoi(w.shown("history/f/" + s.Names[i]))
		w.ok(err)
		if at < last {
			t.Fatalf("%d comes after %d: %q", at, last, s.Names)
		}
		last = at
	}
	if len(s.Names) < 20 {
		t.Fatalf("only %q", s.Names)
	}
}

// So can the sides of a conflict.
func TestShowConflicts(t *testing.T) {
	w := newWorld(t, holding("f", "base"), func(_ *world, o *Options) { onlyAsked(nil, o); o.Policy.Conflict = Manual })
	w.get("f")
	w.ok(w.put("f", "ours"))
	w.tamper("f", "theirs")
	w.pull()
	s, err := w.v.Show(me, "conflicts/f")
	w.ok(err)
	if !strings.Contains(strings.Join(s.Names, " "), "ours theirs") {
		t.Fatalf("%q", s.Names)
	}
	for _, side := range []string{"ours", "theirs"} {
		assert.Equal(t, w.shown("conflicts/f/"+side), side)
	}
}

// What a program has just done is in the listing, however long the one before took
// to make; while nothing changes it is not made again.
func TestShowHistoryIsCurrent(t *testing.T) {
	w, _ := historic(t)
	w.ok(w.put("f", "one"))
	list := func() *shownTree {
		t.Helper()
		l, err := w.v.shownHistory(w.Context())
		w.ok(err)
		return l
	}
	first := list()
	first.at = first.at.Add(time.Hour) // as if it was made just now
	assert.Equal(t, list(), first, "made again, though nothing changed")
	w.ok(w.unlink("f"))
	if now := list(); now == first || len(now.dirs["history/f"]) != 2 {
		t.Errorf("after a removal: %v", now.dirs)
	}
	long := list()
	long.long = true
	w.ok(w.put("g", "two"))
	assert.Equal(t, list(), long, "a long listing was made again at once")
}
