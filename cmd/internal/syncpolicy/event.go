package syncpolicy

import (
	"time"

	"github.com/wsmount/wsmount/mountspec"
)

// An Event is an occurrence that a working copy may have to follow.
type Event struct {
	Kind    Kind
	Name    mountspec.Trigger // of Told and Noticed
	Failure Failure           // of Failed
	NoWait  bool              // of AskedCommit: the caller does not wait for a push that it causes
}

// Kind says where an event comes from.
type Kind uint8

const (
	// Told is an event of AIP-37 that is followed now.
	Told Kind = iota
	// Noticed is an event of AIP-37 that the mount noticed by itself: an idle time,
	// or a change of a file. Several of them are followed once.
	Noticed
	// Tick says that time has passed: a second, or the sleep of the machine.
	Tick
	// Looked says that a program looks at the tree: it waits for the actions.
	Looked
	// AskedPull, AskedCommit and AskedPush are requests of a user.
	AskedPull
	AskedCommit
	AskedPush
	// AskedPullRequest is a push with a pull request.
	AskedPullRequest
	// LeavesBranch says that commits are about to go to another branch.
	LeavesBranch
	// TookBack says that a pull has made changes of commits that were not pushed.
	TookBack
	// Failed says that a push, a pull request or a pull failed.
	Failed
	// Unmount says that no program can make changes any more.
	Unmount
)

// On is the event of AIP-37 that a trigger names.
func On(name mountspec.Trigger) Event { return Event{Kind: Told, Name: name.Resolve()} }

// A Failure describes a failed attempt that is tried again.
type Failure struct {
	Waited  time.Duration // before the attempt that failed; 0: it was the first
	Lasting bool          // it will hardly go away by itself
	Wants   time.Duration // how long the service asks to be left alone
	Pull    bool          // it was a pull, which a read-only copy tries again too
}

// Heard are the events that no command reports and that a sync block waits for: idle times
// and changes of files. Those that only commit written files are left out, since the
// working copy counts the batch window itself.
func Heard(s mountspec.Sync) []mountspec.Trigger {
	var heard []mountspec.Trigger
	seen := map[mountspec.Trigger]bool{}
	for i, t := range []mountspec.Trigger{s.Commit.On, s.Push.On, s.Pull.On} {
		t = t.Resolve()
		_, _, idle := t.Templated()
		changes := t == mountspec.EventDelete || t == mountspec.EventWrite && i > 0
		if !seen[t] && (idle || changes) {
			heard, seen[t] = append(heard, t), true
		}
	}
	return heard
}

// isOfTurn lists the events that only happen within a turn: a manifest that names one
// as the time to pull wants it within the turn.
func isOfTurn(e mountspec.Trigger) bool {
	switch e {
	case mountspec.EventTurnStart, mountspec.EventToolCall, mountspec.EventToolResult, mountspec.EventToolError, mountspec.EventWrite, mountspec.EventDelete:
		return true
	}
	return false
}

// isEnd lists the events after which another user may look at the changes.
func isEnd(e mountspec.Trigger) bool {
	return e == mountspec.EventTurnEnd || e == mountspec.EventTurnError || e == mountspec.EventConversationEnd || e == mountspec.EventWorkspaceClose
}

// isOfStorage lists the events that a working copy's own work emits.
func isOfStorage(e mountspec.Trigger) bool {
	switch e {
	case mountspec.EventPullStarted, mountspec.EventPullCompleted, mountspec.EventPullFailed, mountspec.EventCommitCompleted, mountspec.EventPushCompleted:
		return true
	}
	return false
}
