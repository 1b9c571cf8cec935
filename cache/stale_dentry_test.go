package cache

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wsmount/wsmount/fs"
)

// What a pull has just put under a name is not removed or renamed for a kernel
// that takes it for what was there before: it is told to look again, and then it
// is done.
func TestNamesThatTheKernelDoesNotKnow(t *testing.T) {
	for name, do := range map[string]func(w *scene) error{
		"unlink":         func(w *scene) error { return w.v.Unlink(me, fs.RootIno, "f") },
		"rename":         func(w *scene) error { return w.v.Rename(me, fs.RootIno, "f", fs.RootIno, "new", 0) },
		"rename over it": func(w *scene) error { return w.v.Rename(me, fs.RootIno, "other", fs.RootIno, "f", 0) },
		"exchange": func(w *scene) error {
			return w.v.Rename(me, fs.RootIno, "other", fs.RootIno, "f", unix.RENAME_EXCHANGE)
		},
		"unlink after a look": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newScene(t, holding("f", "one", "other", "0"))
			if w.get("f") != "one" || w.get("other") != "0" {
				t.Fatal("not what was put there")
			}
			w.tamper("f", "two")
			w.pull()
			if do == nil {
				w.walk("f")
				w.ok(w.v.Unlink(me, fs.RootIno, "f"))
				return
			}
			w.is(do(w), fs.ErrStale)
			w.ok(do(w))
		})
	}
}

// The stream of a directory that others removed after it was opened ends.
func TestListingOfWhatOthersRemoved(t *testing.T) {
	w := newScene(t, holding("d/f", "0", "g", "0"))
	dir := w.walk("d")
	o, err := w.v.OpenDir(me, dir)
	w.ok(err)
	defer o.Release()
	for _, path := range []string{"d/f", "d"} {
		w.gonePath(path)
	}
	e, more, err := o.Next(me)
	if w.ok(err); more {
		t.Errorf("it has %q", e.Name)
	}
}
