package inforce

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wsmount/wsmount/fs"
	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec/policy"
)

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
	dir, err := filepath.EvalSymlinks(t.TempDir())
	assert.OK(t, err)
	now := time.Date(2026, 11, 20, 12, 0, 0, 123, time.UTC)
	o := ActsOptions{Path: filepath.Join(dir, "acts"), Now: func() time.Time { return now }, WhileFull: func(do func() error) error { return do() },
		Remembered: func(action string) time.Duration { return map[string]time.Duration{policy.Push: time.Hour}[action] }}
	open := func() *Acts {
		t.Helper()
		a, err := OpenActs(o)
		assert.OK(t, err)
		return a
	}
	begin := func(a *Acts, action string) func() error {
		t.Helper()
		undo, err := a.Begin(action)
		assert.OK(t, err)
		return undo
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
	_, err = OpenActs(o)
	assert.True(t, err != nil, "a damaged file counts as nothing done")
	o.Path = filepath.Join(dir, "nowhere", "acts")
	_, err = open().Begin(policy.Push)
	assert.True(t, err != nil, "a push that cannot be remembered may be done")
	o.Remembered = func(string) time.Duration { return 0 }
	none := open()
	assert.True(t, none == nil && none.Done() == nil, "something is kept without a limit")
	assert.OK(t, begin(none, policy.Push)())
}
