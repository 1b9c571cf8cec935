package daemon

import (
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
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
		b := &branches{unnamed: "none-yet", clock: func() time.Time { return historic }}
		b.sync.Mode, b.sync.Push.Branch = mountspec.ModePullPush, c.policy
		got, same := b.name(c.on, c.talk, c.turn)
		prefix, any := strings.CutSuffix(c.want, "*")
		if got != c.want && !(any && strings.HasPrefix(got, prefix)) || same != c.sameConversation {
			t.Errorf("%s, on %q, conversation %q, turn %q: %q, %v, want %q, %v", c.policy, c.on, c.talk, c.turn, got, same, c.want, c.sameConversation)
		}
		again, _ := b.name(got, c.talk, c.turn)
		assert.True(t, again == got, got, "again is", again)
		last := got[strings.LastIndex(got, "/")+1:]
		assert.True(t, len(last) <= 64, got, "is too long")
	}
}
