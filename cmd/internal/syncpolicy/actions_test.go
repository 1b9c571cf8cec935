package syncpolicy

import (
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
)

const (
	turnStart, turnEnd = mountspec.EventTurnStart, mountspec.EventTurnEnd
	opening, closing   = mountspec.EventWorkspaceOpen, mountspec.EventWorkspaceClose
	commit, push       = mountspec.EventCommitCompleted, mountspec.EventPushCompleted
	manual, write      = mountspec.EventManual, mountspec.EventWrite
	end                = mountspec.EventConversationEnd
)

// block is a sync block with mode pull-push.
func block(commit, push, pull mountspec.Trigger) mountspec.Sync {
	s := mountspec.Sync{Mode: mountspec.ModePullPush}
	s.Commit.On, s.Push.On, s.Pull.On = commit, push, pull
	s.Commit.Batch, s.Pull.TTL = 5*time.Second, time.Minute
	return s
}

// with changes a sync block.
func with(s mountspec.Sync, change func(*mountspec.Sync)) mountspec.Sync {
	change(&s)
	return s
}

func inMode(m mountspec.Mode) func(*mountspec.Sync) {
	return func(s *mountspec.Sync) { s.Mode = m }
}

func withPulls(p mountspec.PRPolicy) func(*mountspec.Sync) {
	return func(s *mountspec.Sync) { s.Push.Branch, s.Push.PR = mountspec.BranchPerConversation, p }
}

func text(list []Action) string {
	var all []string
	for _, a := range list {
		all = append(all, a.String())
	}
	return strings.Join(all, ", ")
}

// Each row is a rule; where it is one of a document, that is named.
func TestActions(t *testing.T) {
	var (
		usual     = block(turnEnd, end, opening)
		all       = block(turnEnd, turnEnd, turnEnd)
		byHand    = block(manual, manual, manual)
		canonical = with(all, inMode(mountspec.ModeCanonical))
		watched   = with(all, inMode(mountspec.ModeWatch))
		auto      = with(block(turnEnd, commit, opening), withPulls(mountspec.PRAuto))
		inTurn    = State{InTurn: true}
		readOnly  = State{ReadOnly: true, Dirty: true, Unpushed: true, PushBegun: true, PushDue: true, PullRequestDue: true}
		through   = State{WriteThrough: true, Dirty: true}
		unpushed  = State{Unpushed: true, PushDue: true}
		begun     = State{Unpushed: true, PushBegun: true, PushDue: true}
	)
	for _, c := range []struct {
		rule  string
		sync  mountspec.Sync
		event Event
		state State
		want  string
	}{
		{"AIP-35, sync semantics, pull-push: per-turn flushes at turn-end", usual, On(turnEnd), State{}, "commit in the caller's words, pull if owed"},
		{"AIP-35, the same: each trigger may be an alias", block("per-turn", "per-conversation", manual), On(turnEnd), State{}, "commit in the caller's words, pull if owed"},
		{"AIP-35, the same: per-conversation at conversation-end", block(end, manual, manual), On(end), State{}, "commit in the caller's words, pull if owed"},
		{"AIP-35, the same: per-turn leaves the conversation's end alone", block(turnEnd, manual, manual), On(end), State{}, "pull if owed"},
		{"AIP-35, the same: pushes honour push.on independently", usual, On(end), State{}, "push, pull if owed"},
		{"AIP-35, the same: reads honour pull.on", usual, On(opening), State{}, "pull"},
		{"AIP-35, the storage block: on may be any event", block("acme:deploy", manual, manual), On("acme:deploy"), State{}, "commit in the caller's words, pull if owed"},
		{"AIP-35, the storage block: an event that no trigger names", usual, On(mountspec.EventToolCall), inTurn, ""},
		{"AIP-35, the storage block: push on per-commit", block(turnEnd, "per-commit", opening), On(turnEnd), State{}, "commit in the caller's words, push if unpushed, pull if owed"},
		{"AIP-35, the storage block: one event for all three, in this order", all, On(turnEnd), State{}, "commit in the caller's words, push, pull"},
		{"AIP-35, the storage block: batch_window_ms gathers changes", block(write, write, manual), Event{Kind: Noticed, Name: write}, State{}, "wait 5s"},
		{"AIP-35, the same: then they are followed once", block(write, write, manual), On(write), State{}, "push, pull if owed"},
		{"AIP-35, the storage block: pr_policy auto", auto, On(turnEnd), State{}, "commit in the caller's words, push and propose if unpushed, pull if owed"},
		{"AIP-35, the storage block: pr_policy manual waits for a user", with(auto, withPulls(mountspec.PRManual)), On(turnEnd), State{}, "commit in the caller's words, push if unpushed, pull if owed"},

		// What a commit and a push make the storage emit (AIP-37, ADAPTER).
		{"storage-commit-completed pushes", block(turnEnd, commit, opening), On(commit), State{}, "push, pull if owed"},
		{"storage-commit-completed pulls", block(turnEnd, end, commit), On(turnEnd), State{}, "commit in the caller's words, pull if committed or owed"},
		{"storage-push-completed pulls", block(turnEnd, commit, push), On(turnEnd), State{}, "commit in the caller's words, push if unpushed, pull if pushed or owed"},
		{"what the storage emits never commits", block(commit, manual, manual), On(commit), State{Dirty: true}, "pull if owed"},

		// In a turn nothing comes that the manifest does not want there.
		{"an event of the turn pulls in it", block(turnEnd, end, turnStart), On(turnStart), inTurn, "pull"},
		{"another one pulls after it", block(turnEnd, end, end), On(end), inTurn, "push, put a pull off"},
		{"so does a push", block(turnEnd, commit, push), On(turnStart), inTurn, "put a pull off if pushed"},
		{"and a commit", block(end, commit, commit), On(end), inTurn, "commit in the caller's words, push if unpushed, put a pull off if committed"},
		{"what is owed waits for the end of the turn", usual, On(mountspec.EventToolCall), State{InTurn: true, PullOwed: true}, ""},

		// Manual is a user's word (AIP-35: "only on explicit flush").
		{"nothing follows an event of this name", byHand, On(manual), State{Dirty: true}, "pull if owed"},
		{"nor time", byHand, Event{Kind: Tick}, State{Used: true, Age: time.Hour, Unpushed: true, PushBegun: true, PushDue: true}, ""},
		{"nor an unmount, which keeps what is unsaved", byHand, Event{Kind: Unmount}, State{Dirty: true, Unpushed: true, PushBegun: true}, "drain"},
		{"a user's pull", byHand, Event{Kind: AskedPull}, inTurn, "pull"},
		{"a user's commit, after which an owed pull can be done", byHand, Event{Kind: AskedCommit}, State{}, "commit in the caller's words, pull if owed"},
		{"a user's commit, where each is pushed", block(turnEnd, commit, push), Event{Kind: AskedCommit}, State{}, "commit in the caller's words, push if unpushed, pull if pushed or owed"},
		{"one whose push is not waited for", block(turnEnd, commit, push), Event{Kind: AskedCommit, NoWait: true}, State{}, "commit in the caller's words, pull if owed"},
		{"a user's push", byHand, Event{Kind: AskedPush}, State{}, "push"},
		{"a user's push where pull requests are opened by themselves", auto, Event{Kind: AskedPush}, State{}, "push and propose"},
		{"a user's pull request", with(byHand, withPulls(mountspec.PRManual)), Event{Kind: AskedPullRequest}, State{}, "push and require a pull request"},

		// A working copy commits each write by itself.
		{"a file that is written", block(write, write, write), On(write), inTurn, "push, pull"},
		{"the end, when it commits each write", block(write, manual, manual), On(closing), State{}, "commit in the caller's words, pull if owed"},

		// AIP-35, ttl_seconds: cache validity.
		{"a tree that is used, after the TTL", usual, Event{Kind: Tick}, State{Used: true, Age: time.Minute}, "pull"},
		{"before it", usual, Event{Kind: Tick}, State{Used: true, Age: time.Minute - 1}, ""},
		{"a tree that nobody uses", usual, Event{Kind: Tick}, State{Age: time.Hour}, ""},
		{"a turn is under way", usual, Event{Kind: Tick}, State{InTurn: true, Used: true, Age: time.Hour, PullOwed: true}, ""},
		{"the machine has slept for days", usual, Event{Kind: Tick}, State{Used: true, Age: 72 * time.Hour}, "pull"},
		{"a pull that was put off", usual, Event{Kind: Tick}, State{PullOwed: true}, "pull"},
		{"and still cannot be done", usual, Event{Kind: Tick}, State{PullOwed: true, Dirty: true}, ""},
		{"a pull that failed", usual, Event{Kind: Tick}, State{Used: true, Age: time.Hour, PullFails: true}, ""},
		{"it is tried again, whether the tree is used or not", usual, Event{Kind: Tick}, State{PullFails: true, PullDue: true}, "pull"},
		{"unless it would bring nothing", usual, Event{Kind: Tick}, State{PullFails: true, PullDue: true, Dirty: true}, ""},
		{"a program looks at the tree after the TTL", usual, Event{Kind: Looked}, State{Age: time.Minute}, "pull"},
		{"it looks within the TTL", usual, Event{Kind: Looked}, State{Age: time.Minute - 1}, ""},
		{"it looks in a turn", usual, Event{Kind: Looked}, State{InTurn: true, Age: time.Hour, PullOwed: true}, ""},
		{"it looks when a pull is owed", usual, Event{Kind: Looked}, State{PullOwed: true}, "pull"},
		{"it does not wait where a pull would bring nothing", usual, Event{Kind: Looked}, State{Dirty: true, PullOwed: true, Age: time.Hour}, ""},
		{"nor for a remote that does not answer", usual, Event{Kind: Looked}, State{PullFails: true, PullDue: true, Age: time.Hour}, ""},
		{"nor where a pull is a user's word", byHand, Event{Kind: Looked}, State{PullOwed: true, Age: time.Hour}, ""},
		{"a program looks at a read-only copy", usual, Event{Kind: Looked}, State{ReadOnly: true, Age: time.Hour}, "pull"},
		{"a program looks at a canonical store", canonical, Event{Kind: Looked}, State{Age: time.Hour}, ""},

		// What was committed in the background, or could not be sent.
		{"each commit is pushed", block(write, commit, push), Event{Kind: Tick}, unpushed, "push, pull if pushed or owed"},
		{"a push that was begun", usual, Event{Kind: Tick}, begun, "push"},
		{"one that nobody has asked for", usual, Event{Kind: Tick}, unpushed, ""},
		{"the pause is not over", usual, Event{Kind: Tick}, State{Unpushed: true, PushBegun: true}, ""},
		{"a pull request is missing", auto, Event{Kind: Tick}, State{PullRequestDue: true, Used: true, Age: time.Hour}, "propose"},
		{"the push comes first", auto, Event{Kind: Tick}, State{PullRequestDue: true, Unpushed: true, PushDue: true}, "push and propose, pull if owed"},
		{"the first failure", usual, Event{Kind: Failed}, State{}, "wait 1s"},
		{"the pauses double", usual, Event{Kind: Failed, Failure: Failure{Waited: 4 * time.Second}}, State{}, "wait 8s"},
		{"up to a limit", usual, Event{Kind: Failed, Failure: Failure{Waited: 9 * time.Minute}}, State{}, "wait 10m0s"},
		{"what will hardly go away", usual, Event{Kind: Failed, Failure: Failure{Lasting: true}}, State{}, "wait 10m0s"},
		{"a pull is tried again within the TTL", usual, Event{Kind: Failed, Failure: Failure{Pull: true, Waited: 50 * time.Second}}, State{ReadOnly: true}, "wait 1m0s"},
		{"also one that will hardly go better", usual, Event{Kind: Failed, Failure: Failure{Pull: true, Lasting: true}}, State{}, "wait 1m0s"},
		{"the service wants to be left alone", usual, Event{Kind: Failed, Failure: Failure{Wants: time.Hour}}, State{}, "wait 1h0m0s"},

		// AIP-35, branch_policy: each branch gets what is its own.
		{"changes and commits of the branch before", usual, Event{Kind: LeavesBranch}, State{Dirty: true}, "commit, push if unpushed"},
		{"only commits", usual, Event{Kind: LeavesBranch}, State{}, "push if unpushed"},
		{"commits that a pull made changes again", byHand, Event{Kind: TookBack}, State{Dirty: true}, "commit"},
		{"it made none", byHand, Event{Kind: TookBack}, State{}, ""},

		{"an unmount", usual, Event{Kind: Unmount}, State{}, "commit, drain, push if push begun"},
		{"an unmount where each commit is pushed", auto, Event{Kind: Unmount}, State{}, "commit, drain, push and propose if unpushed"},
		{"an unmount that is the time to push", block(write, closing, closing), Event{Kind: Unmount}, State{}, "commit, drain, push"},

		// AIP-35, conformance rule 5: read_only.
		{"a read-only copy pulls", all, On(turnEnd), readOnly, "pull"},
		{"and is left in peace at the end", all, On(closing), readOnly, "pull if owed"},
		{"nor at an unmount", all, Event{Kind: Unmount}, readOnly, "drain"},
		{"a user's commit is refused", all, Event{Kind: AskedCommit}, readOnly, "refuse"},

		// AIP-35, sync semantics, canonical: the triggers are ignored. Who tells of an end is told
		// what the store lacks.
		{"a store whose closes wait", canonical, On(turnStart), through, ""},
		{"the end of a turn in it", canonical, On(turnEnd), through, "commit in the caller's words"},
		{"whatever its triggers are", with(byHand, inMode(mountspec.ModeCanonical)), On(end), through, "commit in the caller's words"},
		{"a push in it", canonical, Event{Kind: AskedPush}, through, "commit"},
		{"the end of one that is read", canonical, On(turnEnd), State{WriteThrough: true, ReadOnly: true}, ""},
		{"a change in it", canonical, Event{Kind: Noticed, Name: write}, through, ""},
		{"its unmount", canonical, Event{Kind: Unmount}, through, "drain"},
		{"with write-back, commit.on counts", canonical, On(turnEnd), State{}, "commit in the caller's words"},
		{"and the end", canonical, Event{Kind: Unmount}, State{}, "commit, drain"},
		{"a user's pull asks the store", canonical, Event{Kind: AskedPull}, through, "pull"},
		{"a directory that is watched is pulled by nobody", watched, Event{Kind: Tick}, State{Used: true, Age: time.Hour}, ""},
	} {
		assert.Equal(t, text(Actions(c.sync, c.event, c.state)), c.want, c.rule)
	}
}

// Idle times and changes are waited for, each once; a file that is written only for what
// the working copy does not do by itself.
func TestHeard(t *testing.T) {
	for _, c := range []struct {
		sync mountspec.Sync
		want []mountspec.Trigger
	}{
		{block(turnEnd, commit, opening), nil},
		{block("each-write", commit, manual), nil},
		{block("each-write", "each-write", write), []mountspec.Trigger{write}},
		{block("delete", "idle-300", "idle-300"), []mountspec.Trigger{"delete", "idle-300"}},
		{block("conversation-idle-600", manual, manual), []mountspec.Trigger{"conversation-idle-600"}},
	} {
		assert.Slice(t, Heard(c.sync), c.want, c.sync.Commit.On, c.sync.Push.On, c.sync.Pull.On)
	}
}

// Who reads when it is has not read the manifest's vocabulary.
func TestWhen(t *testing.T) {
	for trigger, want := range map[mountspec.Trigger]string{
		"":            "never",
		"each-write":  "soon after each change",
		"per-commit":  "with each commit",
		"manual":      "not by you",
		"idle-90":     "after 1m30s of quiet",
		"per-turn":    `at "turn-end"`,
		"acme:review": `at "acme:review"`,
	} {
		assert.Contains(t, When(trigger), want, trigger)
	}
}
