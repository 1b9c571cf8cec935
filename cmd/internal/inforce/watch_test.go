package inforce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wsmount/wsmount/integration/assert"
	"github.com/wsmount/wsmount/mountspec"
	"github.com/wsmount/wsmount/mountspec/policy"
)

// A watched is a Watch of a policy whose facts a test sets, and the diary of what it did: a
// change is said by "+" or "-", its action and the seconds since the beginning, and its
// record by the same in brackets.
type watched struct {
	*Watch
	began time.Time

	mu      sync.Mutex
	facts   policy.Facts
	done    policy.Done
	refuses bool // nothing can be recorded
	diary   []string
}

func watch(p mountspec.Policy) *watched {
	w := &watched{began: time.Now()}
	layers := []policy.Layer{{Policy: &p, Source: "p", Level: "workspace"}}
	evaluate := func(action string, at time.Time) policy.Decision {
		w.mu.Lock()
		defer w.mu.Unlock()
		return policy.Evaluate(layers, policy.Request{Principal: "operator://bob", Action: action, At: at, Facts: w.facts, Done: w.done})
	}
	begun := map[string]policy.Decision{}
	for _, action := range policy.Actions() {
		begun[action] = evaluate(action, w.began)
	}
	w.Watch = NewWatch(begun, WatchOptions{Evaluate: evaluate, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Changed: func(d policy.Decision) { w.note("%s", d) },
		Record: func(d policy.Decision) error {
			if w.isRefusing() {
				return errors.New("the disk is full")
			}
			w.note("[%s]", d)
			return nil
		}})
	return w
}

func (w *watched) note(format string, d policy.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sign := map[bool]string{true: "+", false: "-"}[d.Allow]
	w.diary = append(w.diary, fmt.Sprintf(format, sign+strings.TrimPrefix(d.Action, "storage:")+time.Since(w.began).String()))
}

func (w *watched) isRefusing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refuses
}

func (w *watched) set(f func(*watched)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
}

// said returns the diary and begins a new one.
func (w *watched) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := strings.Join(w.diary, " ")
	w.diary = nil
	return out
}

func grantOf(actions ...string) (g mountspec.Grant) {
	g.Principal.Bare = "*"
	for _, a := range actions {
		g.Actions = append(g.Actions, mountspec.ActionGrant{Action: a})
	}
	return g
}

// running runs a test beside the loop, by a clock of its own that only goes on when
// everything waits.
func running(t *testing.T, p func() mountspec.Policy, test func(t *testing.T, w *watched)) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(p())
		ctx, cancel := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() { w.Run(ctx) })
		defer loop.Wait()
		defer cancel()
		synctest.Wait()
		assert.Equal(t, w.said(), "", "at the beginning")
		test(t, w)
	})
}

// A grant that ends is lost at that moment and no other, and is recorded; what is not of it
// stays.
func TestGrantsEnd(t *testing.T) {
	running(t, func() mountspec.Policy {
		write := grantOf(policy.Write)
		write.GrantedAt, write.TTLSeconds = time.Now().Format(time.RFC3339), 3600
		return mountspec.Policy{Grants: []mountspec.Grant{grantOf(policy.Read), write}}
	}, func(t *testing.T, w *watched) {
		time.Sleep(time.Hour - 1)
		synctest.Wait()
		assert.Equal(t, w.said(), "", "just before it ends")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		assert.Equal(t, w.said(), "-write1h0m0s [-write1h0m0s]", "when it ends")
		assert.Equal(t, w.Decision(policy.Write).Reason, policy.TTLExpired)
		assert.True(t, w.Decision(policy.Read).Allow, "what does not end has ended")
		time.Sleep(time.Hour)
		assert.Equal(t, w.said(), "", "later")
	})
}

// What the host shows counts within a second of its being shown, both ways.
func TestFactsChangeWhatIsAllowed(t *testing.T) {
	running(t, func() mountspec.Policy {
		push := grantOf(policy.Push)
		push.Conditions = []mountspec.Condition{{Kind: "approval-from", Params: map[string]any{"role": "owner"}}}
		return mountspec.Policy{Grants: []mountspec.Grant{push}}
	}, func(t *testing.T, w *watched) {
		time.Sleep(Every / 2)
		w.set(func(w *watched) {
			w.facts.Approvals = []policy.Approval{{By: "operator://ann", Role: "owner", Actions: []string{policy.Push}, Until: w.began.Add(10 * time.Second)}}
		})
		time.Sleep(Every)
		synctest.Wait()
		assert.Equal(t, w.said(), "[+push1s] +push1s", "after the approval")
		time.Sleep(time.Minute)
		assert.Equal(t, w.said(), "-push10s [-push10s]", "after its end")
		assert.Equal(t, w.Decision(policy.Push).Reason, policy.ConditionFailed)
	})
}

// A limit that is reached holds until there is room in its window.
func TestLimitsFree(t *testing.T) {
	running(t, func() mountspec.Policy {
		return mountspec.Policy{Grants: []mountspec.Grant{grantOf("storage:*")}, Limits: []mountspec.Limit{{Kind: "rate-commits", Value: 1, Per: "minute", AppliesTo: []string{policy.Commit}}}}
	}, func(t *testing.T, w *watched) {
		w.set(func(w *watched) { w.done = policy.Done{policy.Commit: {w.began}} })
		time.Sleep(2 * time.Minute)
		assert.Equal(t, w.said(), "-commit1s [-commit1s] [+commit1m0s] +commit1m0s", "said")
	})
}

// While nothing can be recorded, what is lost is lost all the same and recorded later, in
// its order; what is gained waits.
func TestWhatCannotBeRecorded(t *testing.T) {
	running(t, func() mountspec.Policy {
		g := grantOf(policy.Write)
		g.Conditions = []mountspec.Condition{{Kind: "mfa-recent", Params: map[string]any{"within_seconds": 10}}}
		return mountspec.Policy{Grants: []mountspec.Grant{g}}
	}, func(t *testing.T, w *watched) {
		w.set(func(w *watched) { w.facts.MFA = w.began })
		time.Sleep(5*time.Second + Every/2) // between two looks
		assert.Equal(t, w.said(), "[+write1s] +write1s", "with a second factor")
		w.set(func(w *watched) { w.refuses = true })
		time.Sleep(10 * time.Second)
		assert.Equal(t, w.said(), "-write10s", "when it is over")
		w.set(func(w *watched) { w.facts.MFA = time.Now() })
		time.Sleep(3 * time.Second)
		assert.Equal(t, w.said(), "", "with another one")
		assert.False(t, w.Decision(policy.Write).Allow, "it is allowed without a record")
		w.set(func(w *watched) { w.refuses = false })
		time.Sleep(2 * time.Second)
		assert.Equal(t, w.said(), "[-write19s] [+write19s] +write19s", "when it can be recorded")
	})
}
