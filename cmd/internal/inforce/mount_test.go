package inforce

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/mountspec/policy"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

// What is denied to read is closed, what is denied to write is read-only, and that reaches
// what lies in it: on path boundaries, and whoever made it read-only himself keeps his reason.
func TestAccess(t *testing.T) {
	no, yes := policy.Decision{Reason: policy.TTLExpired, Principal: "operator://bob"}, policy.Decision{Allow: true}
	assert.Equal(t, accessOf(yes, yes), fs.Access{})
	assert.Equal(t, accessOf(yes, no), fs.Access{ReadOnly: "policy (ttl-expired for operator://bob)"})
	assert.Equal(t, accessOf(no, yes), fs.Access{Closed: "policy (ttl-expired for operator://bob)"})

	parts := []Part{{At: ""}, {At: "lib"}, {At: "lib/deep"}, {At: "library"}}
	got := inherited(parts, []fs.Access{{}, {ReadOnly: "why", Closed: "why not"}, {Closed: "too"}, {}})
	assert.Slice(t, got, []fs.Access{{}, {ReadOnly: "why", Closed: "why not"}, {ReadOnly: "parent (it lies in /lib, which is read-only: why)", Closed: "too"}, {}})
	got = inherited(parts, []fs.Access{{ReadOnly: "all"}, {ReadOnly: "own"}, {}, {}})
	assert.Equal(t, got[1].ReadOnly, "own")
	assert.Equal(t, got[3].ReadOnly, "parent (it lies in /, which is read-only: all)")
}

// Acts are remembered by the next mount, as long as they count; what was not done in the
// end does not count, and what cannot be kept is not done.
func TestActs(t *testing.T) {
	dir := assert.Of(filepath.EvalSymlinks(t.TempDir())).OK(t)
	now := time.Date(2026, 11, 20, 12, 0, 0, 123, time.UTC)
	o := ActsOptions{Path: filepath.Join(dir, "acts"), Now: func() time.Time { return now }, WhileFull: func(do func() error) error { return do() },
		Remembered: func(action string) time.Duration { return map[string]time.Duration{policy.Push: time.Hour}[action] }}
	open := func() *Acts {
		t.Helper()
		return assert.Of(OpenActs(o)).OK(t)
	}
	begin := func(a *Acts, action string) func() error {
		t.Helper()
		return assert.Of(a.Begin(action, func(policy.Done) error { return nil })).OK(t)
	}
	a := open()
	begin(a, policy.Push)
	begin(a, policy.Commit)
	now = now.Add(time.Minute)
	assert.OK(t, begin(a, policy.Push)())
	done := open().Done()
	assert.True(t, len(done) == 1 && len(done[policy.Push]) == 1 && done[policy.Push][0].Equal(now.Add(-time.Minute)), "remembered", done)
	now = now.Add(time.Hour)
	a = open()
	begin(a, policy.Push)
	assert.Equal(t, len(a.Done()[policy.Push]), 1, "pushes that still count")

	assert.OK(t, os.WriteFile(o.Path, []byte("{"), 0o600))
	_, err := OpenActs(o)
	assert.True(t, err != nil, "a damaged file counts as nothing done")
	o.Path = filepath.Join(dir, "nowhere", "acts")
	a = open()
	assert.OK(t, os.Remove(filepath.Dir(o.Path)))
	_, err = a.Begin(policy.Push, func(policy.Done) error { return nil })
	assert.True(t, err != nil, "a push that cannot be remembered may be done")
	o.Remembered = func(string) time.Duration { return 0 }
	none := open()
	assert.True(t, none == nil && none.Done() == nil, "something is kept without a limit")
	assert.OK(t, begin(none, policy.Push)())
}

// Two working copies of a workspace have one limit together: neither needs to be mounted
// again to see what the other has done, and of acts that begin at once no more are let
// through than may be. What is refused, or cannot be kept, does not count.
func TestActsOfTwoCopies(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	assert.OK(t, err)
	o := ActsOptions{Path: filepath.Join(dir, "acts"), Now: time.Now, WhileFull: func(do func() error) error { return do() },
		Remembered: func(string) time.Duration { return time.Hour }}
	var copies [2]*Acts
	for i := range copies {
		copies[i], err = OpenActs(o)
		assert.OK(t, err)
	}
	exceeded := errors.New("limit-exceeded")
	most := 1
	once := func(done policy.Done) error {
		if len(done[policy.Commit]) >= most {
			return exceeded
		}
		return nil
	}
	undo := assert.Of(copies[0].Begin(policy.Commit, once)).OK(t)
	assert.Equal(t, len(copies[1].Done()[policy.Commit]), 1, "commits that the other copy knows of")
	assert.Is(t, assert.ErrOf(copies[1].Begin(policy.Commit, once)), exceeded, "the other copy")
	assert.OK(t, undo())
	undo = assert.Of(copies[1].Begin(policy.Commit, once)).OK(t)
	assert.OK(t, undo())

	most = 5
	var all sync.WaitGroup
	var begun atomic.Int32
	for i := range 4 * most {
		all.Go(func() {
			if _, err := copies[i%2].Begin(policy.Commit, once); err == nil {
				begun.Add(1)
			}
		})
	}
	all.Wait()
	assert.Equal(t, int(begun.Load()), most, "commits that began at once")
	assert.Equal(t, len(copies[0].Done()[policy.Commit]), most, "commits that count")

	assert.OK(t, os.Remove(o.Path))
	assert.OK(t, os.Mkdir(o.Path, 0o700))
	most = 100
	_, err = copies[0].Begin(policy.Commit, once)
	assert.True(t, err != nil && !errors.Is(err, exceeded), "a commit that cannot be counted", err)
	assert.Equal(t, len(copies[0].Done()[policy.Commit]), 5, "commits that were known")
}
