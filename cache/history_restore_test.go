package cache

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/past"
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
	r := assert.Of(w.v.Restore(w.Context(), o)).OK(w)
	return r
}

func (w *world) diff(o DiffOptions) string {
	w.Helper()
	text := assert.Of(w.v.Diff(w.Context(), o)).OK(w)
	return text
}

// skips wants a restore to skip one path for a reason, and to do nothing else.
func (w *world) skips(o RestoreOptions, path, reason string) {
	w.Helper()
	r := w.restore(o)
	assert.True(w, len(r.Restored)+len(r.Removed) == 0, "report", r)
	assert.Slice(w, r.Skipped, []Skipped{{Path: path, Reason: reason}}, "skipped")
}

func (w *world) versionOf(path, content string) string {
	w.Helper()
	list := w.versions(LogFilter{Path: path})
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
	w.saves(c, "f", "one", "two")
	old := w.open("f", syscall.O_RDONLY)
	one := w.versionOf("f", "one")
	r := w.restore(RestoreOptions{Path: "f", To: State{Version: one}})
	assert.Slice(t, r.Restored, []string{"f"}, "restored")
	assert.Equal(t, len(r.Skipped), 0, "skipped", r.Skipped)
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
	w.saves(c, "f", "one")
	w.ok(w.put("f", "two"))
	one := w.versionOf("f", "one")
	governing := errors.New("governs this mount")
	w.skips(RestoreOptions{Path: "f", To: State{Version: one}, Refuse: func(string) error { return governing }}, "f", governing.Error())
	assert.Equal(t, w.get("f"), "two")
	w.do("rm f", "mkdir f")
	r := w.restore(RestoreOptions{To: State{Version: one}})
	assert.Equal(t, len(r.Skipped), 1, "over a directory:", r)
	w.v.o.ReadOnly = true
	w.is(assert.ErrOf(w.v.Restore(t.Context(), RestoreOptions{Path: "f", To: State{Version: one}})), fs.ErrReadOnly)
	w.v.o.ReadOnly = false
	w.is(assert.ErrOf(w.v.Restore(w.Context(), RestoreOptions{Path: "never/was", To: State{Time: time.Unix(1, 0)}})), past.ErrNotThere)
}

// goesBack restores everything, after which nothing differs.
func (w *world) goesBack(s State, want ...string) {
	w.Helper()
	r := w.restore(RestoreOptions{To: s})
	assert.Equal(w, len(r.Skipped), 0, "skipped", r.Skipped)
	w.forgetAll()
	w.tree(want...)
	assert.Equal(w, w.diff(DiffOptions{From: s}), "", "then it differs")
}

// Without a rename what was made goes too, and comes again.
func TestRestoreWhatWasMade(t *testing.T) {
	w, c := historic(t)
	w.do("mkdir d", "sym a link")
	w.turn(c, "2")
	w.do("mkdir new", "mkdir new/sub", "sym b d/new")
	w.ok(w.shut(w.create("touched")))
	w.do("rm link", "sym c link")
	w.forgetAll()
	w.turn(c, "")
	w.goesBack(State{Turn: "2", Before: true}, "d/", "link -> a")
	w.goesBack(State{Turn: "2"}, "d/", "d/new -> b", "link -> c", "new/", "new/sub/", "touched: ")
}

// So does an empty file that the backend gets before its writer has closed it.
func TestRestoreWhatWasSentWhileItWasOpen(t *testing.T) {
	for _, sets := range []bool{false, true} {
		w, c := historic(t, func(_ *world, o *Options) { o.Policy.Atomic = sets })
		w.mkdir("d")
		w.turn(c, "2")
		o := w.create("touched")
		w.v.loop.Tidy()
		c.pass(w.v.o.Policy.MaxOpen)
		w.v.loop.Tidy()
		w.until(func() bool { return len(listBackend(w.p)) == 2 })
		w.ok(w.shut(o))
		w.turn(c, "")
		w.logs("touched", "written written touched: ")
		w.goesBack(State{Turn: "2", Before: true}, "d/")
		w.goesBack(State{Turn: "2"}, "d/", "touched: ")
	}
}
