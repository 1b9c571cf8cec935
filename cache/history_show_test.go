package cache

import (
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// show is an entry of the control directory.
func (w *world) show(path string) fs.Shown {
	w.Helper()
	s := assert.Of(w.v.Show(me, path)).OK(w)
	return s
}

// shown is what a file of the control directory has, which says how much that is.
func (w *world) shown(path string) string {
	w.Helper()
	s := w.show(path)
	f := assert.Of(s.Open(me)).OK(w)
	defer f.Close()
	content := assert.Of(io.ReadAll(io.NewSectionReader(f, 0, s.Size+1))).OK(w)
	assert.Equal(w, int64(len(content)), s.Size, "bytes of", path)
	return string(content)
}

// The history can be read in the mount, by its owner.
func TestShowHistory(t *testing.T) {
	w, c := historic(t)
	w.do("mkdir d", "put d/f one")
	w.later(c, 3*time.Second)
	w.ok(w.put("d/f", "two!"))
	for path, want := range map[string]string{"": "conflicts/ history/", "history": "d/", "history/d": "f/", "conflicts": ""} {
		assert.Equal(t, strings.Join(w.show(path).Names, " "), want, path)
	}
	names := w.show("history/d/f").Names
	assert.Must(t, len(names) == 2 && strings.HasSuffix(names[0], "-written"), "versions", names)
	for i, want := range []string{"one", "two!"} {
		s := w.show("history/d/f/" + names[i])
		assert.True(t, s.Names == nil && s.Mode == 0o400 && s.UID == w.v.o.Owner.UID && s.Size == int64(len(want)), s)
		assert.Equal(t, w.shown("history/d/f/"+names[i]), want, "read")
	}
	w.is(assert.ErrOf(w.v.Show(me, "history/d/f/nothing")), syscall.ENOENT)
	for _, s := range []string{"new", "newer", "newest"} {
		w.ok(w.put("d/g", s))
	}
	assert.Equal(t, len(w.show("history/d/g").Names), 2, "of a burst")
	assert.Equal(t, strings.Join(w.show("history/d").Names, " "), "f/ g/", "later")
}

// So can the sides of a conflict.
func TestShowConflicts(t *testing.T) {
	w := newWorld(t, holding("f", "base"), func(_ *world, o *Options) { onlyAsked(nil, o); o.Policy.Conflict = Manual })
	w.get("f")
	w.ok(w.put("f", "ours"))
	w.tamper("f", "theirs")
	w.pull()
	assert.Contains(t, strings.Join(w.show("conflicts/f").Names, " "), "ours theirs")
	for _, side := range []string{"ours", "theirs"} {
		assert.Equal(t, w.shown("conflicts/f/"+side), side)
	}
}
