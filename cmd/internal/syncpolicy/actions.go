package syncpolicy

import (
	"time"

	"github.com/wsmount/wsmount/mountspec"
)

// State has the facts, beside the sync block and the event, that the actions depend on.
type State struct {
	ReadOnly     bool
	WriteThrough bool // each close waits for the store, which has nothing to commit
	InTurn       bool // between turn-start and turn-end
	Dirty        bool // there are changes that are not committed

	PullOwed  bool          // a pull was put off
	PullFails bool          // the last one failed
	PullDue   bool          // and the time to try again has come
	Used      bool          // programs have used the tree since the last pull
	Age       time.Duration // since the last pull

	Unpushed       bool // there are commits that the remote does not have
	PushBegun      bool // and a push of them was begun, in this mount or in the one before
	PushDue        bool // the time to try a push again has come
	PullRequestDue bool // a pushed branch lacks its pull request, and it is time to try
}

// How long the first attempt waits that is made again, and the longest wait.
const (
	FirstPause = time.Second // a service that only starts again is back soon
	LastPause  = 10 * time.Minute
)

// Actions lists the actions of a working copy after an event:
//
//	event               commit                  push                       pull
//	told: commit.on     commits                 -                          -
//	told: push.on       -                       pushes                     -
//	told: pull.on       -                       -                          pulls; in a turn only if the event is one of the turn
//	told: any           -                       -                          if one is owed, and no turn is under way
//	commit, if it does  -                       if push.on is per-commit   if pull.on is per-commit
//	push, if it does    -                       -                          if pull.on names it
//	noticed             after the batch window, as if told then
//	tick                -                       if one is due              if one is owed, or due again, or the TTL is over and the tree is used
//	looked              -                       -                          if one is owed, or the TTL is over
//	asked               what is asked for, whatever the sync block says; a commit that is waited for also pushes if push.on is per-commit
//	leaves its branch   unless commit.on manual unless push.on manual      -
//	took back           commits again           -                          -
//	failed              -                       tried again after a pause that doubles
//	unmount             unless commit.on manual push.on workspace-close    -
//	                                            or per-commit, or begun
//
// Nothing is done for an event named manual, which is a user's word; a file that is
// written is committed by the working copy itself; an event of the storage never commits;
// a read-only copy only pulls; a look waits for no pull that would bring nothing, or
// that has just failed; only the mode pull-push pushes and pulls by itself; and a
// copy whose closes wait for the store has each change on its way already: it commits at the end
// of a turn or of more, and where a push is asked for, to say what the store lacks.
func Actions(s mountspec.Sync, e Event, state State) []Action {
	r := rules{s, state}
	if state.WriteThrough {
		if list, decided := r.writeThrough(e); decided {
			return list
		}
	}
	switch e.Kind {
	case Told:
		return r.told(e.Name.Resolve())
	case Noticed:
		return []Action{{Do: Wait, For: r.sync.Commit.Batch}}
	case Tick:
		return r.tick()
	case Looked:
		return r.looked()
	case AskedPull:
		return []Action{{Do: Pull}}
	case AskedCommit:
		return r.askedCommit(e.NoWait)
	case AskedPush:
		return r.asked(r.push(0))
	case AskedPullRequest:
		return r.asked(Action{Do: Push, PullRequest: Require})
	case LeavesBranch:
		return r.leavesBranch()
	case TookBack:
		return r.tookBack()
	case Failed:
		return r.failed(e.Failure)
	case Unmount:
		return r.unmount()
	}
	return nil
}

// PushesCommits reports whether each commit is pushed by itself.
func PushesCommits(s mountspec.Sync, readOnly bool) bool {
	return rules{s, State{ReadOnly: readOnly}}.pushesOn(mountspec.EventCommitCompleted)
}

// OwesPush reports whether commits that the remote does not have are to be pushed now
// by themselves: each commit is, or a push of them was begun.
func OwesPush(s mountspec.Sync, state State) bool {
	r := rules{s, state}
	return state.Unpushed && r.sends() && !isOn(s.Push.On, mountspec.EventManual) && (PushesCommits(s, false) || state.PushBegun)
}

// rules are a sync block and the state in which it is asked.
type rules struct {
	sync  mountspec.Sync
	state State
}

// isOn reports whether a trigger of the sync block names an event.
func isOn(on, event mountspec.Trigger) bool { return event != "" && on.Resolve() == event }

// sends reports whether commits ever leave by themselves.
func (r rules) sends() bool { return r.sync.Mode == mountspec.ModePullPush && !r.state.ReadOnly }

func (r rules) pushesOn(event mountspec.Trigger) bool {
	return r.sends() && event != mountspec.EventManual && isOn(r.sync.Push.On, event)
}

func (r rules) pullsOn(event mountspec.Trigger) bool {
	return r.sync.Mode == mountspec.ModePullPush && event != mountspec.EventManual && isOn(r.sync.Pull.On, event)
}

func (r rules) commitsOn(event mountspec.Trigger) bool {
	switch {
	case r.state.ReadOnly, isOfStorage(event), event == mountspec.EventWrite, event == mountspec.EventManual:
		return false
	case event == mountspec.EventWorkspaceClose:
		return r.commitsAtEnd()
	}
	return isOn(r.sync.Commit.On, event)
}

// commitsAtEnd reports whether the remaining changes are committed when no later event would do it.
func (r rules) commitsAtEnd() bool {
	return !r.state.ReadOnly && !isOn(r.sync.Commit.On, mountspec.EventManual)
}

// push is one by the sync block.
func (r rules) push(when Condition) Action {
	a := Action{Do: Push, If: when}
	if r.sync.Push.PR == mountspec.PRAuto {
		a.PullRequest = Attempt
	}
	return a
}

// writeThrough has the actions of a copy whose closes wait for the store; decided is false where
// they are those of all other copies. It commits the changes that the store has not taken yet,
// which reports why.
func (r rules) writeThrough(e Event) (list []Action, decided bool) {
	switch e.Kind {
	case AskedPush:
		return r.asked(Action{Do: Commit}), true
	case Unmount:
		return []Action{{Do: Drain}}, true
	case Noticed:
		return nil, true
	case Told:
		if !r.state.ReadOnly && isEnd(e.Name.Resolve()) {
			list = []Action{{Do: Commit, Message: FromCaller}}
		}
		return list, true
	}
	return nil, false
}

func (r rules) told(event mountspec.Trigger) (list []Action) {
	commits := r.commitsOn(event)
	if commits {
		list = append(list, Action{Do: Commit, Message: FromCaller})
	}
	switch {
	case r.pushesOn(event):
		list = append(list, r.push(0))
	case commits && r.pushesOn(mountspec.EventCommitCompleted):
		list = append(list, r.push(Unpushed))
	}
	return append(list, r.pulls(event)...)
}

// pulls are the pulls for an event, and for those that the storage emits because of it.
func (r rules) pulls(event mountspec.Trigger) []Action {
	if r.sync.Mode != mountspec.ModePullPush {
		return nil
	}
	var after Condition
	if r.pullsOn(mountspec.EventCommitCompleted) {
		after |= Committed
	}
	if r.pullsOn(mountspec.EventPushCompleted) {
		after |= Pushed
	}
	switch wanted := r.pullsOn(event); {
	case wanted && (!r.state.InTurn || isOfTurn(event)):
		return []Action{{Do: Pull}}
	case !r.state.InTurn:
		return []Action{{Do: Pull, If: after | PullOwed}}
	case wanted:
		return []Action{{Do: PutOff}}
	case after != 0:
		return []Action{{Do: PutOff, If: after}}
	}
	return nil
}

// tick sends before it pulls: a pull waits for the next tick then.
func (r rules) tick() []Action {
	switch {
	case r.sync.Mode != mountspec.ModePullPush:
		return nil
	case r.state.PushDue && OwesPush(r.sync, r.state):
		if PushesCommits(r.sync, r.state.ReadOnly) {
			return r.told(mountspec.EventCommitCompleted)
		}
		return []Action{r.push(0)}
	case r.state.PullRequestDue && r.sends():
		return []Action{{Do: Propose}}
	case r.state.InTurn, isOn(r.sync.Pull.On, mountspec.EventManual), r.state.PullFails && (!r.state.PullDue || r.state.Dirty):
		return nil
	case r.state.PullFails, r.state.PullOwed && !r.state.Dirty, r.state.Used && r.state.Age >= r.sync.Pull.TTL:
		return []Action{{Do: Pull}}
	}
	return nil
}

// looked pulls where the known state is too old to be shown. Changes that are not committed
// keep out pushes of others anyway.
func (r rules) looked() []Action {
	switch {
	case r.sync.Mode != mountspec.ModePullPush, r.state.InTurn, isOn(r.sync.Pull.On, mountspec.EventManual), r.state.Dirty, r.state.PullFails:
		return nil
	case r.state.PullOwed, r.state.Age >= r.sync.Pull.TTL:
		return []Action{{Do: Pull}}
	}
	return nil
}

// LooksPull reports whether a look at the tree may wait for a pull.
func LooksPull(s mountspec.Sync) bool { return len(rules{s, State{PullOwed: true}}.looked()) > 0 }

// asked are the actions that a user asked for, or Refuse in a read-only copy.
func (r rules) asked(list ...Action) []Action {
	if r.state.ReadOnly {
		return []Action{{Do: Refuse}}
	}
	return list
}

// askedCommit pushes its commit where each commit is pushed: a caller that waits for one
// wants others to see it.
func (r rules) askedCommit(noWait bool) []Action {
	commit := Action{Do: Commit, Message: FromCaller}
	if noWait || !r.pushesOn(mountspec.EventCommitCompleted) {
		return r.asked(commit, Action{Do: Pull, If: PullOwed})
	}
	return r.asked(append([]Action{commit, r.push(Unpushed)}, r.pulls("")...)...)
}

func (r rules) leavesBranch() (list []Action) {
	if r.state.Dirty && r.commitsAtEnd() {
		list = append(list, Action{Do: Commit})
	}
	if r.sends() && !isOn(r.sync.Push.On, mountspec.EventManual) {
		list = append(list, r.push(Unpushed))
	}
	return list
}

func (r rules) tookBack() []Action {
	if r.state.ReadOnly || !r.state.Dirty {
		return nil
	}
	return []Action{{Do: Commit}}
}

func (r rules) failed(f Failure) []Action {
	last := LastPause
	switch {
	case f.Pull && r.sync.Mode == mountspec.ModePullPush:
		last = min(LastPause, max(r.sync.Pull.TTL, FirstPause))
	case !r.sends():
		return nil
	}
	pause := min(max(2*f.Waited, FirstPause), last)
	if f.Lasting {
		pause = last
	}
	return []Action{{Do: Wait, For: max(pause, f.Wants)}}
}

func (r rules) unmount() (list []Action) {
	if r.commitsAtEnd() {
		list = append(list, Action{Do: Commit})
	}
	list = append(list, Action{Do: Drain})
	switch {
	case !r.sends() || isOn(r.sync.Push.On, mountspec.EventManual):
	case r.pushesOn(mountspec.EventWorkspaceClose):
		list = append(list, r.push(0))
	case r.pushesOn(mountspec.EventCommitCompleted):
		list = append(list, r.push(Unpushed))
	default:
		list = append(list, r.push(PushBegun))
	}
	return list
}
