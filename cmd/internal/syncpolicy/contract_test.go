package syncpolicy

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/mountspec"
)

// question is what Actions is asked, and the answer of the parts of the table so far.
type question struct {
	sync   mountspec.Sync
	event  Event
	state  State
	answer []string
}

// does reports whether an earlier part has such an action.
func (q *question) does(verbs ...string) bool {
	return slices.ContainsFunc(q.answer, func(a string) bool {
		verb, _, _ := strings.Cut(a, " ")
		return slices.Contains(verbs, verb)
	})
}

// it is the event that triggers are compared with.
func (q *question) it() mountspec.Trigger {
	switch q.event.Kind {
	case Told:
		return q.event.Name.Resolve()
	case Tick:
		return commit
	}
	return ""
}

func (q *question) sends() bool {
	return q.sync.Mode == mountspec.ModePullPush && !q.state.ReadOnly
}

// on reports whether a trigger of the sync block is an event.
func on(trigger, event mountspec.Trigger) bool { return event != "" && trigger.Resolve() == event }

// events are the words of the first column.
var events = map[string]func(*question) bool{
	"told":              func(q *question) bool { return q.event.Kind == Told },
	"noticed":           func(q *question) bool { return q.event.Kind == Noticed },
	"tick":              func(q *question) bool { return q.event.Kind == Tick },
	"looked":            func(q *question) bool { return q.event.Kind == Looked },
	"asked to pull":     func(q *question) bool { return q.event.Kind == AskedPull },
	"asked to commit":   func(q *question) bool { return q.event.Kind == AskedCommit },
	"asked to push":     func(q *question) bool { return q.event.Kind == AskedPush },
	"asked to propose":  func(q *question) bool { return q.event.Kind == AskedPullRequest },
	"asked to send":     func(q *question) bool { return asksToSend(q.event) },
	"leaves its branch": func(q *question) bool { return q.event.Kind == LeavesBranch },
	"took back":         func(q *question) bool { return q.event.Kind == TookBack },
	"failed":            func(q *question) bool { return q.event.Kind == Failed },
	"unmount":           func(q *question) bool { return q.event.Kind == Unmount },
	"exchange": func(q *question) bool {
		switch q.event.Kind {
		case Told:
			return !q.state.WriteThrough
		case AskedCommit:
			return q.does("push")
		}
		return q.event.Kind == Tick && q.does("push") && on(q.sync.Push.On, commit)
	},
}

// conditions are the words of the second column; one with "not" in it says the opposite.
var conditions = map[string]func(*question) bool{
	"an end": func(q *question) bool {
		return slices.Contains([]mountspec.Trigger{turnEnd, "turn-error", end, closing}, q.it())
	},
	"of the storage": func(q *question) bool { return strings.HasPrefix(string(q.it()), "storage-") },
	"of the turn": func(q *question) bool {
		return slices.Contains([]mountspec.Trigger{turnStart, "tool-call", "tool-result", "tool-error", write, "delete"}, q.it())
	},
	"write":           func(q *question) bool { return q.it() == write },
	"manual":          func(q *question) bool { return q.it() == manual },
	"workspace-close": func(q *question) bool { return q.it() == closing },
	"waits":           func(q *question) bool { return !q.event.NoWait },
	"of a pull":       func(q *question) bool { return q.event.Failure.Pull },

	"pull-push":                      func(q *question) bool { return q.sync.Mode == mountspec.ModePullPush },
	"sends":                          (*question).sends,
	"commit.on it":                   func(q *question) bool { return on(q.sync.Commit.On, q.it()) },
	"commit.on manual":               func(q *question) bool { return on(q.sync.Commit.On, manual) },
	"push.on it":                     func(q *question) bool { return on(q.sync.Push.On, q.it()) },
	"push.on manual":                 func(q *question) bool { return on(q.sync.Push.On, manual) },
	"push.on per-commit":             func(q *question) bool { return on(q.sync.Push.On, commit) },
	"push.on workspace-close":        func(q *question) bool { return on(q.sync.Push.On, closing) },
	"pull.on it":                     func(q *question) bool { return on(q.sync.Pull.On, q.it()) },
	"pull.on manual":                 func(q *question) bool { return on(q.sync.Pull.On, manual) },
	"pull.on per-commit":             func(q *question) bool { return on(q.sync.Pull.On, commit) },
	"pull.on storage-push-completed": func(q *question) bool { return on(q.sync.Pull.On, push) },

	"read-only":        func(q *question) bool { return q.state.ReadOnly },
	"write-through":    func(q *question) bool { return q.state.WriteThrough },
	"in turn":          func(q *question) bool { return q.state.InTurn },
	"dirty":            func(q *question) bool { return q.state.Dirty },
	"owed":             func(q *question) bool { return q.state.PullOwed },
	"failing":          func(q *question) bool { return q.state.PullFails },
	"due":              func(q *question) bool { return q.state.PullDue },
	"used":             func(q *question) bool { return q.state.Used },
	"old":              func(q *question) bool { return q.state.Age >= q.sync.Pull.TTL },
	"unpushed":         func(q *question) bool { return q.state.Unpushed },
	"begun":            func(q *question) bool { return q.state.PushBegun },
	"push due":         func(q *question) bool { return q.state.PushDue },
	"pull request due": func(q *question) bool { return q.state.PullRequestDue },
	"commits":          func(q *question) bool { return q.does("commit") },
	"pushes":           func(q *question) bool { return q.does("push", "propose") },
}

// A line of the table.
type line struct {
	text, then string
	fits       []func(*question) bool
}

// parseLine reads columns that are two spaces apart.
func parseLine(t *testing.T, text string) line {
	t.Helper()
	columns := regexp.MustCompile(` {2,}`).Split(text, -1)
	l := line{text: text, then: columns[len(columns)-1]}
	event, ok := events[columns[0]]
	assert.Must(t, ok, "an event of the contract that says nothing:", text)
	l.fits = append(l.fits, event)
	for word := range strings.SplitSeq(strings.Join(columns[1:len(columns)-1], ""), ", ") {
		plain := strings.TrimPrefix(strings.Replace(" "+word, " not ", " ", 1), " ")
		is, ok := conditions[plain]
		switch {
		case word == "":
		case !ok:
			t.Fatal("a word of the contract that says nothing: ", word, " in ", text)
		case plain != word:
			l.fits = append(l.fits, func(q *question) bool { return !is(q) })
		default:
			l.fits = append(l.fits, is)
		}
	}
	return l
}

// parts are those of the table.
func parts(t *testing.T) (all [][]line) {
	t.Helper()
	_, table, _ := strings.Cut(string(assert.Of(os.ReadFile("actions.go")).OK(t)), "//\tevent ")
	table, _, _ = strings.Cut(table, "\n//\n// ")
	for part := range strings.SplitSeq(table, "\n//\n") {
		var lines []line
		for _, m := range regexp.MustCompile(`(?m)^//\t(.*)$`).FindAllStringSubmatch(part, -1) {
			lines = append(lines, parseLine(t, m[1]))
		}
		all = append(all, lines)
	}
	assert.Equal(t, len(all), 4, "parts of the table")
	return all
}

// answered is what the table answers; it counts the lines in used.
func (q *question) answered(parts [][]line, used map[string]bool) string {
	for p, lines := range parts {
		for _, l := range lines {
			if !slices.ContainsFunc(l.fits, func(is func(*question) bool) bool { return !is(q) }) {
				used[string(rune('1'+p))+l.text] = true
				if l.then != "-" {
					q.answer = append(q.answer, l.then)
				}
				break
			}
		}
	}
	return strings.Join(q.answer, ", ")
}

// withoutDetails is the answer without the length of a wait, and without the pull request of a push
// where the sync block has each opened.
func withoutDetails(s mountspec.Sync, list []Action) string {
	list = slices.Clone(list)
	for i := range list {
		a := &list[i]
		switch {
		case a.Do == Wait:
			return a.Do.String()
		case a.Do == Push && s.Push.PR == mountspec.PRAuto && a.PullRequest == Attempt:
			a.PullRequest = NoPullRequest
		case a.Do == Push && s.Push.PR == mountspec.PRAuto && a.PullRequest == NoPullRequest:
			return "no pull request with " + text(list)
		}
	}
	return text(list)
}

// Of any question the first line of each part of the contract that fits is the answer.
func TestFirstLinesThatFit(t *testing.T) {
	table, used, seed := parts(t), map[string]bool{}, tier.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	some := []mountspec.Trigger{turnStart, turnEnd, "per-turn", end, closing, commit, "per-commit", push, manual, write, "delete", "acme:deploy", ""}
	flip := func() bool { return r.IntN(2) == 0 }
	trigger := func() mountspec.Trigger { return some[r.IntN(len(some))] }
	for range tier.Pick(100_000, 2_000_000) {
		q := question{sync: block(trigger(), trigger(), trigger()), event: Event{Kind: Kind(r.IntN(int(Unmount) + 1)), Name: trigger(), NoWait: flip(), Failure: Failure{Pull: flip()}}}
		q.state = State{ReadOnly: r.IntN(4) == 0, WriteThrough: r.IntN(4) == 0, InTurn: flip(), Dirty: flip(), PullOwed: flip(), PullFails: flip(), PullDue: flip(), Used: flip(),
			Age: time.Duration(r.IntN(3)) * time.Minute / 2, Unpushed: flip(), PushBegun: flip(), PushDue: flip(), PullRequestDue: flip()}
		if r.IntN(4) == 0 {
			q.sync.Mode = mountspec.ModeCanonical
		}
		if flip() {
			q.sync.Push.PR = mountspec.PRAuto
		}
		got := withoutDetails(q.sync, Actions(q.sync, q.event, q.state))
		assert.Must(t, q.answered(table, used) == got, "seed", seed, "got", got, "and the table has", q.answer, "for", q.sync, q.event, q.state)
	}
	for p, lines := range table {
		for _, l := range lines {
			assert.True(t, used[string(rune('1'+p))+l.text], "a line that comes after one which is always of it:", l.text)
		}
	}
}
