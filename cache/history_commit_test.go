package cache

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/providers"
)

// commits is a clone with two commits of its own: the names of them, the second
// first.
func commits(t *testing.T) (c *clone, two, one string) {
	t.Helper()
	clock := newTestClock()
	c = newClone(t, seeded(t, "a", "a\n", "d/b", "b\n", "d/c", "c\n", "old", "old\n"), func(w *world, o *Options) { o.Now = clock.now })
	c.do("put a first\n", "put d/new new\n")
	one = c.commits()
	c.later(clock, 3*time.Second)
	c.do("put a second\n", "rm d/b", "mv old moved")
	return c, c.commits(), one
}

// commits makes a commit, and returns its name.
func (c *clone) commits() string {
	c.Helper()
	r := assert.Of(c.v.Commit(c.Context(), CommitOptions{})).OK(c)
	return string(r.Revision)
}

// What is changed while a commit is being made is not said to have gone into it, but into
// the next.
func TestLogByCommitMadeMeanwhile(t *testing.T) {
	for _, carriedOut := range []bool{false, true} {
		clock := newTestClock()
		var reached <-chan struct{}
		var open func()
		c := newClone(t, seeded(t, "a", "a\n", "b", "b\n", "c", "c\n", "d/x", "x\n"), func(w *world, o *Options) {
			o.Now = clock.now
			reached, open = w.holdFirst(providers.MethodCommit, carriedOut)
		})
		c.local() // all is known: a first look at a directory waits for a commit
		c.do("put a first", "put b first", "put c first")
		defer open()
		var one string
		done := async(func() { one = c.commits() })
		<-reached
		c.later(clock, 3*time.Second)
		c.do("put a second", "rm b", "mv c d/c", "rm d/x", "put n new")
		open()
		<-done
		said := func(two string) (all []string) {
			log := assert.Of(c.v.Log(c.Context(), LogFilter{})).OK(c)
			for _, ver := range log {
				all = append(all, ver.Change+" "+ver.Path+" "+map[string]string{one: "one", two: "two", "": "none"}[ver.Commit])
			}
			return sorted(all)
		}
		first := said("-")
		want := strings.ReplaceAll(strings.Join(first, "\n"), " none", " two")
		assert.Equal(t, strings.Join(said(c.commits()), "\n"), strings.Join(sorted(strings.Split(want, "\n")), "\n"), "carried out", carriedOut, "the log says", first, "and then")
		if !slices.Contains(first, "written a none") || !slices.Contains(first, "written a one") || !slices.Contains(first, "written n none") {
			t.Errorf("carried out %v: the log says %q", carriedOut, first)
		}
	}
}

// A restore to a commit brings its tree back, as a change; what never goes to the
// store stays.
func TestRestoreByCommit(t *testing.T) {
	c, two, one := commits(t)
	c.do("put d/later later\n", "mkdir made", "put made/x x\n", "mkdir empty")
	r := c.restore(RestoreOptions{To: State{Commit: one}})
	got := strings.Join(r.Restored, " ") + "; " + strings.Join(r.Removed, " ")
	assert.True(t, got == "a d/b old; d/later made made/x moved" && len(r.Skipped) == 0, "restored and removed:", got, "skipped", r.Skipped)
	assert.Equal(t, strings.Join(c.list(""), " "), ". .. a d empty old")
	assert.Equal(t, c.get("a")+c.get("d/b")+c.get("old"), "first\nb\nold\n", "the content")
	again := c.restore(RestoreOptions{To: State{Commit: one}})
	assert.True(t, len(again.Restored)+len(again.Removed)+len(again.Skipped) == 0, "again:", again)
	third := c.commits()
	assert.True(t, third != two && third != one, "the restore is commit", third, "as before")
	c.restore(RestoreOptions{Path: "a", To: State{Commit: two}})
	assert.Equal(t, c.get("a"), "second\n", "a")
	c.restore(RestoreOptions{Path: "a", To: State{Commit: one, Before: true}})
	assert.Equal(t, c.get("a"), "a\n", "a before the first commit")
}

// The last commits are listed beside the history of files.
func TestCommitsAreListed(t *testing.T) {
	c, two, one := commits(t)
	shown := assert.Of(c.v.Show(&fs.Op{}, "history")).OK(c)
	for _, name := range []string{one + "/", two + "/", "d/"} {
		assert.True(t, slices.Contains(shown.Names, name), name, "is not among", shown.Names)
	}
	assert.Is(t, assert.ErrOf(c.v.Show(&fs.Op{}, "history/"+one+"/d/b")), nil)
}
