package merge

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/cache/internal/reconcile"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// However many conflict copies of a name there are, there is room for another, and what is there
// already needs none.
func TestManyConflictsOfOneName(t *testing.T) {
	put := func(w *copied, _ int) { w.ours("put f ours") }
	for what, tt := range map[string]struct {
		ours, after func(w *copied, i int)
		want        int
		ended       int // how often the history has that a copy was there already
	}{
		"the same": {ours: put, want: 1, ended: 6},
		"empty":    {ours: func(w *copied, _ int) { w.ours("put f") }, want: 1, ended: 6},
		"edited since": {ours: put, want: 7, after: func(w *copied, i int) {
			for _, line := range w.lines() {
				if name, text, _ := strings.Cut(line, ": "); text == "ours" {
					w.ours("put " + name + " " + strconv.Itoa(i))
				}
			}
		}},
		"directories": {ours: func(w *copied, i int) { w.ours("rm f", "mkdir f", "put f/x "+strconv.Itoa(i)) }, want: 7},
	} {
		t.Run(what, func(t *testing.T) {
			w := newCopy(t, memory.Options{}, reconcile.Split, "f", "one")
			for i := range 7 {
				tt.ours(w, i)
				w.theirs("put f theirs" + strconv.Itoa(i))
				w.told = nil
				w.ok(w.refused())
				assert.Must(t, len(w.told) == 1 && strings.Contains(w.told[0], "was saved as"), "conflict", i, w.told)
				if tt.after != nil {
					tt.after(w, i)
				}
			}
			assert.Contains(t, strings.Join(w.lines(), "\n")+"\n", "f: theirs6\n")
			assert.Equal(t, w.conflictCopies(), tt.want, "copies, of", w.lines())
			assert.Equal(t, w.ended(history.WhyConflict), tt.ended, "ends in the history")
			w.sendable()
		})
	}
}

// side is what a side of the conflict of f has.
func (c *copied) side(s Side) string {
	c.Helper()
	r := assert.Of(c.Held().ConflictContent(c.Context(), "f", s)).OK(c)
	defer r.Close()
	return string(assert.Of(io.ReadAll(r)).OK(c))
}

// A name that is held keeps both sides, however often they change, and who waits is told so.
func TestHold(t *testing.T) {
	for _, policy := range []reconcile.Conflict{reconcile.Abort, reconcile.Manual} {
		w := newText(t, memory.Options{}, policy, "one", "ours")
		var since time.Time
		for i, theirs := range []string{"theirs", "theirs, later"} {
			w.theirs("put f " + theirs)
			if i == 1 {
				assert.Slice(t, w.pull().Conflicts, []string{"f"}, "conflicts of the pull")
			}
			err := w.refused()
			assert.Is(t, err, fs.ErrConflict)
			assert.Is(t, err, providers.ErrConflict)
			w.sees("f: ours")
			all := w.Held().Conflicts()
			assert.Must(t, len(all) == 1 && all[0].Path == "f" && !all[0].Since.IsZero(), "conflicts", all)
			assert.True(t, i == 0 || all[0].Since.Equal(since), "it began", all[0].Since, "and before that", since)
			since = all[0].Since
			assert.Equal(t, [3]int64{all[0].Ours, all[0].Theirs.Size, all[0].Base.Size}, [3]int64{4, int64(len(theirs)), 3}, "sizes of ours, theirs and the base")
			assert.Equal(t, strings.Contains(all[0].Reason, "storage_conflict"), policy == reconcile.Abort, "a code in the reason", all[0].Reason)
			assert.Equal(t, [3]string{w.side(SideBase), w.side(SideOurs), w.side(SideTheirs)}, [3]string{"one", "ours", theirs}, "the sides")
		}
		assert.Equal(t, len(w.told), 1, "told", w.told)
	}
}

// A conflict ends as a person says, and what is not kept is in the history.
func TestResolve(t *testing.T) {
	copyOf := "f.conflict-" + short("ours")
	resolve := func(w *copied, path string, r Resolution) error { return w.Held().Resolve(w.Context(), path, r) }
	for what, c := range map[string]struct {
		r     Resolution
		want  []string
		kept  string // of the remote's
		ended int    // ours
	}{
		"ours":    {r: Resolution{Keep: SideOurs}, want: []string{"f: ours"}, kept: "theirs"},
		"theirs":  {r: Resolution{Keep: SideTheirs}, want: []string{"f: theirs"}, ended: 1},
		"both":    {r: Resolution{Both: true}, want: []string{"f: theirs", copyOf + ": ours"}},
		"neither": {r: Resolution{Content: strings.NewReader("merged")}, want: []string{"f: merged"}, kept: "theirs"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newText(t, memory.Options{}, reconcile.Manual, "one", "ours")
			w.theirs("put f theirs")
			w.pull()
			w.ok(resolve(w, "f", c.r))
			w.sees(c.want...)
			w.sendable()
			assert.Equal(t, len(w.Held().Conflicts()), 0, "conflicts are left")
			assert.Equal(t, strings.Join(w.kept, " "), c.kept, "what the history has of the remote")
			assert.Equal(t, w.ended(history.WhyPulled), c.ended, "how often the history has that ours ended")
			assert.Is(t, resolve(w, "f", c.r), ErrNoConflict)
		})
	}
	w := newCopy(t, memory.Options{}, reconcile.Manual, "f", "one")
	for _, path := range []string{"f", "", "f/g/h"} {
		assert.Is(t, resolve(w, path, Resolution{Keep: SideOurs}), ErrNoConflict, path)
	}
}

// What was changed again on the remote after it was shown to a person is not overwritten by what
// that person decided, be it before that or after.
func TestResolveIsConditional(t *testing.T) {
	w := newText(t, memory.Options{}, reconcile.Manual, "one", "ours")
	w.theirs("put f theirs")
	w.pull()
	w.theirs("put f theirs, unseen")
	assert.Is(t, w.Held().Resolve(t.Context(), "f", Resolution{Keep: SideOurs}), providers.ErrConflict)
	w.pull()
	w.ok(w.Held().Resolve(t.Context(), "f", Resolution{Keep: SideOurs}))
	w.theirs("put f theirs, at last")
	assert.Is(t, w.refused(), fs.ErrConflict)
	assert.Equal(t, w.side(SideTheirs), "theirs, at last")
	w.sees("f: ours")
}

// A change back on the remote ends a conflict, and so does giving up the local side.
func TestConflictsThatEndByThemselves(t *testing.T) {
	w := newCopy(t, memory.Options{}, reconcile.Abort, "f", "one", "g", "one", "h", "one")
	w.ours("put f ours", "put g ours", "put h ours")
	w.theirs("put f theirs", "put g theirs", "put h theirs")
	w.pull()
	assert.Equal(t, len(w.Held().Conflicts()), 3, "conflicts")
	w.theirs("put f ours", "rm h")
	w.ours("rm g")
	w.pull()
	assert.Equal(t, len(w.Held().Conflicts()), 0, "conflicts")
	w.sees("f: ours", "g: theirs", "h: ours")
	w.sendable()
}

// What the history has no room for is overwritten by no one: the last writer does not win, and
// who resolves the conflict for ours is told why it goes on; both can be kept.
func TestTooLargeForTheHistory(t *testing.T) {
	w := newCopy(t, memory.Options{}, reconcile.LastWriterWins, "f", "one")
	w.roomless = true
	w.ours("put f ours")
	w.theirs("put f theirs")
	assert.Slice(t, w.pull().Conflicts, []string{"f"}, "conflicts")
	all := w.Held().Conflicts()
	assert.Must(t, len(all) == 1, all)
	assert.Contains(t, all[0].Reason, "larger than the history")
	assert.Equal(t, w.side(SideTheirs), "theirs")
	for _, r := range []Resolution{{Keep: SideOurs}, {Content: strings.NewReader("by hand")}} {
		assert.Is(t, w.Held().Resolve(t.Context(), "f", r), ErrTooLarge)
		assert.Equal(t, len(w.Held().Conflicts()), 1, "conflicts that go on")
	}
	w.ok(w.Held().Resolve(t.Context(), "f", Resolution{Both: true}))
	assert.Equal(t, len(w.Held().Conflicts()), 0, "conflicts")
	w.sendable()
}

// A remote that changes at each question is told of: the conflict goes on.
func TestResolveWhileTheRemoteMoves(t *testing.T) {
	for _, r := range []Resolution{{Keep: SideOurs}, {Content: strings.NewReader("by hand")}} {
		w := newCopy(t, memory.Options{}, reconcile.Manual, "f", "one")
		w.ours("put f ours")
		w.theirs("put f theirs")
		w.pull()
		n := 0
		w.o.Past.Keep = func(context.Context, table.Link, providers.Info) (bool, error) {
			n++
			w.theirs(fmt.Sprintf("put f theirs %d", n))
			w.pull()
			return true, nil
		}
		assert.Is(t, w.Held().Resolve(t.Context(), "f", r), fs.ErrUnavailable)
		assert.Equal(t, len(w.Held().Conflicts()), 1, "conflicts that go on")
	}
}

// The last writer wins: what it overwrites is in the history, and a person is told. A deletion
// still loses to content.
func TestLastWriterWins(t *testing.T) {
	for _, meet := range []func(w *copied){
		func(w *copied) { w.ok(w.refused()) },
		func(w *copied) { assert.Slice(w, w.pull().Conflicts, []string{"f"}, "conflicts") },
	} {
		w := newCopy(t, memory.Options{}, reconcile.LastWriterWins, "f", "one", "g", "1")
		w.ours("put f ours", "rm g")
		w.theirs("put f theirs", "put g 2")
		meet(w)
		w.sees("f: ours", "g: 2")
		w.sendable()
		assert.Equal(t, strings.Join(w.kept, " "), "theirs", "what the history has of the remote")
		assert.True(t, len(w.told) > 0, "no one was told")
	}
}
