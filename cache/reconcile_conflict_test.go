package cache

import (
	"context"
	"io"
	iofs "io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// The last writer does not overwrite a version that the history has no room for.
func TestLastWriterLeavesWhatCannotBeKept(t *testing.T) {
	large := strings.Repeat("theirs ", 100)
	w := newScene(t, holding("f", "one"), held(LastWriterWins), func(_ *world, o *Options) { o.Policy.History.Bytes = 64 })
	w.do("put f ours")
	w.tamper("f", large)
	w.commit()
	w.backend("f: " + large)
	w.sees("f: ours")
	all := w.v.Conflicts()
	assert.Must(t, len(all) == 1, all)
	assert.Contains(t, all[0].Reason, "larger than the history")
	assert.Is(t, w.v.Resolve(t.Context(), "f", Resolution{Keep: SideOurs}), ErrTooLarge)
	w.ok(w.v.Resolve(t.Context(), "f", Resolution{Both: true}))
	w.commit()
	assert.Equal(t, len(w.v.Conflicts()), 0, "conflicts")
	w.backend("f: "+large, "f.conflict-"+short("ours")+": ours")
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

// A name that is held keeps ours here and theirs there, close and fsync say so, and a later run
// resolves it.
func TestHeldConflict(t *testing.T) {
	w := newScene(t, holding("f", "one"), func(_ *world, o *Options) { o.Policy.Conflict = Abort })
	w.walk("f")
	w.tamper("f", "theirs")
	w.is(w.put("f", "ours"), fs.ErrConflict)
	o := w.open("f", syscall.O_RDWR)
	w.write(o, "OURS", 0)
	w.is(o.File.Fsync(me, false), fs.ErrConflict)
	o.File.Release()
	w.backend("f: theirs")
	w.again()
	w.side("f", SideOurs, "OURS")
	w.ok(w.v.Resolve(context.Background(), "f", Resolution{Keep: SideOurs}))
	w.commit()
	w.sees("f: OURS")
	w.backend("f: OURS")
	assert.True(t, w.kept("theirs"), "what was overwritten is not in the history")
}

func (w *scene) side(path string, s Side, want string) {
	w.Helper()
	r := assert.Of(w.v.ConflictContent(context.Background(), path, s)).OK(w)
	defer r.Close()
	got := assert.Of(io.ReadAll(r)).OK(w)
	assert.Equal(w, string(got), want, path, s)
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

// The close of a file that lost its name to a pull while it was open says what becomes of what was
// written to it then. What that is, is proved on package merge.
func TestClaims(t *testing.T) {
	for policy, want := range map[Conflict]error{Abort: fs.ErrConflict, LastWriterWins: nil} {
		w := newScene(t, holding("f", "one"), func(_ *world, o *Options) { o.Policy.Conflict = policy })
		o := w.open("f", syscall.O_RDWR|syscall.O_TRUNC)
		w.fresh(o)
		w.tamper("f", "theirs")
		w.pull()
		w.write(o, "ours", 0)
		w.is(w.shut(o), want)
		w.sees("f: ours")
		assert.True(t, policy == Abort || w.kept("theirs"), "what was overwritten is not in the history")
		w.backend(map[Conflict]string{Abort: "f: theirs", LastWriterWins: "f: ours"}[policy])
	}
}

// fresh makes an open writer clean: what it has is what the backend has.
func (w *scene) fresh(o fs.Opened) {
	w.Helper()
	w.write(o, "one", 0)
	w.ok(o.File.Flush(me))
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
