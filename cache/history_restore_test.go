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

func TestRestoreRefuses(t *testing.T) {
	w, c := historic(t)
	w.ok(w.put("f", "one"))
	w.later(c, 3*time.Second)
	w.ok(w.put("f", "two"))
	one := w.versionOf("f", "one")
	governing := errors.New("governs this mount")
	r := w.restore(RestoreOptions{Path: "f", To: State{Version: one}, Refuse: func(string) error { return governing }})
	if len(r.Skipped) != 1 || r.Skipped[0].Reason != governing.Error() || w.get("f") != "two" {
		t.Errorf("%+v", r)
	}
	w.do("rm f", "mkdir f")
	r = w.restore(RestoreOptions{To: State{Version: one}})
	assert.Equal(t, len(r.Skipped), 1, "over a directory:", r)
	w.v.o.ReadOnly = true
	_, err := w.v.Restore(t.Context(), RestoreOptions{Path: "f", To: State{Version: one}})
	w.is(err, fs.ErrReadOnly)
	w.v.o.ReadOnly = false
	_, err = w.v.Restore(w.Context(), RestoreOptions{Path: "never/was", To: State{Time: time.Unix(1, 0)}})
	w.is(err, errGone)
}
