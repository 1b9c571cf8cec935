package cache

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wsmount/wsmount/cache/internal/rules"
	"github.com/wsmount/wsmount/cache/internal/table"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/memory"
)

// A program sees all of a pull or nothing of it, in whatever order the store
// tells.
func TestPullIsOneStep(t *testing.T) {
	for _, without := range []providers.Capabilities{{}, {RecursiveList: true}} {
		var seen []string // guarded by the volume's lock
		look := func(v *View) {
			line := ""
			for _, dir := range []string{"a", "b", "c"} {
				d, _ := v.Name(table.Root, dir)
				f, _ := v.Name(d.Ino, "f")
				if f.Remote != nil {
					line += fmt.Sprint(f.Ino, f.Remote.Version.ETag, " ")
				}
			}
			seen = append(seen, line)
		}
		w := newScene(t, over(memory.Options{Without: without}), holding("a/f", "0", "b/f", "0", "c/f", "0"), func(_ *world, o *Options) {
			o.within = func(v *Tx) { look(v.View) }
		})
		for _, dir := range []string{"a", "b", "c"} {
			w.names(dir)
		}
		locked := w.v.lock()
		seen = nil
		look(locked)
		locked.unlock()
		for _, path := range []string{"a/f", "b/f", "c/f"} {
			w.tamper(path, "1")
		}
		w.pull()
		assert.Equal(t, len(slices.Compact(seen)), 2, "states:", seen)
		w.sees("a/", "a/f: 1", "b/", "b/f: 1", "c/", "c/f: 1")
	}
}

// Who calls while a pull is under way gets the result of the next, and of no
// more.
func TestPullsAreShared(t *testing.T) {
	var n calls
	w := newScene(t, recording(&n), holding("f", "0"))
	w.get("f")
	n.of(providers.MethodList)
	gate, reached := w.answerLate(providers.MethodList)
	first := make(chan struct{})
	go func() {
		w.pull()
		close(first)
	}()
	<-reached
	w.tamper("f", "1") // the first has asked already
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			w.pull()
			assert.Equal(t, w.get("f"), "1")
		})
	}
	close(gate)
	<-first
	all.Wait()
	assert.AtMost(t, n.of(providers.MethodList), 6, "listings")
}

// A pull while a rename of ours is done there and not answered yet: what it
// shows is ours, not others'.
func TestPullDuringOurRename(t *testing.T) {
	w := newScene(t, holding("d/f", "1", "g", "2"))
	d, f, g := w.walk("d"), w.walk("d/f"), w.walk("g")
	gate, reached := w.answerLate(providers.MethodMove)
	w.ok(w.rename("d", "e"))
	<-reached
	r := w.pull()
	assert.Equal(t, r.Changed+r.Deleted, 0, "report", r)
	close(gate)
	w.settle()
	w.pull()
	assert.True(t, w.walk("e") == d && w.walk("e/f") == f && w.walk("g") == g, "another inode")
	w.sees("e/", "e/f: 1", "g: 2")
	w.noProblems()
}

func TestPullIfClean(t *testing.T) {
	w := newScene(t, holding("f", "0", "g", "0"), held(SplitConflicts))
	w.here()
	w.ok(w.put("f", "ours"))
	w.tamper("g", "1")
	r := assert.Of(w.v.Pull(context.Background(), PullOptions{IfClean: true})).OK(w)
	assert.True(t, r.Skipped != "" && w.get("g") == "0", "report", r)
	w.commit()
	r = assert.Of(w.v.Pull(context.Background(), PullOptions{IfClean: true})).OK(w)
	assert.True(t, r.Skipped == "" && w.get("g") == "1", "report", r)
}

// A store without empty directories: one that was made here and has nothing in
// it yet stays, one whose files another deleted goes.
func TestPullWithoutEmptyDirs(t *testing.T) {
	w := newScene(t, over(memory.Options{Without: providers.Capabilities{EmptyDirs: true}}), holding("a/f", "0", "b", "0"), held(SplitConflicts))
	w.names("a")
	w.mkdir("mine")
	w.commit()
	w.pull()
	w.sees("a/", "a/f: 0", "b: 0", "mine/")
	w.gonePath("a/f")
	w.pull()
	w.sees("b: 0", "mine/")
}

// What another puts into a directory that was made or moved here is seen, also
// when the one above it, which others made too, was not looked into since.
func TestPullBelowWhatIsNotKnown(t *testing.T) {
	flat := over(memory.Options{Without: providers.Capabilities{EmptyDirs: true}})
	for _, c := range []struct {
		name        string
		start       func(*world, *Options)
		here, there func(w *scene)
		want        []string
	}{
		{"made, where directories come and go with their entries", flat,
			func(w *scene) { w.names("a"); w.mkdir("a/d") },
			func(w *scene) { w.gonePath("a/f"); w.pull(); w.tamper("a/d/f", "theirs") },
			[]string{"a/", "a/d/", "a/d/f: theirs", "b/", "b/f: 0"}},
		{"made, and there with something in it", func(*world, *Options) {},
			func(w *scene) { w.mkdir("n"); w.mkdir("n/d") },
			func(w *scene) { w.tamper("n/d/f", "theirs") },
			[]string{"a/", "a/f: 0", "b/", "b/f: 0", "n/", "n/d/", "n/d/f: theirs"}},
		{"moved", func(*world, *Options) {},
			func(w *scene) { w.names("b"); w.mkdir("n"); w.do("mv b n/d") },
			func(w *scene) { w.tamper("n/x", "0"); w.pull(); w.commit(); w.tamper("n/d/f", "theirs") },
			[]string{"a/", "a/f: 0", "n/", "n/d/", "n/d/f: theirs", "n/x: 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newScene(t, c.start, holding("a/f", "0", "b/f", "0"), held(SplitConflicts))
			c.here(w)
			c.there(w)
			w.pull()
			w.commit()
			w.pull()
			w.sees(c.want...)
		})
	}
}

// A pull that deletes too much halts, until it is confirmed, and each time anew. What is too much
// is proved on packages massdelete and merge.
func TestHalt(t *testing.T) {
	w := newScene(t, many(24, ""))
	w.names("")
	w.goneRange("", 0, 13)
	err := assert.ErrOf(w.v.Pull(context.Background(), PullOptions{}))
	w.is(err, ErrMassDelete)
	assert.Contains(t, err.Error(), "13 of 24 entries")
	assert.Equal(t, len(w.names("")), 24, "names")
	h := w.halts(1)[0]
	assert.True(t, !h.Commit && strings.Contains(h.Reason, "13 of 24 entries"), "halted", h)
	r, err := w.v.Confirm(context.Background())
	assert.True(t, err == nil && r.Deleted == 13, "confirmed", r, err)
	w.halts(0)
	many(30, "n")(w.world, nil)
	w.pull()
	w.goneRange("n", 0, 29)
	w.is(assert.ErrOf(w.v.Pull(context.Background(), PullOptions{})), ErrMassDelete) // it was confirmed once
}

// many is a store with files in a directory.
func many(n int, dir string) func(*world, *Options) {
	return holding(numbered(n, dir+"%02d")...)
}

func (w *scene) goneRange(dir string, from, to int) {
	w.Helper()
	for i := from; i < to; i++ {
		w.gonePath(fmt.Sprintf("%s%02d", dir, i))
	}
}

// excludes is an exclusion of the names that end so.
type excludes string

func (e excludes) Match(path string, _ bool) bool {
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasSuffix(part, string(e)) {
			return true
		}
	}
	return false
}

func (excludes) SameBelow(_, _ string) bool { return false }

func (e excludes) String() string { return string(e) }

// What is excluded stays here, and what the backend has of that name stays
// there.
func TestExclude(t *testing.T) {
	w := newScene(t, holding("a", "1", "b.local", "theirs", "d/x.local", "theirs", "n.local/f", "theirs"),
		func(_ *world, o *Options) { o.Exclude = excludes(".local") })
	w.names("d")
	assert.Slice(t, w.names(""), []string{"a", "d"}, "names")
	assert.Equal(t, w.hiddenCount(), 3, "hidden")
	w.do("put b.local ours", "mkdir n.local", "put n.local/g ours")
	w.settle()
	w.tamper("b.local", "theirs, new")
	w.pull()
	assert.Equal(t, w.get("b.local"), "ours")
	assert.Equal(t, w.hiddenCount(), 3, "hidden")
	w.again()
	w.sees("a: 1", "b.local: ours", "d/", "n.local/", "n.local/g: ours")
	w.ok(w.rename("a", "a.local")) // a deletion at the backend
	w.settle()
	w.backend("b.local: theirs, new", "d/", "d/x.local: theirs", "n.local/", "n.local/f: theirs")
	w.ok(w.rename("b.local", "b"))
	w.commit()
	w.backend("b: ours", "b.local: theirs, new", "d/", "d/x.local: theirs", "n.local/", "n.local/f: theirs")
	w.is(w.rename("d", "d.local"), syscall.EXDEV)
}

func (w *scene) hiddenCount() int {
	locked := w.v.lock()
	defer locked.unlock()
	return rules.Hidden(locked)
}

// What is in the way of the backend's name because it cannot go there is not
// replaced by it.
func TestLocalKindsHide(t *testing.T) {
	w := newScene(t, holding("a", "1"))
	w.ok(assert.ErrOf(w.v.Mknod(me, 1, "p", syscall.S_IFIFO|0o600, 0)))
	w.tamper("p", "theirs")
	w.pull()
	a, err := w.v.Attr(me, w.walk("p"), nil)
	assert.True(t, err == nil && a.Mode&syscall.S_IFMT == syscall.S_IFIFO && w.hiddenCount() == 1, a, err, w.hiddenCount(), "hidden")
	w.ok(w.unlink("p"))
	w.pull()
	assert.Equal(t, w.get("p"), "theirs")
}

// What stays here takes the name of a file that the backend has: that is deleted
// there, and is not taken for another's when it is still seen, or when the name
// gets a file again before it went.
func TestPipeTakesAName(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := newScene(t, holding("f", "one", "g", "two", "d/x", "three"), func(_ *world, o *Options) {
			o.Policy = Policy{NoWait: true, Commit: DueAsked, TTL: time.Nanosecond}
		})
		w.list("d")
		w.do("rm f", "rm d/x", "rmdir d")
		for _, name := range []string{"f", "d"} {
			w.ok(assert.ErrOf(w.v.Mknod(me, 1, name, syscall.S_IFIFO|0o600, 0)))
		}
		w.pull()
		w.walk("g") // looks, too
		if again {
			w.do("rm f", "rm d", "put f new", "put d new")
			w.commit()
			w.backend("d: new", "f: new", "g: two")
		} else {
			w.commit()
			w.backend("g: two")
		}
		w.noProblems()
	}
}

// Of a pull the files are told that are new to programs, for those that watch them.
func TestPullTellsOfNewFiles(t *testing.T) {
	var told []string
	w := newScene(t, holding("d/f", "one", "d/gone", "two", "d/same", "x"), held(SplitConflicts), func(_ *world, o *Options) {
		o.Pulled = func(path string) { told = append(told, path) }
	})
	w.here()
	w.tamper("d/f", "two!")
	w.tamper("d/new", "three")
	w.gonePath("d/gone")
	w.pull()
	assert.Slice(t, sorted(told), []string{"d/f", "d/new"})
}
