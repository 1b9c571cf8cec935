package past

import (
	"regexp"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// committedWorld is a working copy with three commits: first, one and two.
func committedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "mkdir d", "put a a\n", "put d/b b\n", "put d/c c\n", "put old old\n", "sym a link")
	w.commit("first")
	w.Do("put a first\n", "put d/new new\n")
	w.commit("one")
	w.Do("wait", "put a second\n", "rm d/b", "mv old moved")
	w.commit("two")
	return w
}

var hunks = regexp.MustCompile(`(?m)^@@.*\n`)

// What a commit changed, and how it differs from what is here.
func TestDiffByCommit(t *testing.T) {
	w := committedWorld(t)
	w.Do("put a third\n")
	for name, ask := range map[string]struct {
		o    DiffOptions
		want string
	}{
		"a commit": {DiffOptions{From: State{Commit: "one", Before: true}, To: State{Commit: "one"}},
			"--- a@before commit:one\n+++ a@commit:one\n-a\n+first\n--- /dev/null\n+++ d/new@commit:one\n+new\n"},
		"two commits": {DiffOptions{From: State{Commit: "one"}, To: State{Commit: "two"}},
			"--- a@commit:one\n+++ a@commit:two\n-first\n+second\n--- d/b@commit:one\n+++ /dev/null\n-b\n--- /dev/null\n+++ moved@commit:two\n+old\n--- old@commit:one\n+++ /dev/null\n-old\n"},
		"with now":    {DiffOptions{From: State{Commit: "two"}}, "--- a@commit:two\n+++ a\n-second\n+third\n"},
		"a file":      {DiffOptions{Path: "d/b", From: State{Commit: "one"}}, "--- d/b@commit:one\n+++ /dev/null\n-b\n"},
		"a directory": {DiffOptions{Path: "d", From: State{Commit: "one"}, To: State{Commit: "two"}}, "--- d/b@commit:one\n+++ /dev/null\n-b\n"},
		"the first":   {DiffOptions{Path: "old", From: State{Commit: "first", Before: true}, To: State{Commit: "first"}}, "--- /dev/null\n+++ old@commit:first\n+old\n"},
	} {
		assert.Equal(t, hunks.ReplaceAllString(w.diff(ask.o), ""), ask.want, name)
	}
}

// A restore to a commit brings its tree back, as a change; what never goes to the store stays.
func TestRestoreByCommit(t *testing.T) {
	w := committedWorld(t)
	w.Do("put d/later later\n", "mkdir made", "put made/x x\n", "mkdir empty", "put secret s\n", "rm link", "sym b link")
	w.local = "secret"
	r := w.restore(RestoreOptions{To: State{Commit: "one"}})
	got := strings.Join(r.Restored, " ") + "; " + strings.Join(r.Removed, " ")
	assert.True(t, got == "a d/b link old; d/later made made/x moved" && len(r.Skipped) == 0, "restored and removed:", got, "skipped", r.Skipped)
	w.Has("a: first\n", "d/", "d/b: b\n", "d/c: c\n", "d/new: new\n", "empty/", "link -> a", "old: old\n", "secret: s\n")
	again := w.restore(RestoreOptions{To: State{Commit: "one"}})
	assert.Equal(t, len(again.Restored)+len(again.Removed)+len(again.Skipped), 0, "again:", again)
	w.restore(RestoreOptions{Path: "a", To: State{Commit: "two"}})
	w.restore(RestoreOptions{Path: "d/new", To: State{Commit: "one", Before: true}})
	w.Has("a: second\n", "d/", "d/b: b\n", "d/c: c\n", "empty/", "link -> a", "old: old\n", "secret: s\n")
}

// Whether a file may be executed is part of a commit.
func TestRestoreOfAMode(t *testing.T) {
	w := newWorld(t, "put f f", "chmod f 755")
	w.commit("exec")
	w.Do("chmod f 644")
	r := w.restore(RestoreOptions{To: State{Commit: "exec"}})
	assert.True(t, w.Inode("f").Mode&0o777 == 0o755 && len(r.Restored) == 1, "f has mode", w.Inode("f").Mode, r)
}

// What was never local is found in the commit that has it, as often as it is asked for.
func TestRestoreWhatOnlyACommitHas(t *testing.T) {
	w := newWorld(t, "mkdir d", "put d/f f", "put g g")
	w.commit("one")
	w.Do("evict d/f", "turn 1", "put g 2")
	for range 2 {
		w.Do("turn 2", "rm d/f", "rm d", "turn ")
		w.goesBack(State{Turn: "1"}, "d/", "d/f: f", "g: 2")
	}
}
