package daemon

import "github.com/wsmount/wsmount/mountspec"

// actions are what a sync block does because of an event, in this order. The zero value
// is nothing.
type actions struct {
	commit      bool
	push        bool
	pushCommits bool // what the commit made, if anything
	pull        timing
	pullCommits timing // if something was committed
	pullPushes  timing // if something was pushed
}

// timing says when a pull is done.
type timing uint8

const (
	never     timing = iota
	afterTurn        // it is put off until the turn under way has ended
	now
)

// syncState is what the actions depend on beside the sync block and the event.
type syncState struct {
	readOnly bool
	inTurn   bool // between turn-start and turn-end
}

// actionsFor says what a sync block does because of an event (AIP-35, "Sync"; AIP-37):
//
//	event                  commit                  push                  pull
//	commit.on              commits                 -                     -
//	push.on                -                       pushes                -
//	pull.on                -                       -                     pulls; in a turn only if the event is one of the turn
//	workspace-close        unless commit.on manual if it is push.on      if it is pull.on
//	commit, if it commits  -                       if push.on is         if pull.on is
//	push, if it pushes     -                       -                     if pull.on is
//
// Nothing is done for an event named manual, which is a person's word; a file that is
// written is committed by the working copy itself; a read-only copy only pulls; and
// only a sync block with mode pull-push pushes and pulls.
func actionsFor(s mountspec.Sync, event mountspec.Trigger, state syncState) actions {
	is := func(on, event mountspec.Trigger) bool { return event != mountspec.EventManual && on.Resolve() == event }
	pulls := func(event mountspec.Trigger) timing {
		switch {
		case s.Mode != mountspec.ModePullPush || !is(s.Pull.On, event):
			return never
		case state.inTurn && !insideTurn(event):
			return afterTurn
		}
		return now
	}
	pushes := func(event mountspec.Trigger) bool {
		return s.Mode == mountspec.ModePullPush && !state.readOnly && is(s.Push.On, event)
	}
	a := actions{push: pushes(event), pull: pulls(event),
		pullCommits: pulls(mountspec.EventCommitCompleted), pullPushes: pulls(mountspec.EventPushCompleted)}
	switch {
	case state.readOnly:
	case event == mountspec.EventWorkspaceClose:
		a.commit = s.Commit.On.Resolve() != mountspec.EventManual
	default:
		a.commit = event != mountspec.EventWrite && is(s.Commit.On, event)
	}
	a.pushCommits = a.commit && pushes(mountspec.EventCommitCompleted)
	return a
}

// insideTurn lists the events that only happen within a turn: a manifest that names one
// as the time to pull wants it there.
func insideTurn(e mountspec.Trigger) bool {
	switch e {
	case mountspec.EventTurnStart, mountspec.EventToolCall, mountspec.EventToolResult, mountspec.EventToolError, mountspec.EventWrite, mountspec.EventDelete:
		return true
	}
	return false
}
