package cache

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
)

// tree is everything here, as the backend's listing gives it once it is there.
func (w *world) tree(want ...string) {
	w.Helper()
	w.settle()
	w.backend(want...)
}

func (w *world) restore(o RestoreOptions) RestoreReport {
	w.Helper()
	r, err := w.v.Restore(w.Context(), o)
	w.ok(err)
	return r
}

func (w *world) versionOf(path, content string) string {
	w.Helper()
	list, err := w.v.Log(w.Context(), LogFilter{Path: path})
	w.ok(err)
	for _, ver := range list {
		if w.content(ver.ID) == content {
			return ver.ID
		}
	}
	w.Fatalf("no version of %s is %q", path, content)
	return ""
}

func TestRestoreAVersion(t *testing.T) {
	w, c := historic(t)
	w.ok(w.put("f", "one"))
	w.later(c, 3*time.Second)
	w.ok(w.put("f", "two"))
	w.later(c, 3*time.Second)
	old := w.open("f", syscall.O_RDONLY)
	one := w.versionOf("f", "one")
	r := w.restore(RestoreOptions{Path: "f", To: State{Version: one}})
	if strings.Join(r.Restored, " ") != "f" || len(r.Skipped) != 0 {
		t.Errorf("%+v", r)
	}
	assert.Equal(t, w.read(old), "two", "who had it open")
	old.File.Release()
	assert.Equal(t, w.get("f"), "one", "restored")
	w.tree("f: one")
	w.forgetAll()
	// Nothing was taken from the history, and the way back is open.
	w.restore(RestoreOptions{Path: "f", To: State{Version: w.versionOf("f", "two")}})
	w.tree("f: two")
}

func TestRestoreWhatWasRemoved(t *testing.T) {
	w, c := historic(t)
	w.mkdir("d")
	w.mkdir("d/e")
	w.ok(w.put("d/e/f", "precious"))
	w.later(c, 3*time.Second)
	w.settle()
	id := w.versionOf("d/e/f", "precious")
	was := c.now()
	w.ok(w.unlink("d/e/f"))
	dir, name := w.dirOf("d/e")
	w.ok(w.v.Rmdir(me, dir, name))
	w.forgetAll()
	w.settle()
	assert.Equal(t, w.content(id), "precious", "the version")
	r := w.restore(RestoreOptions{Path: "d", To: State{Time: was}})
	if strings.Join(r.Restored, " ") != "d/e d/e/f" || len(r.Skipped) != 0 {
		t.Errorf("%+v", r)
	}
	w.tree("d/", "d/e/", "d/e/f: precious")
}

// A turn is undone: what it changed, removed, renamed and made.
func TestRestoreBeforeATurn(t *testing.T) {
	w, c := historic(t)
	w.mkdir("d")
	for _, f := range []string{"changed", "removed", "renamed", "over", "same"} {
		w.ok(w.put("d/"+f, f+" before"))
	}
	w.later(c, 3*time.Second)
	w.v.SetActor(Actor{Turn: "7"})
	w.ok(w.put("d/changed", "changed after"))
	w.ok(w.unlink("d/removed"))
	w.ok(w.rename("d/renamed", "d/elsewhere"))
	w.ok(w.put("d/made", "made after"))
	w.ok(w.put("d/tmp", "over after"))
	w.ok(w.rename("d/tmp", "d/over"))
	w.ok(w.rename("d", "e"))
	w.ok(w.put("e/changed", "changed again"))
	w.forgetAll()
	w.later(c, 3*time.Second)
	w.v.SetActor(Actor{})
	r := w.restore(RestoreOptions{Path: "e", To: State{Turn: "7", Before: true}, DryRun: true})
	if len(r.Restored) != 4 || len(r.Removed) != 2 || len(r.Skipped) != 0 {
		t.Errorf("dry: %+v", r)
	}
	assert.Equal(t, w.get("e/changed"), "changed again", "a dry run changed it to")
	w.restore(RestoreOptions{Path: "e", To: State{Turn: "7", Before: true}})
	w.tree("e/",
		"e/changed: changed before",
		"e/over: over before",
		"e/removed: removed before",
		"e/renamed: renamed before",
		"e/same: same before")
	// And back again.
	w.forgetAll()
	w.restore(RestoreOptions{Path: "e", To: State{Turn: "7"}})
	w.tree("e/",
		"e/changed: changed again",
		"e/elsewhere: renamed before",
		"e/made: made after",
		"e/over: over after",
		"e/same: same before")
}

func TestRestoreRefuses(t *testing.T) {
	w, c := historic(t)
	w.ok(w.put("f", "one"))
	w.later(c, 3*time.Second)
	w.ok(w.put("f", "two"))
	one := w.versionOf("f", "one")
	for _, test := range []struct {
		name string
		o    RestoreOptions
		want error
	}{
		{"nothing said", RestoreOptions{Path: "f"}, syscall.EINVAL},
		{"no such version", RestoreOptions{Path: "f", To: State{Version: "99999"}}, ErrNoVersion},
		{"no version", RestoreOptions{Path: "f", To: State{Version: "x"}}, ErrNoVersion},
		{"no such turn", RestoreOptions{Path: "f", To: State{Turn: "x"}}, ErrNoVersion},
	} {
		assert.Is(t, assert.ErrOf(w.v.Restore(t.Context(), test.o)), test.want, test.name)
	}
	governing := errors.New("governs this mount")
	r := w.restore(RestoreOptions{Path: "f", To: State{Version: one}, Refuse: func(string) error { return governing }})
	if len(r.Skipped) != 1 || r.Skipped[0].Reason != governing.Error() || w.get("f") != "two" {
		t.Errorf("%+v", r)
	}
	w.ok(w.unlink("f"))
	w.mkdir("f")
	r = w.restore(RestoreOptions{To: State{Version: one}})
	assert.Equal(t, len(r.Skipped), 1, "over a directory:", r)
	w.v.o.ReadOnly = true
	_, err := w.v.Restore(t.Context(), RestoreOptions{Path: "f", To: State{Version: one}})
	w.is(err, fs.ErrReadOnly)
	w.v.o.ReadOnly = false
	_, err = w.v.Restore(w.Context(), RestoreOptions{Path: "never/was", To: State{Time: time.Unix(1, 0)}})
	w.is(err, errGone)
}
