// Package inforce keeps the policies of a mount in force while it stands: grants end,
// hours are over, an approval comes, and a limit is reached.
//
//	m := inforce.Start(parts, inforce.Options{Restrict: server.Restrict, Audit: log, Now: time.Now, Log: logger})
//	defer m.Stop()
//
// A Watch asks one policy again whenever its answer may have changed: at the moment
// that the last answer names, and once a second, since the facts of the host change
// without notice. A denial is in force at once, whether it can be recorded or not; a
// permission only once it is recorded. A Mount turns the answers into the access of
// programs to each part. Acts keep the counts for limits. The package decides nothing
// itself: mountspec/policy does, by the policies that the mount began with. So a
// mount may gain the permissions of their grants when these hold, and never more.
package inforce

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/wsmount/wsmount/mountspec/policy"
)

// Every is how long a change of the host's facts may go unnoticed.
const Every = time.Second

// WatchOptions are the policy to watch and the functions to call.
type WatchOptions struct {
	Evaluate func(action string, at time.Time) policy.Decision
	Record   func(policy.Decision) error // keeps a change for the audit
	Changed  func(policy.Decision)       // is told of each change as it comes into force; it must not block
	Now      func() time.Time
	Log      *slog.Logger // of one workspace
}

// A Watch keeps one policy in force.
type Watch struct {
	o WatchOptions

	look    sync.Mutex // one Look at a time; guards owed and failing
	owed    []policy.Decision
	failing bool // the last change could not be recorded

	mu      sync.Mutex // guards inForce
	inForce map[string]policy.Decision
}

// NewWatch makes a Watch that begins with the decisions, by action, at the begin of the mount.
func NewWatch(begun map[string]policy.Decision, o WatchOptions) *Watch {
	w := &Watch{o: o, inForce: map[string]policy.Decision{}}
	for action, d := range begun {
		w.inForce[action] = d
	}
	return w
}

// Decision is the decision in force for an action.
func (w *Watch) Decision(action string) policy.Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inForce[action]
}

// Look asks the policy, and puts changed answers into force. It returns the next moment at
// which an answer changes by time alone; zero: there is none.
func (w *Watch) Look() (until time.Time) {
	w.look.Lock()
	defer w.look.Unlock()
	w.settle()
	now := w.o.Now()
	for _, action := range policy.Actions() {
		d, before := w.o.Evaluate(action, now), w.Decision(action)
		switch same := d.Allow == before.Allow && d.Reason == before.Reason; {
		case same:
			w.put(d)
		case d.Allow:
			w.gain(d)
		default:
			w.lose(d)
		}
		if !d.Until.IsZero() && (until.IsZero() || d.Until.Before(until)) {
			until = d.Until
		}
	}
	return until
}

func (w *Watch) put(d policy.Decision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inForce[d.Action] = d
}

// gain puts a permission into force, if it can be recorded; else the next Look tries again.
func (w *Watch) gain(d policy.Decision) {
	if w.record(d) {
		w.put(d)
		w.o.Log.Info("the policy allows it", "action", d.Action, "reason", d.Reason)
		w.o.Changed(d)
	}
}

// lose puts a denial into force. One that cannot be recorded is recorded later.
func (w *Watch) lose(d policy.Decision) {
	w.put(d)
	w.o.Log.Warn("the policy does not allow it", "action", d.Action, "reason", d.Reason, "warnings", d.Warnings)
	w.o.Changed(d)
	if len(w.owed) > 0 || !w.record(d) { // in the order in which they came
		w.owed = append(w.owed, d)
	}
}

// settle records the denials that could not be recorded before.
func (w *Watch) settle() {
	for len(w.owed) > 0 && w.record(w.owed[0]) {
		w.owed = w.owed[1:]
	}
}

func (w *Watch) record(d policy.Decision) bool {
	err := w.o.Record(d)
	if err != nil && !w.failing {
		w.o.Log.Error("a change of what the policy allows cannot be recorded: what it denies is denied, and what it allows waits", "err", err)
	}
	w.failing = err != nil
	return err == nil
}

// Run calls Look whenever an answer may have changed, until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		wait := Every
		if until := w.Look(); !until.IsZero() {
			wait = min(wait, max(until.Sub(w.o.Now()), time.Millisecond))
		}
		timer.Reset(wait)
	}
}
