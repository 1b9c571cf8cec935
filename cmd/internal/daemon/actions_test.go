package daemon

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wsmount/wsmount/mountspec"
)

// syncBlock is a sync block with mode pull-push.
func syncBlock(commit, push, pull mountspec.Trigger) mountspec.Sync {
	s := mountspec.Sync{Mode: mountspec.ModePullPush}
	s.Commit.On, s.Push.On, s.Pull.On = commit, push, pull
	return s
}

func (a actions) String() string {
	var all []string
	add := func(is bool, what string) {
		if is {
			all = append(all, what)
		}
	}
	add(a.commit, "commit")
	add(a.push, "push")
	add(a.pushCommits, "push what it commits")
	for _, p := range []struct {
		t    timing
		what string
	}{{a.pull, "pull"}, {a.pullCommits, "pull if it commits"}, {a.pullPushes, "pull if it pushes"}} {
		add(p.t == now, p.what)
		add(p.t == afterTurn, p.what+" later")
	}
	return strings.Join(all, ", ")
}

// Each row is a line of what actionsFor promises.
func TestActions(t *testing.T) {
	const (
		turnStart, turnEnd = mountspec.EventTurnStart, mountspec.EventTurnEnd
		open, closing      = mountspec.EventWorkspaceOpen, mountspec.EventWorkspaceClose
		commit, push       = mountspec.EventCommitCompleted, mountspec.EventPushCompleted
		manual, write      = mountspec.EventManual, mountspec.EventWrite
		end                = mountspec.EventConversationEnd
	)
	canonical := syncBlock(turnEnd, manual, manual)
	canonical.Mode = mountspec.ModeCanonical
	for _, c := range []struct {
		sync  mountspec.Sync
		event mountspec.Trigger
		state syncState
		want  string
	}{
		{syncBlock(turnEnd, end, open), turnEnd, syncState{}, "commit"},
		{syncBlock(turnEnd, end, open), end, syncState{}, "push"},
		{syncBlock(turnEnd, end, open), open, syncState{}, "pull"},
		{syncBlock(turnEnd, end, open), closing, syncState{}, "commit"},
		{syncBlock(turnEnd, end, open), mountspec.EventToolCall, syncState{inTurn: true}, ""},

		// What a commit and a push make the storage emit.
		{syncBlock(turnEnd, commit, open), turnEnd, syncState{}, "commit, push what it commits"},
		{syncBlock(turnEnd, commit, open), commit, syncState{}, "push"},
		{syncBlock(turnEnd, end, commit), turnEnd, syncState{}, "commit, pull if it commits"},
		{syncBlock(turnEnd, commit, push), turnEnd, syncState{}, "commit, push what it commits, pull if it pushes"},
		{syncBlock(turnEnd, turnEnd, turnEnd), turnEnd, syncState{}, "commit, push, pull"},

		// In a turn only an event of the turn pulls.
		{syncBlock(turnEnd, end, turnStart), turnStart, syncState{inTurn: true}, "pull"},
		{syncBlock(turnEnd, end, end), end, syncState{inTurn: true}, "push, pull later"},
		{syncBlock(turnEnd, commit, push), turnStart, syncState{inTurn: true}, "pull if it pushes later"},
		{syncBlock(end, commit, commit), end, syncState{inTurn: true}, "commit, push what it commits, pull if it commits later"},

		// Manual is a person's word, and writes are followed by the working copy.
		{syncBlock(manual, manual, manual), manual, syncState{}, ""},
		{syncBlock(manual, manual, manual), closing, syncState{}, ""},
		{syncBlock(write, write, write), write, syncState{inTurn: true}, "push, pull"},
		{syncBlock(write, manual, manual), closing, syncState{}, "commit"},

		// A read-only copy only pulls, and other modes never pull or push.
		{syncBlock(turnEnd, turnEnd, turnEnd), turnEnd, syncState{readOnly: true}, "pull"},
		{syncBlock(turnEnd, turnEnd, turnEnd), closing, syncState{readOnly: true}, ""},
		{canonical, turnEnd, syncState{}, "commit"},
		{canonical, closing, syncState{}, "commit"},
	} {
		if got := fmt.Sprint(actionsFor(c.sync, c.event, c.state)); got != c.want {
			t.Errorf("commit on %s, push on %s, pull on %s, %+v: %s is followed by %q, want %q",
				c.sync.Commit.On, c.sync.Push.On, c.sync.Pull.On, c.state, c.event, got, c.want)
		}
	}
}
