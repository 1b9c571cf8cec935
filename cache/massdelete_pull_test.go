package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/memoryrepo"
	"github.com/wsmount/wsmount/providers/memory"
)

// fives is a store with a file and five directories of twelve, all of which the
// working copy knows, by a clock of the test's.
func fives(t *testing.T, ttl time.Duration) (w *scene, c *ticking) {
	t.Helper()
	c = &ticking{}
	w = newScene(t, holding("README", "x"), many(12, "d0/"), many(12, "d1/"), many(12, "d2/"), many(12, "d3/"), many(12, "d4/"), clocked(c, ttl))
	w.here()
	return w, c
}

// inos are directories by their paths: who walks to one looks at those above.
func (w *scene) inos(dirs ...string) (all []table.Ino) {
	w.Helper()
	for _, dir := range dirs {
		all = append(all, table.Ino(w.walk(dir)))
	}
	return all
}

// looked has looks at directories end, and what they have begun with them.
func (w *scene) looked(dirs ...table.Ino) {
	w.Helper()
	for _, dir := range dirs {
		err := w.v.listings.Look(nil, dir, true)
		assert.Must(w, err == nil || errors.Is(err, fs.ErrStale), dir, err)
	}
	w.untilLocked(func(locked *View) bool { return !locked.wholePull.underWay })
}

// Looks at one directory after the other delete no more of an emptied store than
// a pull would, whichever comes first.
func TestLooksAtAnEmptiedStore(t *testing.T) {
	t.Parallel()
	dirs := []string{"d0", "d1", "d2", "d3", "d4"}
	for _, c := range []struct {
		name  string
		there func(w *scene)
		looks []string
		most  int // names that may be gone without a word
	}{
		{"the root first", func(w *scene) { w.wipe("README", "d0", "d1", "d2", "d3", "d4") }, append([]string{""}, dirs...), 0},
		{"the root last", func(w *scene) { w.wipe("README", "d0", "d1", "d2", "d3", "d4") }, append(slices.Clone(dirs), ""), 33},
		{"the directories are left", func(w *scene) {
			for _, dir := range dirs {
				w.goneRange(dir+"/", 0, 12)
			}
		}, dirs, 33},
	} {
		for _, pause := range []time.Duration{0, time.Millisecond, 5 * listing.StaleFor} { // 0: all at once
			t.Run(fmt.Sprintf("%s, pause %v", c.name, pause), func(t *testing.T) {
				t.Parallel()
				w, clock := fives(t, time.Second)
				before, looks := len(w.here()), w.inos(c.looks...)
				c.there(w)
				for round := range 2 {
					clock.add(2 * time.Second)
					if pause == 0 {
						w.looked(looks...)
						continue
					}
					for _, dir := range looks {
						w.looked(dir)
						if clock.add(pause); pause > listing.StaleFor && round == 0 {
							w.again()
						}
					}
				}
				assert.False(t, w.halts(1)[0].Commit, "a commit is halted")
				assert.AtLeast(t, len(w.here()), before-c.most, "names left")
				w.ok(assert.ErrOf(w.v.Confirm(t.Context())))
				w.sees(listBackend(w.p)...)
				w.halts(0)
			})
		}
	}
}

func (w *scene) wipe(paths ...string) {
	w.Helper()
	for _, path := range paths {
		w.gonePath(path)
	}
}

// What is deleted slowly is no accident, nor what moves from one directory to
// another: a pull sees that it is there.
func TestLooksThatHaltNothing(t *testing.T) {
	w, clock := fives(t, time.Second)
	dirs := w.inos("d0", "d1", "d2", "d3", "d4")
	for i := range 4 {
		w.goneRange(fmt.Sprintf("d%d/", i), 0, 10)
		clock.add(2 * listing.StaleFor)
		w.looked(dirs[i])
	}
	w.sees(listBackend(w.p)...)

	w, clock = fives(t, time.Second)
	dirs = w.inos("d0", "d1", "d2", "d3", "d4")
	for i := range 4 {
		w.goneRange(fmt.Sprintf("d%d/", i), 0, 12)
		for n := range 12 {
			w.tamper(fmt.Sprintf("d4/%d-%02d", i, n), "x")
		}
	}
	for range 2 {
		clock.add(2 * time.Second)
		w.looked(dirs...)
	}
	w.halts(0)
	w.sees(listBackend(w.p)...)
}

// A look that finds nothing missing any more ends a halt.
func TestHaltEndsWithALook(t *testing.T) {
	w, clock := fives(t, time.Second)
	dirs := w.inos("", "d0")
	w.wipe("README", "d0", "d1", "d2", "d3", "d4")
	clock.add(2 * time.Second)
	w.looked(dirs...)
	w.halts(1)
	w.tamper("README", "x")
	for i := range 5 {
		many(12, fmt.Sprintf("d%d/", i))(w.world, nil)
	}
	clock.add(2 * time.Second)
	w.looked(dirs...)
	w.halts(0)
	w.sees(listBackend(w.p)...)
}

// A halt is over when what was missing is there again, not when something else is.
func TestHaltIsNotFilledUp(t *testing.T) {
	w := newScene(t, many(11, "d/"))
	w.here()
	w.gonePath("d")
	w.is(assert.ErrOf(w.v.Pull(t.Context(), PullOptions{})), ErrMassDelete)
	for i := range 5 {
		w.ok(w.put(fmt.Sprintf("n%d", i), "x"))
	}
	w.commit()
	w.is(assert.ErrOf(w.v.Pull(t.Context(), PullOptions{})), ErrMassDelete)
	assert.Contains(t, w.halts(1)[0].Reason, "with 11 entries")
	w.killed()
	w.is(assert.ErrOf(w.v.Pull(t.Context(), PullOptions{})), ErrMassDelete)
	many(8, "d/")(w.world, nil)
	w.pull()
	w.halts(0)
	w.sees(listBackend(w.p)...)
}

// A directory that others rename is there under its new name, with all in it,
// although nobody has looked into that.
func TestRenamedThere(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Second} {
		for _, c := range []struct{ from, to string }{{"d0", "e"}, {"d0", "e/f"}, {"d0", "d1/deep/er"}, {"d0", "e/f/g/h"}} {
			t.Run(fmt.Sprint(c.from, " to ", c.to, " ttl ", ttl), func(t *testing.T) {
				var clock ticking
				w := newScene(t, holding("README", "x", "d1/x", "x"), many(20, "d0/sub/"), many(20, "d0/"), clocked(&clock, ttl))
				w.here()
				dirs := w.inos("", "d1", "d0", "")
				w.gonePath(c.from)
				many(20, c.to+"/sub/")(w.world, nil)
				many(20, c.to+"/")(w.world, nil)
				clock.add(2 * time.Second)
				if ttl == 0 {
					w.pull()
				} else {
					w.looked(dirs...)
				}
				w.halts(0)
				clock.add(2 * time.Second)
				w.sees(listBackend(w.p)...)
			})
		}
	}
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
						w.repo = memoryrepo.NewRepository(seeded(t, numbered(40, "f%02d")...), "", memory.Options{})
						return
					}
					holding(numbered(40, "f%02d")...)(w, o)
				}, unwaited)
				w.list("")
				w.doEach(0, 35, "rm f%02d")
				w.is(assert.ErrOf(w.v.Commit(t.Context(), CommitOptions{})), ErrMassDelete)
				for range 2 {
					end(w)
					h := w.halts(1)[0]
					assert.True(t, h.Commit && h.Reason == "35 of 40 entries would be deleted", "halted", h)
					w.ok(assert.ErrOf(w.v.Confirm(t.Context())))
				}
				w.uploadSame()
				end(w)
				w.halts(0)
			})
		}
	}
}

// So with a pull and a commit at once.
func TestHaltsOfBothSidesOutliveTheRun(t *testing.T) {
	t.Parallel()
	c := newClone(t, seeded(t, numbered(80, "f%02d")...), held(Manual))
	c.here()
	for i := range 41 {
		c.there(fmt.Sprintf("f%02d", i), "")
	}
	c.doEach(41, 80, "rm f%02d")
	c.do("put n new", "rm f00", "rm f01")
	c.is(assert.ErrOf(c.v.Commit(t.Context(), CommitOptions{})), ErrMassDelete)
	c.is(assert.ErrOf(c.v.Pull(t.Context(), PullOptions{})), ErrMassDelete)
	c.killed()
	c.halts(2)
	r := assert.Of(c.v.Confirm(context.Background())).OK(c)
	assert.True(t, r.Deleted >= 39, "pulled", r)
	c.commit()
	c.sees("n: new")
	c.halts(0)
}

// What was deleted by mistake and is made again halts nothing any more, in the next
// run neither.
func TestHaltIsOver(t *testing.T) {
	for _, sets := range []bool{false, true} {
		t.Run(fmt.Sprint("sets ", sets), func(t *testing.T) {
			w := newWorld(t, holding(numbered(40, "f%02d")...), unwaited, func(_ *world, o *Options) { o.Policy.Atomic = sets })
			w.list("")
			w.doEach(0, 35, "rm f%02d")
			w.is(assert.ErrOf(w.v.Commit(t.Context(), CommitOptions{})), ErrMassDelete)
			w.doEach(0, 35, "put f%02d x")
			w.upload()
			w.halts(0)
			w.killed()
			w.halts(0)
		})
	}
}
