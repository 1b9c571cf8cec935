package cache

import (
	"context"
	"fmt"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers/memory"
)

// manyFiles are names and contents of n files.
func manyFiles(n int) (files []string) {
	for i := range n {
		files = append(files, fmt.Sprintf("f%02d", i), "x")
	}
	return files
}

// runEnds are the ways in which a run ends.
var runEnds = map[string]func(w *world){"closed": (*world).again, "killed": (*world).killed}

// Who saw a halt confirms it once, also when the working copy was closed or killed
// after it, or between the word and what it allows.
func TestHaltOutlivesTheRun(t *testing.T) {
	t.Parallel()
	for name, end := range runEnds {
		for _, store := range []string{"names", "sets", "clone"} {
			t.Run(name+" "+store, func(t *testing.T) {
				w := newWorld(t, func(w *world, o *Options) {
					o.Policy.Atomic = store == "sets"
					if store == "clone" {
						w.repo = memory.NewRepository(seeded(t, manyFiles(40)...), memory.Options{})
						return
					}
					holding(manyFiles(40)...)(w, o)
				}, unwaited)
				w.list("")
				for i := range 35 {
					w.ok(w.unlink(fmt.Sprintf("f%02d", i)))
				}
				_, err := w.v.Commit(t.Context(), CommitOptions{})
				w.is(err, ErrMassDelete)
				for range 2 {
					end(w)
					if h := w.v.MassDeletes(); len(h) != 1 || !h[0].Commit || h[0].Reason != "35 of 40 entries would be deleted" {
						t.Fatalf("halted: %+v", h)
					}
					_, err = w.v.Confirm(t.Context())
					w.ok(err)
				}
				_, err = w.v.Commit(t.Context(), CommitOptions{})
				w.ok(err)
				w.same()
				end(w)
				assert.Equal(t, len(w.v.MassDeletes()), 0, "what was confirmed and done is halted again")
			})
		}
	}
}

// So with a pull and a commit at once.
func TestHaltsOfBothSidesOutliveTheRun(t *testing.T) {
	t.Parallel()
	c := newClone(t, seeded(t, manyFiles(80)...), held(Manual))
	c.here()
	for i := range 41 {
		c.there(fmt.Sprintf("f%02d", i), "")
	}
	for i := 41; i < 80; i++ {
		c.ok(c.unlink(fmt.Sprintf("f%02d", i)))
	}
	c.do("put n new", "rm f00", "rm f01")
	_, err := c.v.Commit(t.Context(), CommitOptions{})
	c.is(err, ErrMassDelete)
	_, err = c.v.Pull(t.Context(), PullOptions{})
	c.is(err, ErrMassDelete)
	c.killed()
	assert.Equal(t, len(c.v.MassDeletes()), 2, "halted")
	r, err := c.v.Confirm(context.Background())
	if c.ok(err); r.Deleted < 39 {
		t.Errorf("pulled: %+v", r)
	}
	c.commit()
	c.sees("n: new")
	assert.Equal(t, len(c.v.MassDeletes()), 0, "halted")
}

// What was deleted by mistake and is made again halts nothing any more, in the next
// run neither.
func TestHaltIsOver(t *testing.T) {
	for _, sets := range []bool{false, true} {
		t.Run(fmt.Sprint("sets ", sets), func(t *testing.T) {
			w := newWorld(t, holding(manyFiles(40)...), unwaited, func(_ *world, o *Options) { o.Policy.Atomic = sets })
			w.list("")
			for i := range 35 {
				w.ok(w.unlink(fmt.Sprintf("f%02d", i)))
			}
			_, err := w.v.Commit(t.Context(), CommitOptions{})
			w.is(err, ErrMassDelete)
			for i := range 35 {
				w.ok(w.put(fmt.Sprintf("f%02d", i), "x"))
			}
			w.upload()
			assert.Equal(t, len(w.v.MassDeletes()), 0, "halted")
			w.killed()
			assert.Equal(t, len(w.v.MassDeletes()), 0, "halted in the next run")
		})
	}
}
