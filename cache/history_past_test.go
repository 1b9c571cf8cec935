package cache

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// What was never here is found in the commit that has it, as often as it is asked for,
// also when the deletion was committed since.
func TestRestoreAsksTheStore(t *testing.T) {
	for _, committed := range []bool{false, true} {
		t.Run(fmt.Sprintf("committed=%v", committed), func(t *testing.T) {
			clock := newTestClock()
			c := newClone(t, seeded(t, "src/a", "A", "src/in/b", "B", "other", "1"), func(w *world, o *Options) {
				o.Now, o.Policy.Commit, o.Policy.NoWait = clock.now, DueAsked, true
			})
			remove := func(turn string) {
				c.v.SetActor(Actor{Turn: turn})
				c.do("rm src/a", "rm src/in/b", "rmdir src/in", "rmdir src")
				if committed {
					c.commits()
				}
				c.later(clock, 3*time.Second)
			}
			c.v.SetActor(Actor{Turn: "1"})
			c.ok(c.put("other", "2"))
			c.commits()
			c.later(clock, 3*time.Second)
			for _, turn := range []string{"2", "3", "4"} {
				remove(turn)
				r, err := c.v.Restore(t.Context(), RestoreOptions{To: State{Turn: "1"}})
				c.ok(err)
				if want := []string{"src", "src/a", "src/in", "src/in/b"}; !slices.Equal(r.Restored, want) || len(r.Skipped) > 0 {
					t.Fatalf("turn %s: restored %+v", turn, r)
				}
				c.commits()
				c.later(clock, 3*time.Second)
				if a, b := c.get("src/a"), c.get("src/in/b"); a != "A" || b != "B" {
					t.Errorf("turn %s: %q and %q", turn, a, b)
				}
			}
		})
	}
}

// A revision that has other content there than the history remembers is not asked.
func TestPastOfOtherContent(t *testing.T) {
	c := newClone(t, seeded(t, "f", "1"))
	src := (&pastAt{Revision: c.v.syncedRevision(), Path: "f", Version: "another"}).source(1)
	if _, _, err := c.v.openSource(src); !errors.Is(err, ErrNotKept) {
		t.Errorf("other content: %v", err)
	}
	for _, p := range []pastAt{{c.v.syncedRevision(), "gone", "another"}, {"gone", "f", "another"}} {
		if _, _, err := c.v.openSource(p.source(1)); !errors.Is(err, ErrNotKept) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}
