package cache

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/listing"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/fs"
)

// fives is a store with a file and five directories of twelve, all of which the
// working copy knows, by a clock of the test's.
func fives(t *testing.T, ttl time.Duration) (w *scene, c *ticking) {
	t.Helper()
	c = &ticking{}
	w = newScene(t, func(w *world, o *Options) {
		w.tamper("README", "x")
		for i := range 5 {
			many(12, fmt.Sprintf("d%d/", i))(w, o)
		}
	}, clocked(c, ttl))
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
		if err := w.v.look(nil, dir, true); err != nil && !errors.Is(err, fs.ErrStale) {
			w.Fatalf("%d: %v", dir, err)
		}
	}
	w.pulledWhole()
}

// pulledWhole waits until what looks have begun has ended.
func (w *scene) pulledWhole() {
	w.Helper()
	w.until(func() bool {
		locked := w.v.lock()
		defer locked.unlock()
		return !locked.wholePull.underWay
	})
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
				if h := w.v.MassDeletes(); len(h) != 1 || h[0].Commit {
					t.Errorf("halted: %+v", h)
				}
				if got := len(w.here()); got < before-c.most {
					t.Errorf("%d of %d names are gone", before-got, before)
				}
				_, err := w.v.Confirm(t.Context())
				w.ok(err)
				if got, want := w.here(), listBackend(w.p); !slices.Equal(got, want) || len(w.v.MassDeletes()) > 0 {
					t.Errorf("after a word here is %q, there %q; %v", got, want, w.v.MassDeletes())
				}
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
	if h := w.v.MassDeletes(); len(h) > 0 {
		t.Errorf("halted: %+v", h)
	}
	w.sees(listBackend(w.p)...)
}

// A look that finds nothing missing any more ends a halt.
func TestHaltEndsWithALook(t *testing.T) {
	w, clock := fives(t, time.Second)
	dirs := w.inos("", "d0")
	w.wipe("README", "d0", "d1", "d2", "d3", "d4")
	clock.add(2 * time.Second)
	w.looked(dirs...)
	if h := w.v.MassDeletes(); len(h) != 1 {
		t.Fatalf("halted: %+v", h)
	}
	w.tamper("README", "x")
	for i := range 5 {
		many(12, fmt.Sprintf("d%d/", i))(w.world, nil)
	}
	clock.add(2 * time.Second)
	w.looked(dirs...)
	if h := w.v.MassDeletes(); len(h) > 0 {
		t.Errorf("halted: %+v", h)
	}
	w.sees(listBackend(w.p)...)
}

// A halt is over when what was missing is there again, not when something else is.
func TestHaltIsNotFilledUp(t *testing.T) {
	w := newScene(t, many(11, "d/"))
	w.here()
	w.gonePath("d")
	_, err := w.v.Pull(t.Context(), PullOptions{})
	w.is(err, ErrMassDelete)
	for i := range 5 {
		w.ok(w.put(fmt.Sprintf("n%d", i), "x"))
	}
	w.commit()
	_, err = w.v.Pull(t.Context(), PullOptions{})
	w.is(err, ErrMassDelete)
	if h := w.v.MassDeletes(); len(h) != 1 || !strings.Contains(h[0].Reason, "with 11 entries") {
		t.Errorf("halted: %+v", h)
	}
	w.killed()
	_, err = w.v.Pull(t.Context(), PullOptions{})
	w.is(err, ErrMassDelete)
	many(8, "d/")(w.world, nil)
	w.pull()
	if h := w.v.MassDeletes(); len(h) > 0 {
		t.Errorf("halted: %+v", h)
	}
	w.sees(listBackend(w.p)...)
}

// A directory that others rename is there under its new name, with all in it,
// although nobody has looked into that.
func TestRenamedThere(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Second} {
		for _, c := range []struct{ from, to string }{{"d0", "e"}, {"d0", "e/f"}, {"d0", "d1/deep/er"}, {"d0", "e/f/g/h"}} {
			t.Run(fmt.Sprint(c.from, " to ", c.to, " ttl ", ttl), func(t *testing.T) {
				var clock ticking
				w := newScene(t, func(w *world, o *Options) {
					w.tamper("README", "x")
					w.tamper("d1/x", "x")
					many(20, "d0/sub/")(w, o)
					many(20, "d0/")(w, o)
				}, clocked(&clock, ttl))
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
				if h := w.v.MassDeletes(); len(h) > 0 {
					t.Errorf("halted: %+v", h)
				}
				clock.add(2 * time.Second)
				w.sees(listBackend(w.p)...)
			})
		}
	}
}
