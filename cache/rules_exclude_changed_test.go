package cache

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
	"github.com/wsmount/wsmount/providers/providertest"
)

// otherRules goes on with other rules of exclusion, "" for none.
func (w *scene) otherRules(suffix string) {
	w.Helper()
	w.stop()
	w.o.Exclude = nil
	if suffix != "" {
		w.o.Exclude = excludes(suffix)
	}
	w.start()
}

// there is what the backend has.
func (w *scene) there() []string { return listBackend(w.remote()) }

func (w *scene) wantThere(what string, want ...string) {
	w.Helper()
	assert.Slice(w, w.there(), want, what, "the backend")
}

var eachKindOfStore = map[string][]func(*world, *Options){
	"store": nil, "repository": {repository}, "repository with ignore files": {ignoring},
}

// A rule that is lifted between two runs keeps nothing here any more: what it kept
// goes with the next commit, and what others had put there under its name is a
// conflict like any other.
func TestExcludedNoLonger(t *testing.T) {
	for name, opts := range eachKindOfStore {
		t.Run(name, func(t *testing.T) {
			w := newScene(t, append([]func(*world, *Options){onlyAsked, func(_ *world, o *Options) {
				o.Exclude, o.Policy.Conflict = excludes(".local"), SplitConflicts
			}}, opts...)...)
			w.do("put a 1", "put b.local 2", "mkdir d.local", "put d.local/c 3", "put e.keep 4")
			w.upload()
			w.wantThere("excluded", "a: 1", "e.keep: 4")
			w.otherRules(".keep")
			w.upload()
			w.wantThere("lifted", "a: 1", "b.local: 2", "d.local/", "d.local/c: 3", "e.keep: 4")
			s := w.v.Status()
			assert.True(t, s.Queued == 0 && len(s.Held) == 0, s.Queued, "wait, held back", s.Held)
			r, err := w.v.Pull(t.Context(), PullOptions{IfClean: true})
			assert.True(t, err == nil && !strings.Contains(r.Skipped, "changes here"), "a pull", r, err)
		})
	}
}

// Where each change goes by itself, that does too.
func TestExcludedNoLongerGoesByItself(t *testing.T) {
	for name, opts := range eachKindOfStore {
		t.Run(name, func(t *testing.T) {
			w := newScene(t, append(opts, func(_ *world, o *Options) {
				o.Exclude, o.Policy.Commit, o.Policy.NoWait = excludes(".local"), DueChange, true
			})...)
			w.do("put a 1", "put b.local 2")
			w.until(func() bool { return slices.Equal(w.there(), []string{"a: 1"}) })
			w.otherRules("")
			w.until(func() bool { return slices.Equal(w.there(), []string{"a: 1", "b.local: 2"}) })
		})
	}
}

// What the backend has under a name that was excluded is not overwritten by what
// had it here.
func TestExcludedNoLongerHereAndThere(t *testing.T) {
	w := newScene(t, holding("b.local", "theirs"), onlyAsked, func(_ *world, o *Options) {
		o.Exclude, o.Policy.Conflict = excludes(".local"), SplitConflicts
	})
	w.names("")
	w.do("put b.local ours")
	w.otherRules("")
	w.pull()
	w.commit()
	got := strings.Join(w.there(), ", ")
	assert.True(t, strings.Contains(got, "b.local: theirs") && strings.Contains(got, ": ours"), "the backend has", got)
}

// What was to be sent and is excluded before it was does not go: new names, new
// content and deletions.
func TestExcludedBeforeItWasSent(t *testing.T) {
	for name, opts := range eachKindOfStore {
		t.Run(name, func(t *testing.T) {
			w := newScene(t, append([]func(*world, *Options){onlyAsked}, opts...)...)
			w.do("put a.local 1", "put b.local 2", "put c 3", "mkdir d.local", "put d.local/e 4")
			w.upload()
			before := w.there()
			w.do("put a.local changed", "rm b.local", "put n.local new", "put d.local/n new", "mkdir m.local", "put m.local/n new", "put c changed")
			w.otherRules(".local")
			w.upload()
			for i := range before {
				before[i] = strings.ReplaceAll(before[i], "c: 3", "c: changed")
			}
			w.wantThere("excluded", before...)
			w.pull()
			w.upload()
			w.wantThere("after a pull", before...)
			for path, want := range map[string]string{"a.local": "changed", "n.local": "new", "d.local/n": "new", "m.local/n": "new"} {
				assert.Equal(t, w.get(path), want, path, "is here")
			}
		})
	}
}

// What may have arrived, since the answer was lost, is what the backend has under a name
// that is excluded now: it is left there.
func TestExcludedWhileTheAnswerIsLost(t *testing.T) {
	w := newScene(t, onlyAsked)
	w.do("put a.local 1")
	w.faults.Queue(providers.MethodWrite, providertest.Fault{After: providers.ErrUnavailable})
	w.o.pause = newManual().pause // it is not found out in this run
	w.again()
	ctx, cancel := context.WithCancel(t.Context())
	done := async(func() { _, _ = w.v.Commit(ctx, CommitOptions{}) })
	w.until(func() bool { return slices.Equal(w.there(), []string{"a.local: 1"}) && w.v.Status().LastError != "" })
	cancel()
	<-done
	w.o.pause = atOnce
	w.otherRules(".local")
	w.upload()
	w.pull()
	w.upload()
	w.wantThere("excluded", "a.local: 1")
}

// What the backend had under a name that is excluded now, in whose place there is another
// file, is not known any more either.
func TestExcludedInPlaceOfAnother(t *testing.T) {
	w := newScene(t, onlyAsked)
	w.do("put a.local 1")
	w.upload()
	was := w.walk("a.local")
	w.v.Forget(was, 1)
	w.do("rm a.local", "put a.local other")
	w.otherRules(".local")
	locked := w.v.lock()
	n := locked.Inode(uint64(was))
	locked.unlock()
	assert.True(t, n == nil, "the inode without a name is forgotten")
	assert.Equal(t, w.get("a.local"), "other")
	w.upload()
	w.wantThere("excluded", "a.local: 1")
}

// out excludes what is below a directory "out", and objects anywhere.
type out struct{}

func (out) Match(path string, _ bool) bool {
	return path == "out" || strings.HasPrefix(path, "out/") || strings.HasSuffix(path, ".o") || strings.Contains(path, ".o/")
}

func (out) SameBelow(_, _ string) bool { return false }

func (out) String() string { return "out *.o" }

func excluding(_ *world, o *Options) { o.Exclude = out{} }

// What is renamed to where it stays local the remote deletes, which is told, and what comes
// from there it gets.
func TestRenameAcrossTheBorder(t *testing.T) {
	w := newWorld(t, excluding, holding("d/a", "1", "f", "2", "g", "3"))
	w.get("f")
	w.walk("d/a")
	w.do("mkdir out", "put out/local local", "put d/x.o x", "mv f out/f", "mv out/local in", "mv d e")
	w.settle()
	w.until(func() bool { return w.v.Status().Queued == 0 })
	w.backend("e/", "e/a: 1", "g: 3", "in: local")
	problems := w.v.Status().Problems
	assert.True(t, len(problems) == 1 && problems[0].Path == "f", "told", problems)
}
