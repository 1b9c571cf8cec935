package cache

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/past"
	"github.com/wsmount/wsmount/integration/assert"
)

func (w *world) diff(o DiffOptions) string {
	w.Helper()
	text := assert.Of(w.v.Diff(w.Context(), o)).OK(w)
	return text
}

// turn7 is a tree, and what a turn makes of it.
func turn7(t *testing.T) *world {
	w, c := historic(t)
	w.do("mkdir d", "mkdir d/sub")
	for _, f := range []string{"changed", "removed", "d/renamed", "d/still", "d/sub/still", "same"} {
		w.ok(w.put(f, f+" before\n"))
	}
	w.turn(c, "7")
	w.do("put changed changed after\n", "rm removed", "put made made after\n", "mv d e",
		"mv e/renamed elsewhere")
	w.forgetAll()
	w.turn(c, "8")
	w.saves(c, "changed", "changed later\n")
	return w
}

// The whole tree goes back, with what moved in a directory that was renamed.
func TestRestoreTheWholeTree(t *testing.T) {
	w := turn7(t)
	dry := w.restore(RestoreOptions{To: State{Turn: "7", Before: true}, DryRun: true})
	assert.Equal(t, w.get("changed"), "changed later\n", "a dry run changed it to")
	r := w.restore(RestoreOptions{To: State{Turn: "7", Before: true}})
	assert.Equal(t, fmt.Sprintf("%+v", dry), fmt.Sprintf("%+v", r), "a dry run says")
	assert.Equal(t, strings.Join(r.Removed, " "), "e e/still e/sub e/sub/still elsewhere made", "removed")
	assert.Equal(t, len(r.Skipped), 0, "skipped", r.Skipped)
	w.tree("changed: changed before\n",
		"d/",
		"d/renamed: d/renamed before\n",
		"d/still: d/still before\n",
		"d/sub/",
		"d/sub/still: d/sub/still before\n",
		"removed: removed before\n",
		"same: same before\n")
	w.forgetAll()
	w.restore(RestoreOptions{To: State{Turn: "7"}})
	w.tree("changed: changed after\n",
		"e/",
		"e/still: d/still before\n",
		"e/sub/",
		"e/sub/still: d/sub/still before\n",
		"elsewhere: d/renamed before\n",
		"made: made after\n",
		"same: same before\n")
}

// What is refused stays as it is, and is reported; so does what cannot be brought back to
// where it was.
func TestRestoreTheWholeTreeButWhatIsRefused(t *testing.T) {
	w := turn7(t)
	governs := errors.New("it governs this mount")
	r := w.restore(RestoreOptions{To: State{Turn: "7", Before: true}, Refuse: func(path string) error {
		if path == "changed" || path == "e/still" || path == "d/sub/still" {
			return governs
		}
		return nil
	}})
	skipped := map[string]string{}
	for _, s := range r.Skipped {
		skipped[s.Path] = s.Reason
	}
	for path, want := range map[string]string{"changed": governs.Error(), "e/still": governs.Error(), "d/sub/still": governs.Error(),
		"e/sub/still": "it could not be brought back to d/sub/still", "e/sub": "directory not empty", "e": "directory not empty"} {
		assert.Equal(t, skipped[path], want, path, "is skipped")
	}
	assert.Equal(t, len(skipped), 6, "skipped", r.Skipped)
	got := w.get("changed") + w.get("e/still") + w.get("d/still") + w.get("e/sub/still")
	assert.Equal(t, got, "changed later\nd/still before\nd/still before\nd/sub/still before\n")
}

// What a restore takes away or replaces is in the history, also when its bytes
// were not here before.
func TestRestoreKeepsWhatWasNotHere(t *testing.T) {
	w, c := historic(t, holding("a", "theirs", "d/f", "old"))
	c.pass(time.Since(c.now()) + time.Minute) // they are older
	w.list("")
	w.list("d")
	assert.Equal(t, w.get("d/f"), "old")
	w.ok(w.put("d/f", "mine"))
	w.settle()
	w.turn(c, "7")
	w.ok(w.rename("a", "d/a"))
	w.settle()
	mine := w.versionOf("d/f", "mine")
	w.tamper("d/f", "pulled")
	w.pull()
	w.restore(RestoreOptions{Path: "d/f", To: State{Version: mine}})
	r := w.restore(RestoreOptions{Path: "d", To: State{Turn: "7", Before: true}})
	assert.Equal(t, strings.Join(r.Removed, " "), "d/a", r)
	w.versionOf("d/a", "theirs")
	w.versionOf("d/f", "pulled")
}

// A version of another file is refused: it says of which.
func TestRestoreAVersionOfAnotherFile(t *testing.T) {
	w, c := historic(t)
	w.do("put f one", "put g other")
	w.later(c, 3*time.Second)
	one := w.versionOf("f", "one")
	for _, path := range []string{"g", "new"} {
		_, err := w.v.Restore(t.Context(), RestoreOptions{Path: path, To: State{Version: one}})
		var other *OtherFileError
		assert.True(t, errors.As(err, &other) && *other == (OtherFileError{Version: one, Path: path, Of: "f"}), path, err)
	}
	// Whatever name the file had then, or has now, is one of it.
	w.do("mv f h", "put h two")
	w.later(c, 3*time.Second)
	w.restore(RestoreOptions{Path: "f", To: State{Version: one}})
	w.restore(RestoreOptions{Path: "h", To: State{Version: one}})
	w.tree("f: one", "g: other", "h: one")
}

// A version of a file in a directory that is gone is a state of the directory.
func TestRestoreADirectoryToAVersionOfAFile(t *testing.T) {
	w, c := historic(t)
	w.do("mkdir d", "put d/f f", "put d/g g")
	w.later(c, 3*time.Second)
	version := w.versionOf("d/g", "g")
	w.do("rm d/f", "rm d/g", "rmdir d")
	w.forgetAll()
	w.restore(RestoreOptions{Path: "d", To: State{Version: version}})
	w.tree("d/", "d/f: f", "d/g: g")
}

// A file that had another name then is not taken away, unless its directory is
// what goes back.
func TestRestoreWhatHadAnotherName(t *testing.T) {
	w, c := historic(t)
	w.do("mkdir d", "put a one", "put d/f one")
	w.later(c, 3*time.Second)
	was := State{Time: c.now()}
	w.do("mv a b", "mv d e", "put e/f two")
	w.later(c, 3*time.Second)
	r := w.restore(RestoreOptions{Path: "b", To: was})
	assert.True(t, len(r.Removed) == 0 && len(r.Skipped) == 1 && r.Skipped[0] == (Skipped{Path: "b", Reason: "it was a then", Was: "a"}), r)
	// A file in a directory that had another name is the file that it was.
	r = w.restore(RestoreOptions{Path: "e/f", To: was})
	assert.True(t, len(r.Skipped) == 0 && len(r.Restored) == 1, "report", r)
	w.tree("b: one", "e/", "e/f: one")
	w.restore(RestoreOptions{To: was})
	w.tree("a: one", "d/", "d/f: one")
}

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
	w.is(assert.ErrOf(w.v.Diff(t.Context(), DiffOptions{Path: "e"})), syscall.EINVAL)
}

// A file can be compared between a version and any other state.
func TestDiffOfAFile(t *testing.T) {
	w, c := historic(t)
	w.do("put empty ", "put f one\n", "put other other\n")
	w.turn(c, "7")
	w.saves(c, "f", "two\n")
	one, other := State{Version: w.versionOf("f", "one\n")}, State{Version: w.versionOf("other", "other\n")}
	assert.Equal(t, w.diff(DiffOptions{Path: "f", From: one, To: State{Turn: "7"}}), "--- f@"+one.Version+"\n+++ f@turn:7\n@@ -1,1 +1,1 @@\n-one\n+two\n")
	got := w.diff(DiffOptions{Path: "f", From: other, To: one})
	assert.True(t, strings.HasPrefix(got, "--- other@") && strings.Contains(got, "+++ f@"), "got", got)
	w.v.SetActor(Actor{})
	w.ok(w.unlink("empty"))
	assert.Equal(t, w.diff(DiffOptions{From: State{Turn: "7"}}), "--- empty@turn:7\n+++ /dev/null\n")
	w.ok(w.unlink("f"))
	assert.Equal(t, w.diff(DiffOptions{Path: "f", From: one}), "--- f@"+one.Version+"\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n")
	w.is(assert.ErrOf(w.v.Diff(t.Context(), DiffOptions{Path: "no such", From: one})), past.ErrNotThere)
	w.is(assert.ErrOf(w.v.Diff(t.Context(), DiffOptions{Path: "no such", From: State{Turn: "7"}})), past.ErrNotThere)
}

// What cannot be shown in a tree is said, and holds up no other file.
func TestDiffTreeOfWhatCannotBeShown(t *testing.T) {
	w, c := historic(t)
	w.ok(w.put("burst", "1"))
	w.ok(w.put("large", strings.Repeat("x", past.MaxDiff+1)))
	w.do("sym old link")
	w.turn(c, "7")
	w.ok(w.put("burst", "2"))
	w.ok(w.put("burst", strings.Repeat("3", history.KeepSmall+1))) // not copied at once
	w.do("rm link", "sym new link")
	w.v.SetActor(Actor{Turn: "8"})
	w.do("put burst 4", "mv large huge", "put z z\n")
	w.later(c, 3*time.Second)
	got := w.diff(DiffOptions{From: State{Turn: "7", Before: true}, To: State{Turn: "7"}})
	if want := "Files burst@before turn:7 and burst@turn:7 cannot be compared: burst@turn:7: " + ErrNotKept.Error() + "\n" +
		"--- link@before turn:7\n+++ link\n@@ -1,1 +1,1 @@\n-old\n+new\n"; strings.ReplaceAll(got, "link@turn:7", "link") != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	w.is(assert.ErrOf(w.v.Diff(t.Context(), DiffOptions{Path: "burst", From: State{Turn: "7"}})), ErrNotKept)
	got = w.diff(DiffOptions{From: State{Turn: "7"}})
	assert.True(t, strings.HasSuffix(got, "+z\n"), "got", got)
}

// A diff has an end.
func TestDiffTreeOfTooMuch(t *testing.T) {
	t.Parallel()
	w, c := historic(t)
	w.saves(c, "first", "1")
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.ok(w.put(name, strings.Repeat("x", past.MaxDiff-1)+"\n"))
	}
	got := w.diff(DiffOptions{From: State{Version: w.versionOf("first", "1")}})
	assert.AtMost(t, len(got), past.MaxText+1000, "bytes")
	assert.Contains(t, got[max(0, len(got)-100):], "\nWhat differs from d on is too much to be shown\n", "the end")
}
