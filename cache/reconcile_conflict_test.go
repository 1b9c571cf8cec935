package cache

import (
	"context"
	"io"
	iofs "io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/cache/internal/history"
	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
)

// Who has our version open goes along with it to the conflict copy.
func TestConflictCopyFollowsHandles(t *testing.T) {
	w := newScene(t, holding("f", "one"), held(SplitConflicts))
	ino := w.walk("f")
	w.ok(w.put("f", "ours"))
	reader := w.open("f", syscall.O_RDONLY)
	defer reader.File.Release()
	w.tamper("f", "theirs")
	r := w.pull()
	assert.True(t, len(r.Conflicts) == 1 && r.Conflicts[0] == "f", "report", r)
	got := w.walk("f.conflict-" + short("ours"))
	assert.True(t, got == ino && w.read(reader) == "ours", "the copy is inode", got, "ours was", ino)
	p := w.v.Status().Problems
	assert.True(t, len(p) == 1 && p[0].Path == "f", "problems", p)
}

// A commit says which names were in conflict, also where that was decided at once;
// one that finds none says none.
func TestCommitCountsConflicts(t *testing.T) {
	for _, policy := range []Conflict{SplitConflicts, LastWriterWins, Abort} {
		for _, sets := range []bool{false, true} {
			w := newScene(t, holding("f", "one", "g", "two"), held(policy), func(_ *world, o *Options) { o.Policy.Atomic = sets })
			w.do("put f ours", "put g mine")
			w.tamper("f", "theirs")
			r := w.commit()
			assert.Slice(t, r.Conflicts, []string{"f"}, "policy", policy, "sets", sets, "conflicts")
			assert.True(t, len(r.HeldBack) == 0 || policy == Abort, "policy", policy, "sets", sets, "held back", r.HeldBack)
			w.do("put g again")
			r = w.commit()
			assert.True(t, policy == Abort || len(r.Conflicts) == 0, "policy", policy, "sets", sets, "then", r)
		}
	}
}

// copies are the conflict copies in the root.
func (w *scene) copies() []string {
	return slices.DeleteFunc(w.names(""), func(name string) bool { return !strings.Contains(name, ".conflict-") })
}

// However many conflict copies of a name there are, there is room for another, and
// what is there already needs none.
func TestManyConflictsOfOneName(t *testing.T) {
	for name, tt := range map[string]struct {
		ours  func(w *scene, i int)
		after func(w *scene, i int)
		want  int
		ended int // how often the history has that a copy was there already
	}{
		"the same": {ours: func(w *scene, _ int) { w.do("put f ours") }, want: 1, ended: 6},
		"empty":    {ours: func(w *scene, _ int) { w.ok(w.put("f", "")) }, want: 1, ended: 6},
		"edited since": {
			ours: func(w *scene, _ int) { w.do("put f ours") },
			after: func(w *scene, i int) {
				for _, name := range w.copies() {
					if w.get(name) == "ours" {
						w.ok(w.put(name, strconv.Itoa(i)))
					}
				}
			},
			want: 7,
		},
		"directories": {ours: func(w *scene, i int) { w.do("rm f", "mkdir f", "put f/x "+strconv.Itoa(i)) }, want: 7},
	} {
		t.Run(name, func(t *testing.T) {
			w := newScene(t, holding("f", "one", "g", "two"), held(SplitConflicts))
			w.get("f")
			for i := range 7 {
				tt.ours(w, i)
				w.tamper("f", "theirs"+strconv.Itoa(i))
				r := w.commit()
				assert.Must(t, len(r.HeldBack) == 0 && len(r.Conflicts) == 1, "conflict", i, r)
				if tt.after != nil {
					tt.after(w, i)
				}
				w.commit()
			}
			assert.Equal(t, w.get("f"), "theirs6")
			assert.Equal(t, len(w.copies()), tt.want, "copies, of", w.here())
			list := w.versions(LogFilter{Path: "f"})
			ended := 0
			for _, v := range list {
				if v.Change == Ended && v.Why == history.WhyConflict {
					ended++
				}
			}
			assert.Equal(t, ended, tt.ended, "ends in the history:", list)
		})
	}
}

// A name that is held keeps ours here and theirs there, and close says so.
func TestAbortHolds(t *testing.T) {
	for _, policy := range []Conflict{Abort, Manual} {
		w := newScene(t, holding("f", "one"), func(_ *world, o *Options) { o.Policy.Conflict = policy })
		w.walk("f")
		w.tamper("f", "theirs")
		w.is(w.put("f", "ours"), fs.ErrConflict)
		o := w.open("f", syscall.O_RDWR)
		w.write(o, "ours", 0)
		w.is(o.File.Fsync(me, false), fs.ErrConflict)
		o.File.Release()
		assert.Equal(t, w.get("f"), "ours", "here")
		w.backend("f: theirs")
		w.pull()
		w.sees("f: ours")
		all := w.v.Conflicts()
		assert.Must(t, len(all) == 1 && all[0].Path == "f" && !all[0].Since.IsZero(), "conflicts", all)
		assert.Equal(t, [3]int64{all[0].Ours, all[0].Theirs.Size, all[0].Base.Size}, [3]int64{4, 6, 3}, "sizes of ours, theirs and the base")
		assert.Equal(t, strings.Contains(all[0].Reason, "storage_conflict"), policy == Abort, "a code in the reason", all[0].Reason)
		w.tamper("f", "theirs, later")
		w.pull()
		all = w.v.Conflicts()
		assert.True(t, len(all) == 1 && all[0].Theirs.Size == 13, "after another change there", all)
		w.side("f", SideOurs, "ours")
		w.side("f", SideTheirs, "theirs, later")
	}
}

func (w *scene) side(path string, s Side, want string) {
	w.Helper()
	r := assert.Of(w.v.ConflictContent(context.Background(), path, s)).OK(w)
	defer r.Close()
	got := assert.Of(io.ReadAll(r)).OK(w)
	assert.Equal(w, string(got), want, path, s)
}

func TestResolve(t *testing.T) {
	copyOf := "f.conflict-" + short("ours")
	for _, c := range []struct {
		name string
		r    Resolution
		want []string
		kept string // what the history has afterwards
	}{
		{"ours", Resolution{Keep: SideOurs}, []string{"f: ours"}, "theirs"},
		{"theirs", Resolution{Keep: SideTheirs}, []string{"f: theirs"}, "ours"},
		{"both", Resolution{Both: true}, []string{"f: theirs", copyOf + ": ours"}, ""},
		{"neither", Resolution{Content: strings.NewReader("merged")}, []string{"f: merged"}, "theirs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newScene(t, holding("f", "one"), held(Manual))
			w.names("")
			w.ok(w.put("f", "ours"))
			w.tamper("f", "theirs")
			w.pull()
			w.again() // nobody knows of the file any more
			w.ok(w.v.Resolve(context.Background(), "f", c.r))
			w.sees(c.want...)
			w.commit()
			w.backend(c.want...)
			assert.Equal(t, len(w.v.Conflicts()), 0, "conflicts are left")
			assert.True(t, c.kept == "" || w.kept(c.kept), c.kept, "is not in the history")
			w.is(w.v.Resolve(context.Background(), "f", c.r), ErrNoConflict)
		})
	}
	w := newScene(t, holding("f", "one"), held(Manual))
	w.is(w.v.Resolve(context.Background(), "f", Resolution{Keep: SideOurs}), ErrNoConflict)
	w.is(w.v.Resolve(context.Background(), "", Resolution{Keep: SideOurs}), ErrNoConflict)
	w.is(w.v.Resolve(context.Background(), "f/g/h", Resolution{Keep: SideOurs}), ErrNoConflict)
}

// kept reports whether the history has a content.
func (w *scene) kept(want string) bool {
	w.Helper()
	all := w.versions(LogFilter{})
	for _, version := range all {
		if r, _, err := w.v.Content(version.ID); err == nil {
			got, _ := io.ReadAll(r)
			r.Close()
			if string(got) == want {
				return true
			}
		}
	}
	return false
}

// Base is told from the history when the backend does not have it any more, be it ours
// or theirs; of a new name there is none.
func TestBaseOfAConflict(t *testing.T) {
	w := newScene(t, holding("f", "one"), held(Manual))
	assert.Equal(t, w.get("f"), "one")
	w.do("put g one")
	w.commit()
	w.do("put f ours", "put g ours", "put n ours")
	for _, path := range []string{"f", "g", "n"} {
		w.tamper(path, "theirs")
	}
	w.pull()
	w.side("f", SideBase, "one")
	w.side("g", SideBase, "one")
	w.is(assert.ErrOf(w.v.ConflictContent(context.Background(), "n", SideBase)), iofs.ErrNotExist)
}

// What was changed again there after it was shown to somebody is not
// overwritten by his decision.
func TestResolveIsConditional(t *testing.T) {
	w := newScene(t, holding("f", "one"), held(Manual))
	w.names("")
	w.ok(w.put("f", "ours"))
	w.tamper("f", "theirs")
	w.pull()
	w.tamper("f", "theirs, unseen")
	w.is(w.v.Resolve(context.Background(), "f", Resolution{Keep: SideOurs}), fs.ErrConflict)
	w.backend("f: theirs, unseen")
}

// A change back there ends a conflict, and so does giving up ours.
func TestConflictsThatEndByThemselves(t *testing.T) {
	w := newScene(t, holding("f", "one", "g", "one", "h", "one"), held(Abort))
	w.names("")
	for _, name := range []string{"f", "g", "h"} {
		w.ok(w.put(name, "ours"))
		w.tamper(name, "theirs")
	}
	w.pull()
	w.tamper("f", "ours") // the same, at last
	w.ok(w.unlink("g"))   // given up
	w.gonePath("h")       // deleted there: ours stays
	w.pull()
	w.commit()
	w.pull()
	assert.Equal(t, len(w.v.Conflicts()), 0, "conflicts")
	w.sees("f: ours", "g: theirs", "h: ours")
	w.backend("f: ours", "g: theirs", "h: ours")
}

func TestLastWriterWins(t *testing.T) {
	w := newScene(t, holding("f", "one", "g", "1"), func(_ *world, o *Options) { o.Policy.Conflict = LastWriterWins })
	w.walk("f")
	w.tamper("f", "theirs")
	w.ok(w.put("f", "ours"))
	w.backend("f: ours", "g: 1")
	assert.True(t, w.kept("theirs"), "what was overwritten is not in the history")
	assert.False(t, len(w.v.Status().Problems) == 0, "nothing was reported")
	w.tamper("g", "2") // a deletion still loses to content
	w.ok(w.unlink("g"))
	w.settle()
	w.sees("f: ours", "g: 2")
}

// A file that lost its name to a pull while it was open: what is written to it
// then is a change of that name.
func TestClaims(t *testing.T) {
	copyOf := "f.conflict-" + short("ours")
	for _, c := range []struct {
		name   string
		policy Conflict
		there  func(w *scene)
		want   []string
		err    error
	}{
		{"split", SplitConflicts, func(w *scene) { w.tamper("f", "theirs") }, []string{"f: theirs", copyOf + ": ours"}, nil},
		{"same", SplitConflicts, func(w *scene) { w.tamper("f", "ours") }, []string{"f: ours"}, nil},
		{"deleted", SplitConflicts, func(w *scene) { w.gonePath("f") }, []string{"f: ours"}, nil},
		{"a directory", SplitConflicts, func(w *scene) { w.gonePath("f"); w.tamper("f/x", "y") },
			[]string{"f/", "f/x: y", copyOf + ": ours"}, nil},
		{"abort", Abort, func(w *scene) { w.tamper("f", "theirs") }, []string{"f: ours"}, fs.ErrConflict},
		{"manual", Manual, func(w *scene) { w.tamper("f", "theirs") }, []string{"f: ours"}, fs.ErrConflict},
		{"last writer", LastWriterWins, func(w *scene) { w.tamper("f", "theirs") }, []string{"f: ours"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newScene(t, holding("f", "one"), func(_ *world, o *Options) { o.Policy.Conflict = c.policy })
			o := w.open("f", syscall.O_RDWR|syscall.O_TRUNC)
			w.fresh(o)
			c.there(w)
			w.pull()
			w.write(o, "ours", 0)
			w.is(w.shut(o), c.err)
			assert.Slice(t, sorted(w.here()), sorted(c.want), "here")
			assert.True(t, c.policy != LastWriterWins || w.kept("theirs"), "what was overwritten is not in the history")
			if c.err == nil {
				w.settle()
				assert.Slice(t, sorted(listBackend(w.p)), c.want, "the backend")
			}
		})
	}
}

// fresh makes an open writer clean: what it has is what the backend has.
func (w *scene) fresh(o fs.Opened) {
	w.Helper()
	w.write(o, "one", 0)
	w.ok(o.File.Flush(me))
}

// A reader's file without a name is only forgotten.
func TestConflictOfAReaderWithoutAName(t *testing.T) {
	w := newScene(t, holding("f", "one"))
	o := w.replaced("f")
	assert.Equal(t, w.read(o), "one")
	w.ok(w.shut(o))
	w.sees("f: theirs")
	w.noProblems()
}

// What was written to a file without a name is not lost when the process is
// killed before it was closed.
func TestClaimAfterAKill(t *testing.T) {
	w := newScene(t, holding("f", "one"), held(SplitConflicts))
	o := w.replaced("f")
	w.write(o, "ours", 0)
	w.killed()
	w.v.merger.ResolveOrphanConflicts()
	w.sees("f: theirs", "f.conflict-"+short("ours")+": ours")
	o.File.Release()
}

// An orphan conflict that could not be resolved is resolved later.
func TestClaimIsTriedAgain(t *testing.T) {
	w := newScene(t, holding("f", "one"), held(LastWriterWins))
	o := w.replaced("f")
	w.write(o, "ours", 0)
	w.faults.Queue(providers.MethodRead, providertest.Fault{Before: providers.ErrPermission})
	w.ok(w.shut(o))
	w.v.merger.ResolveOrphanConflicts()
	w.sees("f: ours")
	assert.True(t, w.kept("theirs"), "what is overwritten is not in the history")
}

// What is renamed here to where another put something is changed by a third under
// its old name: its bytes from before are nowhere, and nobody here misses them.
func TestConflictOfARenameWhoseSourceChanges(t *testing.T) {
	for name, c := range map[string]struct{ moves, theirs, want []string }{
		"one": {[]string{"mv d/f g"}, []string{"d/f", "changed", "g", "theirs"}, []string{"changed", "theirs"}},
		// The first move finds that both have changed.
		"two": {[]string{"mv d/g d/h", "mv d/f d/g"}, []string{"d/f", "changed", "d/g", "theirs"}, []string{"changed", "theirs"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, holding("d/f", "one", "d/g", "two"), unwaited)
			w.list("")
			w.list("d")
			w.do(c.moves...)
			for i := 0; i < len(c.theirs); i += 2 {
				w.tamper(c.theirs[i], c.theirs[i+1])
			}
			w.upload()
			assert.Equal(t, len(w.v.Status().Held), 0, "held back")
			got := strings.Join(w.local(), ", ")
			for _, want := range c.want {
				assert.Contains(t, got, ": "+want, want, "is not in")
			}
			w.same()
		})
	}
}

// The source changes while it is compared with what is in the way.
func TestConflictOfARenameWhoseSourceChangesMeanwhile(t *testing.T) {
	w := newWorld(t, holding("d/f", "one"), background)
	w.list("")
	w.list("d")
	w.tamper("g", "theirs")
	reads, read := w.gate(providers.MethodRead)
	defer read()
	w.ok(w.rename("d/f", "g"))
	<-reads
	w.tamper("d/f", "changed")
	read()
	w.until(func() bool { s := w.v.Status(); return s.Queued == 0 && s.HeldCount == 0 })
	got := strings.Join(w.local(), ", ")
	assert.True(t, strings.Contains(got, "g: theirs") && strings.Contains(got, ": changed"), "here is", got)
	w.same()
}
