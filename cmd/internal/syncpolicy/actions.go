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

// Actions lists the actions of a working copy after an event: of each part of the table the first
// line that fits, in the order of the parts. "it" is the event that was told. A copy "sends" if its
// mode is pull-push and it is not read-only. An "exchange" is an event that was told to a copy
// without write-through, a commit that is asked for and pushed, or a tick that pushes each commit;
// then "it" is the completed commit.
//
//	event              and                                                   then
//	told               write-through, an end, not read-only                  commit in the caller's words
//	told               write-through                                         -
//	told               read-only                                             -
//	told               of the storage                                        -
//	told               write                                                 -
//	told               manual                                                -
//	told               workspace-close, commit.on not manual                 commit in the caller's words
//	told               commit.on it                                          commit in the caller's words
//	asked to send      read-only                                             refuse
//	asked to commit                                                          commit in the caller's words
//	asked to push      write-through                                         commit
//	leaves its branch  dirty, not read-only, commit.on not manual            commit
//	took back          dirty, not read-only                                  commit
//	unmount            write-through                                         -
//	unmount            not read-only, commit.on not manual                   commit
//
//	unmount                                                                  drain
//
//	told               write-through                                         -
//	told               manual                                                -
//	told               sends, push.on it                                     push
//	told               sends, commits, push.on per-commit                    push if unpushed
//	tick               sends, unpushed, push due, push.on per-commit         push
//	tick               sends, unpushed, push due, begun, push.on not manual  push
//	tick               sends, pull request due                               propose
//	asked to send      read-only                                             -
//	asked to commit    sends, waits, push.on per-commit                      push if unpushed
//	asked to push      not write-through                                     push
//	asked to propose                                                         push and require a pull request
//	leaves its branch  sends, push.on not manual                             push if unpushed
//	unmount            write-through                                         -
//	unmount            sends, push.on workspace-close                        push
//	unmount            sends, push.on per-commit                             push if unpushed
//	unmount            sends, push.on not manual                             push if push begun
//
//	exchange           not pull-push                                         -
//	exchange           not manual, pull.on it, not in turn                   pull
//	exchange           not manual, pull.on it, of the turn                   pull
//	exchange           not manual, pull.on it                                put a pull off
//	exchange           pull.on per-commit, in turn                           put a pull off if committed
//	exchange           pull.on storage-push-completed, in turn               put a pull off if pushed
//	exchange           in turn                                               -
//	exchange           pull.on per-commit                                    pull if committed or owed
//	exchange           pull.on storage-push-completed                        pull if pushed or owed
//	exchange                                                                 pull if owed
//	noticed            not write-through                                     wait
//	tick               pushes                                                -
//	tick               not pull-push                                         -
//	tick               in turn                                               -
//	tick               pull.on manual                                        -
//	tick               failing, due, not dirty                               pull
//	tick               failing                                               -
//	tick               owed, not dirty                                       pull
//	tick               used, old                                             pull
//	looked             not pull-push                                         -
//	looked             in turn                                               -
//	looked             pull.on manual                                        -
//	looked             dirty                                                 -
//	looked             failing                                               -
//	looked             owed                                                  pull
//	looked             old                                                   pull
//	asked to pull                                                            pull
//	asked to commit    not read-only                                         pull if owed
//	failed             pull-push, of a pull                                  wait
//	failed             sends                                                 wait
//
// An event named manual is a user's word; a file that is written is committed by the working copy
// itself; a look waits for no pull that would bring nothing, or that has just failed. A copy whose
// closes wait for the store has each change on its way already: it commits at the end of a turn or
// of more, and where a push is asked for, to say what the store lacks. A push proposes too where the
// sync block has pull requests opened by themselves. The pauses after a failure double.
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
