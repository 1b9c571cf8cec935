package cache

import (
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
)

// A conflict of a file without a name is found by the close of who writes it, where
// nobody waits for a report: the next Commit or Pull tells of it, once, as of
// any other.
func TestClaimIsTold(t *testing.T) {
	for _, policy := range []Conflict{SplitConflicts, Abort, LastWriterWins, Manual} {
		for _, waits := range []bool{true, false} {
			t.Run(string(policy)+map[bool]string{true: ", waits", false: ", later"}[waits], func(t *testing.T) {
				w := newScene(t, holding("f", "one"), func(_ *world, o *Options) { o.Policy.Conflict, o.Policy.NoWait = policy, !waits })
				o := w.replaced("f")
				w.write(o, "ours", 0)
				_ = w.shut(o) // EIO where the policy keeps both and the close waits
				assert.Slice(t, w.commit().Conflicts, []string{"f"}, "the commit tells of")
				waiting := 0
				if policy == Abort || policy == Manual {
					waiting = 1
				}
				assert.Equal(t, w.v.Status().Conflicts, waiting, "conflicts wait")
				told := w.commit().Conflicts
				assert.Equal(t, len(told), waiting, "the next commit tells of", told)
			})
		}
	}
}

// Whoever was not told before the daemon ended is told by the next one.
func TestClaimIsToldAfterARestart(t *testing.T) {
	for name, ends := range map[string]func(w *scene){"killed": func(w *scene) { w.killed() }, "stopped": func(w *scene) { w.again() }} {
		t.Run(name, func(t *testing.T) {
			w := newScene(t, holding("f", "one"), unwaited, func(_ *world, o *Options) { o.Policy.Conflict = SplitConflicts })
			o := w.replaced("f")
			w.writeLast(o, "ours", 0)
			ends(w)
			assert.Slice(t, w.v.UnreportedConflicts(), []string{"f"}, "told after a restart")
			w.again()
			assert.Slice(t, w.v.UnreportedConflicts(), nil, "is told again")
		})
	}
}

// The same, when a pull comes first; one that is put off tells of nothing.
func TestClaimIsToldByAPull(t *testing.T) {
	w := newScene(t, holding("f", "one"), unwaited)
	w.ok(w.put("unsent", "x"))
	o := w.replaced("f")
	w.writeLast(o, "ours", 0)
	r := assert.Of(w.v.Pull(t.Context(), PullOptions{IfClean: true})).OK(w)
	assert.True(t, r.Skipped != "" && len(r.Conflicts) == 0, "a pull that is put off", r)
	assert.Slice(t, w.pull().Conflicts, []string{"f"}, "the pull tells of")
}
