package syncpolicy

import (
	"fmt"
	"strings"
	"time"
)

// An Action is one step. Those of one event are done in their order; that one
// fails keeps none of the others from it.
type Action struct {
	Do          Verb
	If          Condition     // any of it; 0: in any case
	Message     Message       // of a commit
	PullRequest PullRequest   // of a push
	For         time.Duration // of Wait
}

// Verb is the kind of an Action.
type Verb uint8

const (
	// Commit makes a commit of the changes.
	Commit Verb = iota + 1
	// Push sends the commits to the branch that they belong to.
	Push
	// Pull brings commits that others have pushed.
	Pull
	// PutOff notes that a pull is owed, for when the turn has ended.
	PutOff
	// Propose opens the pull requests that could not be opened with their push.
	Propose
	// Drain waits until the writes of programs are where policy wants them.
	Drain
	// Wait follows the event again after a time, or retries the failed action.
	Wait
	// Refuse answers a request that must not be done: the working copy is read-only.
	Refuse
)

var verbs = [...]string{Commit: "commit", Push: "push", Pull: "pull", PutOff: "put a pull off", Propose: "propose", Drain: "drain", Wait: "wait", Refuse: "refuse"}

func (v Verb) String() string { return verbs[v] }

// A Condition depends on the results of earlier actions.
type Condition uint8

const (
	// Committed: a commit was made.
	Committed Condition = 1 << iota
	// Pushed: a push has sent commits.
	Pushed
	// PullOwed: a pull was put off, and nothing keeps it any more.
	PullOwed
	// Unpushed: there are commits that the remote does not have.
	Unpushed
	// PushBegun: there are, and a push of them was begun.
	PushBegun
)

func (c Condition) String() string {
	var names []string
	for i, name := range []string{"committed", "pushed", "owed", "unpushed", "push begun"} {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// Message is the source of a commit's message.
type Message uint8

const (
	// FromTemplate is the manifest's message_template, with nothing of the event.
	FromTemplate Message = iota
	// FromCaller are the caller's own words, or the template with its summary.
	FromCaller
)

// PullRequest says whether a push opens a pull request.
type PullRequest uint8

const (
	// NoPullRequest: only the push is done.
	NoPullRequest PullRequest = iota
	// Attempt opens one; that it cannot be opened is no failure of the push, and is
	// tried again.
	Attempt
	// Require opens one, or says why there is none.
	Require
)

// String says it as a table does: "commit in the caller's words", "push if unpushed".
func (a Action) String() string {
	text := a.Do.String()
	if a.Do == Commit && a.Message == FromCaller {
		text += " in the caller's words"
	}
	if a.PullRequest != NoPullRequest {
		text += [...]string{Attempt: " and propose", Require: " and require a pull request"}[a.PullRequest]
	}
	if a.Do == Wait {
		text += fmt.Sprintf(" %v", a.For)
	}
	if a.If != 0 {
		text += " if " + a.If.String()
	}
	return text
}
