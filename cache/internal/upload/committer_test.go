package upload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/pending"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/cache/internal/tree"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// Requested and Halted implement Guard.
func (l *line) Requested(*tree.View)    { l.requested++ }
func (l *line) Halted(*tree.View) error { return nil }

func (l *line) holds() *Holds {
	return NewHolds(HoldsOptions{Tree: l.tree, Queue: l.q, Jobs: l.send.Jobs(), Volume: l.bench, Now: l.now,
		Stopped: func(*tree.View) (error, bool) { return nil, false }})
}

// A commit ends when the remote has each name or will not take it, says which, and has what
// was held back tried again.
func TestCommit(t *testing.T) {
	b := newBench(t, memory.Options{})
	b.link(10, root("a"), "A")
	b.link(11, root("b"), "B")
	l := newLine(b, false)
	c := NewCommitter(CommitterOptions{Tree: l.tree, Queue: l.q, Sender: l.send, Holds: l.holds(), Guard: l, Wait: func(w *pending.Waiter) error {
		l.until(w.IsOver)
		return w.Err()
	}})
	for i, want := range []string{"0 changes, back [a b]", "2 changes, back []"} {
		if b.around = nil; i == 0 {
			b.around = func(int) (before, after error) { return providers.ErrPermission, nil }
		}
		due := uint64(0)
		l.view(func(v *tree.View) { due = l.q.Newest(v) })
		r := assert.Of(c.Commit(t.Context(), pending.Description{}, due)).OK(t)
		l.work.Wait()
		var back []string
		for _, h := range r.HeldBack {
			back = append(back, h.Path)
			assert.False(t, h.IsPending() || h.Conflict, h)
		}
		assert.Equal(t, fmt.Sprint(r.Changes, " changes, back ", pending.Paths(back, nil)), want)
		assert.Equal(t, r.Committed, r.Changes > 0, "committed")
		assert.Equal(t, l.requested, i+1, "commits that the guard was told of")
	}
}

// Why a name is held back is recorded, and told once; what the remote says of it each time,
// once in a run.
func TestHolds(t *testing.T) {
	const again = true
	for what, c := range map[string]struct {
		err      error
		told     int // of three times; before the third the record was cleared
		conflict bool
		tryAgain bool
	}{
		"a failure":         {errSome, 3, false, again},
		"one of the name":   {&providers.Error{Locator: providers.MustLocator("a"), Kind: providers.ErrPermission}, 3, false, again},
		"a conflict":        {providers.ErrConflict, 3, true, !again},
		"a refusal":         {&pending.Refusal{Text: "no"}, 2, false, !again},
		"one that passes":   {&pending.Refusal{Text: "not yet", Passes: true}, 2, false, again},
		"one of the remote": {&pending.Refusal{Text: "too large", Asked: true}, 1, false, !again},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t, memory.Options{})
			b.link(10, root("a"), "A")
			l := newLine(b, false)
			h, reason := l.holds(), strings.TrimPrefix(c.err.Error(), `"a": `) // which is said beside it
			for i := range 3 {
				if i == 2 {
					b.does(func(tx *tree.Tx) {
						rec := tx.Record(root("a"))
						rec.Held = nil
						tx.SetName(root("a"), rec)
					})
				}
				h.Hold(root("a"), c.err)
				l.view(func(v *tree.View) {
					held := v.Record(root("a")).Held
					assert.True(t, held != nil && held.Reason == reason && held.Conflict == c.conflict, "the record", held)
					assert.Equal(t, h.Of(v, root("a")), pending.HeldBack{Path: "a", Reason: reason, Conflict: c.conflict})
				})
			}
			assert.Equal(t, len(b.told), c.told, "told", b.told)
			l.view(func(v *tree.View) {
				assert.Equal(t, l.send.Jobs().TryAgain(v, noon.Add(HoldFor)), c.tryAgain, "tried again after a while")
				next := l.holds()
				next.Resume(v, root("a"), &table.Held{Reason: "was so", Conflict: true})
				err, final := next.Failure(v, root("a"))
				assert.Is(t, err, providers.ErrConflict)
				assert.True(t, final, "it is tried again")
			})
		})
	}
}
