package syncpolicy

import (
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/integration/testrun"
	"github.com/wsmount/wsmount/integration/tier"
	"github.com/wsmount/wsmount/mountspec"
)

func TestMain(m *testing.M) { os.Exit(testrun.Main(m)) }

var triggers = append(mountspec.StandardEvents(), append(mountspec.Aliases(), "idle-300", "conversation-idle-60", "acme:deploy")...)

func anySync() *rapid.Generator[mountspec.Sync] {
	return rapid.Custom(func(r *rapid.T) (s mountspec.Sync) {
		s.Mode = rapid.SampledFrom([]mountspec.Mode{mountspec.ModePullPush, mountspec.ModePullPush, mountspec.ModeCanonical, mountspec.ModeWatch}).Draw(r, "mode")
		trigger := rapid.SampledFrom(triggers)
		s.Pull.On, s.Commit.On, s.Push.On = trigger.Draw(r, "pull.on"), trigger.Draw(r, "commit.on"), trigger.Draw(r, "push.on")
		s.Pull.TTL, s.Commit.Batch = time.Minute, 5*time.Second
		s.Push.PR = rapid.SampledFrom([]mountspec.PRPolicy{mountspec.PRNone, mountspec.PRAuto, mountspec.PRManual}).Draw(r, "pr_policy")
		return s
	})
}

func anyEvent() *rapid.Generator[Event] {
	return rapid.Custom(func(r *rapid.T) Event {
		return Event{Kind: Kind(rapid.IntRange(int(Told), int(Unmount)).Draw(r, "kind")), Name: rapid.SampledFrom(triggers).Draw(r, "name"),
			Failure: Failure{Waited: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(r, "waited")), Lasting: rapid.Bool().Draw(r, "lasting"), Pull: rapid.Bool().Draw(r, "a pull"),
				Wants: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(r, "wants"))}}
	})
}

// What holds for every sync block, event and state.
func TestProperties(t *testing.T) {
	tier.Check(t, func(r *rapid.T) {
		s, e, state := anySync().Draw(r, "sync"), anyEvent().Draw(r, "event"), rapid.Make[State]().Draw(r, "state")
		list := Actions(s, e, state)
		assert.Must(r, slices.Equal(list, Actions(s, e, state)), "the same question has two answers")
		wellFormed(r, list)
		for name, broken := range map[string]bool{
			"nothing of a read-only copy is sent":                       state.ReadOnly && does(list, Commit, Push, Propose),
			"a read-only copy is asked in vain, and says so":            state.ReadOnly && asksToSend(e) != does(list, Refuse),
			"only what a user asks for is refused":                      does(list, Refuse) && !asksToSend(e),
			"only pull-push pushes by itself":                           s.Mode != mountspec.ModePullPush && !isAsked(e) && does(list, Push, Propose),
			"only pull-push pulls by itself":                            s.Mode != mountspec.ModePullPush && !isAsked(e) && does(list, Pull, PutOff),
			"a manual push waits for a user":                            isOn(s.Push.On, manual) && !isAsked(e) && does(list, Push),
			"a manual commit waits for a user":                          isOn(s.Commit.On, manual) && !isAsked(e) && e.Kind != TookBack && !state.WriteThrough && does(list, Commit),
			"a manual pull waits for a user, but for one that was owed": isOn(s.Pull.On, manual) && !isAsked(e) && (doesAlways(list, Pull) || does(list, PutOff)),
			"an event named manual asks for nothing":                    e.Kind == Told && e.Name == manual && (does(list, Commit, Push) || doesAlways(list, Pull)),
			"what the storage emits never commits":                      e.Kind == Told && isOfStorage(e.Name.Resolve()) && does(list, Commit),
			"a pull in a turn is one that the manifest has there":       state.InTurn && !isAsked(e) && does(list, Pull) && !(e.Kind == Told && isOn(s.Pull.On, e.Name.Resolve()) && isOfTurn(e.Name.Resolve())),
			"time alone pulls nothing in a turn":                        e.Kind == Tick && state.InTurn && doesAlways(list, Pull),
			"a look waits for nothing but a pull":                       e.Kind == Looked && len(list) > 0 && text(list) != "pull",
			"a look waits for no pull that is skipped or has failed":    e.Kind == Looked && does(list, Pull) && (state.Dirty || state.PullFails || state.InTurn),
			"an unmount waits for what is unsaved":                      (e.Kind == Unmount) != does(list, Drain),
			"an unmount pulls nothing":                                  e.Kind == Unmount && does(list, Pull),
			"an unmount commits what no user has to":                    e.Kind == Unmount && !state.ReadOnly && !state.WriteThrough && !isOn(s.Commit.On, manual) && !does(list, Commit),
			"an unmount commits before it drains, and pushes after":     e.Kind == Unmount && !slices.IsSortedFunc(list, inTime),
			"no request is left without an answer":                      isAsked(e) && len(list) == 0,
			"a failure that can be mended is tried again":               e.Kind == Failed && s.Mode == mountspec.ModePullPush && !state.ReadOnly && !does(list, Wait),
			"only an event names what it wants in its own words":        e.Kind != Told && e.Kind != AskedCommit && slices.ContainsFunc(list, func(a Action) bool { return a.Message == FromCaller }),
			"only a user requires a pull request":                       e.Kind != AskedPullRequest && slices.ContainsFunc(list, func(a Action) bool { return a.PullRequest == Require }),
		} {
			if broken {
				r.Fatalf("%s: got %q", name, text(list))
			}
		}
	})
}

// wellFormed checks that each action can be done, and is there once: a commit comes
// before the push of it, and a pull after both.
func wellFormed(r *rapid.T, list []Action) {
	var before Verb
	for _, a := range list {
		switch {
		case a.Do < Commit || a.Do > Refuse:
			r.Fatalf("%v is no verb", a.Do)
		case a.Do == before:
			r.Fatalf("%v stands there twice", a.Do)
		case a.Do == Wait && a.For < 0, a.Do != Wait && a.For != 0:
			r.Fatalf("%v waits for %v", a.Do, a.For)
		case a.Do == Commit && before != 0, before == Pull, before == PutOff, before == Wait, before == Refuse:
			r.Fatalf("%v comes after %v", a.Do, before)
		}
		before = a.Do
	}
}

func does(list []Action, verbs ...Verb) bool {
	return slices.ContainsFunc(list, func(a Action) bool { return slices.Contains(verbs, a.Do) })
}

// doesAlways leaves out what is done only if something came before.
func doesAlways(list []Action, v Verb) bool {
	return slices.ContainsFunc(list, func(a Action) bool { return a.Do == v && a.If == 0 })
}

func isAsked(e Event) bool {
	return slices.Contains([]Kind{AskedPull, AskedCommit, AskedPush, AskedPullRequest}, e.Kind)
}

func asksToSend(e Event) bool { return isAsked(e) && e.Kind != AskedPull }

// inTime is the order of an unmount.
func inTime(a, b Action) int {
	order := []Verb{Commit, Drain, Push}
	return slices.Index(order, a.Do) - slices.Index(order, b.Do)
}
