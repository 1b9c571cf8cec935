package daemon

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/providers"
)

// Which branch an event means, and whether it is one of the same conversation.
func TestBranchName(t *testing.T) {
	const talk, turn = mountspec.BranchPerConversation, mountspec.BranchPerTurn
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		policy           mountspec.BranchPolicy
		on, talk, turn   string
		want             string // a * at the end: any end
		sameConversation bool
	}{
		{mountspec.BranchMain, "wsmount/c/a", "b", "1", "", false},
		{talk, "", "", "", "wsmount/c/none-yet", false},
		{talk, "", "a", "1", "wsmount/c/a", false},
		{talk, "wsmount/c/none-yet", "", "7", "wsmount/c/none-yet", true},
		{talk, "wsmount/c/a", "b", "", "wsmount/c/b", false},
		{talk, "wsmount/c/a", "a b", "", "wsmount/c/a-b-*", false},
		{turn, "", "", "", "wsmount/t/none-yet/20260102T030405", false},
		{turn, "", "a", "1", "wsmount/t/a/1", false},
		{turn, "wsmount/t/a/1", "a", "1", "wsmount/t/a/1", true},
		{turn, "wsmount/t/a/1", "a", "2", "wsmount/t/a/2", true},
		{turn, "wsmount/t/a/1", "", "2", "wsmount/t/a/2", true},
		{turn, "wsmount/t/a/1", "a", "", "wsmount/t/a/1", true},
		{turn, "wsmount/t/a/1", "", "", "wsmount/t/a/1", true},
		{turn, "wsmount/t/a/1", "b", "", "wsmount/t/b/20260102T030405", false},
		{turn, "wsmount/t/a/1", "b", "1/2", "wsmount/t/b/1-2-*", false},
		{turn, "wsmount/c/a", "a", "1", "wsmount/t/a/1", false},
		{talk, "", long, "", "wsmount/c/xxxx*", false},
	} {
		k := &syncer{unnamed: "none-yet", syncerOptions: syncerOptions{now: func() time.Time { return historic }}}
		k.sync.Mode, k.sync.Push.Branch = mountspec.ModePullPush, c.policy
		got, same := k.branchName(c.on, c.talk, c.turn)
		prefix, any := strings.CutSuffix(c.want, "*")
		if got != c.want && !(any && strings.HasPrefix(got, prefix)) || same != c.sameConversation {
			t.Errorf("%s, on %q, conversation %q, turn %q: %q, %v, want %q, %v", c.policy, c.on, c.talk, c.turn, got, same, c.want, c.sameConversation)
		}
		if again, _ := k.branchName(got, c.talk, c.turn); again != got {
			t.Errorf("%q again is %q", got, again)
		}
		if last := got[strings.LastIndex(got, "/")+1:]; len(last) > 64 {
			t.Errorf("%q is too long", got)
		}
	}
}

var historic = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type waits time.Duration

func (w waits) Error() string             { return "later" }
func (w waits) RetryAfter() time.Duration { return time.Duration(w) }

// The pauses grow to a limit; what the service asks for, and what will hardly
// change, takes longer; success ends it.
func TestAgain(t *testing.T) {
	var a retry
	now := historic
	if a.due(now) || a.fails() != nil {
		t.Error("nothing has failed")
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600} {
		a.ended(now, providers.ErrUnavailable)
		assert.Equal(t, a.next.Sub(now), want*time.Second, "tried again after")
		if a.due(a.next.Add(-1)) || !a.due(a.next) {
			t.Error("due at another time")
		}
		now = a.next
	}
	if f := a.fails(); f == nil || !f.Since.Equal(historic) || f.Error == "" {
		t.Errorf("status: %+v", f)
	}
	a.ended(now, nil)
	if a.due(now.Add(time.Hour)) || a.fails() != nil {
		t.Error("it goes on after success")
	}
	a.ended(now, errors.Join(providers.ErrUnavailable, waits(time.Minute)))
	assert.Equal(t, a.next.Sub(now), time.Minute, "the service asks for a minute, and gets")
	a = retry{}
	a.ended(now, providers.ErrPermission)
	assert.Equal(t, a.next.Sub(now), lastAgain, "a refusal is tried again after")
	a = retry{}
	a.wait(now)
	a.wait(now.Add(time.Minute))
	if !a.due(now.Add(firstAgain)) || a.fails() != nil {
		t.Errorf("what waits for its first time: %+v", a)
	}
}
