package past

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/history/historytest"
	"github.com/wsmount/wsmount/integration/assert"
)

// turn7 is a tree, and what a turn makes of it.
func turn7(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "mkdir d", "mkdir d/sub")
	for _, f := range []string{"changed", "removed", "d/renamed", "d/still", "d/sub/still", "same"} {
		w.Do("put " + f + " " + f + " before\n")
	}
	w.Do("turn 7", "put changed changed after\n", "rm removed", "put made made after\n", "mv d e", "mv e/renamed elsewhere",
		"turn 8", "put changed changed later\n", "wait")
	return w
}

// The whole tree goes back, with what moved in a directory that was renamed, and forth again.
func TestRestoreTheWholeTree(t *testing.T) {
	w := turn7(t)
	dry := w.restore(RestoreOptions{To: State{Turn: "7", Before: true}, DryRun: true})
	assert.Contains(t, strings.Join(w.Files(), "\n"), "changed: changed later\n", "after a dry run")
	r := w.restore(RestoreOptions{To: State{Turn: "7", Before: true}})
	assert.Equal(t, fmt.Sprintf("%+v", dry), fmt.Sprintf("%+v", r), "a dry run says")
	assert.Equal(t, strings.Join(r.Removed, " "), "e e/still e/sub e/sub/still elsewhere made", "removed")
	w.goesBack(State{Turn: "7", Before: true}, "changed: changed before\n", "d/", "d/renamed: d/renamed before\n", "d/still: d/still before\n",
		"d/sub/", "d/sub/still: d/sub/still before\n", "removed: removed before\n", "same: same before\n")
	w.goesBack(State{Turn: "7"}, "changed: changed after\n", "e/", "e/still: d/still before\n", "e/sub/",
		"e/sub/still: d/sub/still before\n", "elsewhere: d/renamed before\n", "made: made after\n", "same: same before\n")
}

// What was there at some time is there again, and nothing else; nothing is skipped.
func TestRestoreStates(t *testing.T) {
	for name, c := range map[string]struct {
		before, since []string // what is done in turn 1, and then in turn 2
		was, is       []string // what is there after the one, and the other
	}{
		"made in a directory that was renamed": {
			[]string{"mkdir D", "mkdir D/s", "put D/s/1 one", "put D/2 two"},
			[]string{"mv D E", "sym x E/ln", "mkdir E/empty", "put E/s/1 ONE", "rm E/2"},
			[]string{"D/", "D/2: two", "D/s/", "D/s/1: one"},
			[]string{"E/", "E/empty/", "E/ln -> x", "E/s/", "E/s/1: ONE"},
		},
		"made": {
			[]string{"mkdir d", "sym a link"},
			[]string{"mkdir new", "mkdir new/sub", "sym b d/new", "put touched ", "rm link", "sym c link"},
			[]string{"d/", "link -> a"},
			[]string{"d/", "d/new -> b", "link -> c", "new/", "new/sub/", "touched: "},
		},
		"exchanged": {
			[]string{"put a a", "put b b"},
			[]string{"swap a b", "wait", "swap b a", "mv a c"},
			[]string{"a: a", "b: b"},
			[]string{"b: b", "c: a"},
		},
		"replaced": {
			[]string{"put a one", "put f.tmp two"},
			[]string{"mv f.tmp a", "wait", "put a three", "rm a", "put a four"},
			[]string{"a: one", "f.tmp: two"},
			[]string{"a: four"},
		},
		"another kind": {
			[]string{"put f f"},
			[]string{"rm f", "mkdir f"},
			[]string{"f: f"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "turn 1")
			w.Do(c.before...)
			w.Do("turn 2")
			w.Do(c.since...)
			w.Do("turn ")
			if c.is == nil { // a directory is in the way
				assert.Slice(t, w.restore(RestoreOptions{To: State{Turn: "1"}}).Skipped, []history.Skipped{{Path: "f", Reason: "is a directory"}})
				return
			}
			w.goesBack(State{Turn: "2", Before: true}, c.was...)
			w.goesBack(State{Turn: "2"}, c.is...)
			w.goesBack(State{Turn: "1"}, c.was...)
		})
	}
}

// A file or a directory goes back by itself.
func TestRestoreOfAPath(t *testing.T) {
	w := newWorld(t, "mkdir d", "put d/f f", "put d/g g", "put a one", "sym a link", "wait")
	link, g, was := State{Version: w.versions(LogFilter{Path: "link"})[0].ID}, w.versionOf("d/g", "g"), State{Time: w.Now()}
	w.Do("wait", "rm link", "mv a b", "mv d e", "put e/f two", "wait")
	w.restore(RestoreOptions{Path: "link", To: link})
	w.Has("b: one", "e/", "e/f: two", "e/g: g", "link -> a")
	// A file that had another name then is not taken away, unless its directory is what goes back.
	r := w.restore(RestoreOptions{Path: "b", To: was})
	assert.True(t, len(r.Removed) == 0 && len(r.Skipped) == 1 && r.Skipped[0] == (history.Skipped{Path: "b", Reason: "it was a then", Was: "a"}), r)
	// A file in a directory that had another name is the file that it was.
	r = w.restore(RestoreOptions{Path: "e/f", To: was})
	assert.True(t, len(r.Skipped) == 0 && len(r.Restored) == 1, "report", r)
	w.Has("b: one", "e/", "e/f: f", "e/g: g", "link -> a")
	w.restore(RestoreOptions{To: was})
	w.Has("a: one", "d/", "d/f: f", "d/g: g", "link -> a")
	// A version of a file in a directory that is gone is a state of the directory.
	w.Do("rm d/f", "rm d/g", "rm d")
	w.restore(RestoreOptions{Path: "d", To: g})
	w.Has("a: one", "d/", "d/f: f", "d/g: g", "link -> a")
	assert.Is(t, assert.ErrOf(w.past.Restore(t.Context(), changes{w}, RestoreOptions{Path: "never/was", To: was})), ErrNotThere)
}

// A version of another file is refused: it says of which. Whatever name the file had then, or
// has now, is one of it. The history has what a restore replaces.
func TestRestoreAVersion(t *testing.T) {
	w := newWorld(t, "put f one", "put g other", "wait")
	one := w.versionOf("f", "one")
	for _, path := range []string{"g", "new"} {
		_, err := w.past.Restore(t.Context(), changes{w}, RestoreOptions{Path: path, To: one})
		var other *OtherFileError
		assert.True(t, errors.As(err, &other) && *other == (OtherFileError{Version: one.Version, Path: path, Of: "f"}), path, err)
	}
	w.Do("mv f h", "put h two", "wait")
	w.restore(RestoreOptions{Path: "f", To: one})
	w.restore(RestoreOptions{Path: "h", To: one})
	w.Has("f: one", "g: other", "h: one")
	w.Settle()
	w.restore(RestoreOptions{Path: "h", To: w.versionOf("h", "two")})
	w.Has("f: one", "g: other", "h: two")
}

// What is refused stays as it is, and is reported; so does what cannot be brought back to
// where it was.
func TestRestoreButWhatIsRefused(t *testing.T) {
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
	w.Has("changed: changed later\n", "d/", "d/renamed: d/renamed before\n", "d/still: d/still before\n", "d/sub/", "e/", "e/still: d/still before\n",
		"e/sub/", "e/sub/still: d/sub/still before\n", "removed: removed before\n", "same: same before\n")
}

// Of what came at some time, and never into the history, no one knows whether it was there.
// That is said, also when it was changed since.
func TestRestoreWhatIsNotKnown(t *testing.T) {
	w := newWorld(t, "mkdir d", "put d/mine mine\n", "theirs old old", "turn 7", "put mine mine", "theirs d/f theirs", "theirs new theirs", "read old", "put new ours", "put old ours", "mv d e")
	before := State{Turn: "7", Before: true}
	assert.Contains(t, w.diff(DiffOptions{From: before}), "e/f@before turn:7 cannot be compared: "+ErrUnsure.Error()+"\n")
	r := w.restore(RestoreOptions{To: before})
	unsure := map[string]bool{}
	for _, s := range r.Skipped {
		unsure[s.Path] = s.Reason == ErrUnsure.Error()
	}
	assert.True(t, unsure["e/f"] && unsure["new"], r)
	w.Has("d/", "d/mine: mine\n", "e/", "e/f: theirs", "new: ours", "old: old")
}

// What a restore takes away or replaces is in the history, also when its bytes were not local.
func TestRestoreKeepsWhatWasNotLocal(t *testing.T) {
	w := newWorld(t, "mkdir d", "theirs a theirs", "wait", "put d/f f", "turn 7", "mv a d/a")
	r := w.restore(RestoreOptions{Path: "d", To: State{Turn: "7", Before: true}})
	assert.Equal(t, strings.Join(r.Removed, " "), "d/a", r)
	w.Settle()
	w.versionOf("d/a", "theirs")
}

// Of a time that the history does not reach back to, not all is known.
func TestRestoreToATimeBeforeTheHistory(t *testing.T) {
	w := budgeted(t, history.Budget{Versions: 9, Age: time.Hour, Bytes: 1 << 20})
	was := State{Time: w.Now()}
	w.Do("mkdir d")
	w.Later(2 * time.Hour)
	w.Do("put f f\n")
	r := w.restore(RestoreOptions{To: was})
	assert.True(t, strings.Join(r.Removed, " ") == "f" && len(r.Skipped) == 1 && r.Skipped[0].Path == "", r)
	assert.Contains(t, w.diff(DiffOptions{From: was}), " cannot be compared: what happened up to 20")
	w.logs("d")
}

// Of a name with too many versions the first are given up, and with them what was there.
func TestRestoreWhatWasGivenUp(t *testing.T) {
	w := budgeted(t, history.Budget{Versions: 4, Age: 1e6 * time.Hour, Bytes: 1 << 20}, "turn 1", "put other x", "turn 2")
	for range history.PruneEach {
		w.Do("put f 1", "rm f")
	}
	w.Do("put f last", "wait")
	r := w.restore(RestoreOptions{To: State{Turn: "1"}})
	assert.True(t, len(r.Removed) == 0 && len(r.Skipped) != 0 && r.Skipped[0] == (history.Skipped{Path: "f", Reason: ErrGivenUp.Error()}), r)
	w.Has("f: last", "other: x")
}

// What leaves the working copy after it was found there is opened where it went.
func TestContentOnTheMove(t *testing.T) {
	w := newWorld(t, "put f one")
	found := func() Item {
		t.Helper()
		pl := assert.Of(w.past.Plan(t.Context(), "f", State{Version: w.versions(LogFilter{Path: "f"})[0].ID})).OK(t)
		assert.Must(t, len(pl.Items) == 1 && pl.Items[0].src.kind == contentHere, pl)
		return pl.Items[0]
	}
	opens := func(it Item, want string) {
		t.Helper()
		r, _, err := w.past.Open(it)
		assert.Equal(t, historytest.ReadAll(t, r, err), want)
	}
	it := found()
	h := w.Open("f")
	h.Write("two") // which keeps it first
	opens(it, "one")
	h.Close()
	h = w.Open("f")
	w.Do("rm f")
	it = found()
	h.Close()
	opens(it, "two")
}
