package past

import (
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/integration/assert"
)

// A diff of a tree has each file that differs, between any two states.
func TestDiffTree(t *testing.T) {
	w := turn7(t)
	before, after := State{Turn: "7", Before: true}, State{Turn: "7"}
	const turn = `--- changed@before turn:7
+++ changed@turn:7
@@ -1,1 +1,1 @@
-changed before
+changed after
--- d/renamed@before turn:7
+++ /dev/null
@@ -1,1 +0,0 @@
-d/renamed before
--- d/still@before turn:7
+++ /dev/null
@@ -1,1 +0,0 @@
-d/still before
--- d/sub/still@before turn:7
+++ /dev/null
@@ -1,1 +0,0 @@
-d/sub/still before
--- /dev/null
+++ e/still@turn:7
@@ -0,0 +1,1 @@
+d/still before
--- /dev/null
+++ e/sub/still@turn:7
@@ -0,0 +1,1 @@
+d/sub/still before
--- /dev/null
+++ elsewhere@turn:7
@@ -0,0 +1,1 @@
+d/renamed before
--- /dev/null
+++ made@turn:7
@@ -0,0 +1,1 @@
+made after
--- removed@before turn:7
+++ /dev/null
@@ -1,1 +0,0 @@
-removed before
`
	assert.Equal(t, w.diff(DiffOptions{From: before, To: after}), turn)
	// To now there is what happened since, too.
	assert.Equal(t, w.diff(DiffOptions{From: before}), strings.NewReplacer("after\n--- d", "later\n--- d", "@turn:7", "").Replace(turn))
	// A directory is compared with what it was, under the name that it has.
	assert.Equal(t, w.diff(DiffOptions{Path: "e", From: before, At: "lib"}), "--- lib/e/renamed@before turn:7\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-d/renamed before\n")
	assert.Is(t, assert.ErrOf(w.past.Diff(t.Context(), DiffOptions{Path: "e"})), syscall.EINVAL)
}

// A file can be compared between a version and any other state, and with the one before.
func TestDiffOfAFile(t *testing.T) {
	w := newWorld(t, "put empty ", "put f one\n", "put other other\n", "turn 7", "put f two\n", "wait")
	one, other := w.versionOf("f", "one\n"), w.versionOf("other", "other\n")
	assert.Equal(t, w.diff(DiffOptions{Path: "f"}), "--- f@"+one.Version+"\n+++ f\n@@ -1,1 +1,1 @@\n-one\n+two\n")
	assert.Equal(t, w.diff(DiffOptions{Path: "f", From: one, To: State{Turn: "7"}}), "--- f@"+one.Version+"\n+++ f@turn:7\n@@ -1,1 +1,1 @@\n-one\n+two\n")
	got := w.diff(DiffOptions{Path: "f", From: other, To: one})
	assert.True(t, strings.HasPrefix(got, "--- other@") && strings.Contains(got, "+++ f@"), "got", got)
	w.Do("put f a\x00c\n")
	assert.Equal(t, w.diff(DiffOptions{Path: "f", From: one}), "Binary files f@"+one.Version+" and f differ\n")
	w.Do("turn ", "rm empty")
	assert.Equal(t, w.diff(DiffOptions{Path: "empty", From: State{Turn: "7"}}), "--- empty@turn:7\n+++ /dev/null\n")
	w.Do("rm f")
	assert.Equal(t, w.diff(DiffOptions{Path: "f", From: one}), "--- f@"+one.Version+"\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n")
	for path, err := range map[string]error{"no such": ErrNotThere, "f": ErrNoVersion} {
		o := DiffOptions{Path: path, From: State{Turn: "7"}}
		if path == "f" {
			o.From = State{Version: "4711"}
		}
		assert.Is(t, assert.ErrOf(w.past.Diff(t.Context(), o)), err, path)
	}
	assert.Is(t, assert.ErrOf(w.past.Diff(t.Context(), DiffOptions{Path: "no such", From: one})), ErrNotThere)
	assert.Is(t, assert.ErrOf(newWorld(t, "put f one").past.Diff(t.Context(), DiffOptions{Path: "f"})), ErrNoVersion, "there is no other")
}

// A diff shows a directory only where nothing in it shows that it is there.
func TestDiffOfDirectories(t *testing.T) {
	w := newWorld(t, "mkdir old", "put f f\n", "turn 7", "rm old", "mkdir full", "mkdir full/deep", "put full/f new\n", "rm f", "mkdir f")
	const want = `--- f@before turn:7
+++ /dev/null
@@ -1,1 +0,0 @@
-f
--- /dev/null
+++ full/deep/
--- /dev/null
+++ full/f
@@ -0,0 +1,1 @@
+new
--- old@before turn:7/
+++ /dev/null
`
	assert.Equal(t, w.diff(DiffOptions{From: State{Turn: "7", Before: true}}), want)
}

// What cannot be shown in a tree is said, and holds up no other file.
func TestDiffOfWhatCannotBeShown(t *testing.T) {
	w := newWorld(t, "put burst 1", "sym old link", "turn 7", "put burst 2", "put burst 3", "rm link", "sym new link")
	w.Keeper.SetActor(history.Actor{Turn: "8"})
	w.Do("put burst 4", "put z z\n")
	w.lose("burst", "3")
	assert.Equal(t, w.diff(DiffOptions{From: State{Turn: "7", Before: true}, To: State{Turn: "7"}}),
		"Files burst@before turn:7 and burst@turn:7 cannot be compared: burst@turn:7: "+history.ErrNotKept.Error()+"\n"+
			"--- link@before turn:7\n+++ link@turn:7\n@@ -1,1 +1,1 @@\n-old\n+new\n")
	assert.Is(t, assert.ErrOf(w.past.Diff(t.Context(), DiffOptions{Path: "burst", From: State{Turn: "7"}})), history.ErrNotKept)
	got := w.diff(DiffOptions{From: State{Turn: "7"}})
	assert.True(t, strings.HasSuffix(got, "+z\n"), "got", got)
}

// A diff has an end, and so has what is read for it.
func TestDiffOfTooMuch(t *testing.T) {
	w := newWorld(t, "put first 1", "put a 1234567\n", "put b 1234567\n", "put c 1234567\n", "put d 12345678\n")
	for _, test := range []struct {
		maxText int
		want    string
	}{
		{1000, "Files /dev/null and d are too large to be compared\n"},
		{100, "\n+1234567\nWhat differs from c on is too much to be shown\n"},
	} {
		d := &differ{h: w.past, o: DiffOptions{From: w.versionOf("first", "1")}, maxSide: 8, maxText: test.maxText}
		got := assert.Of(d.diff(t.Context())).OK(t)
		assert.True(t, strings.HasSuffix(got, test.want), "got", got)
	}
}
